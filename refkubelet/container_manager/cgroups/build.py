"""Makes the container manager, after checking what the machine must have.

Rules: CG-014, CG-015, CG-034, CG-035, CG-037. Upstream: pkg/kubelet/cm/container_manager_linux.go:
NewContainerManager, validateSystemRequirements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import impossible_reservation
from refkubelet.container_manager.cgroups.manager import (
    ContainerManager,
    ContainerManagerDeps,
    ContainerManagerError,
)
from refkubelet.container_manager.cgroups.node_config import node_cgroups, reservations_of
from refkubelet.container_manager.cgroups.removal import reason
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.machine import Machine, internal_capacity
from refkubelet.model.cgroups.names import words_of
from refkubelet.telemetry.node_metrics import CgroupMetrics

REQUIRED_V1: Final = ("cpu", "cpuacct", "cpuset", "memory")
CGROUP_V1_WARNING: Final = (
    "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. "
    "Please migrate to cgroup v2. More information at "
    "https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"
)


def check_reservations(config: KubeletConfiguration, capacity: Mapping[str, int]) -> None:
    """Raise `ContainerManagerError` if the reservations exceed `capacity`, that of the Node object
    (CG-034)."""
    problem = impossible_reservation(capacity, reservations_of(config, capacity))
    if problem is not None:
        raise ContainerManagerError(problem)


def container_manager(
    config: KubeletConfiguration,
    machine: Machine,
    deps: ContainerManagerDeps,
    metrics: CgroupMetrics | None = None,
) -> ContainerManager:
    """Make the container manager; this only reads from the machine. Raises
    `ContainerManagerError`."""
    durations = (metrics or CgroupMetrics()).duration
    node = node_cgroups(
        config, internal_capacity(machine), machine.topology(), machine.cgroup_version()
    )
    try:
        tree = CgroupTree(
            machine.cgroup_root(),
            version=machine.cgroup_version(),
            driver=config.cgroup_driver,
            page_sizes=node.page_sizes,
            timed=lambda operation: durations.timed(deps.clock, operation),
        )
    except OSError as error:
        raise ContainerManagerError(
            f"failed to get mounted cgroup subsystems: {error.filename}: {reason(error)}"
        ) from None
    missing = [c for c in REQUIRED_V1 if c not in tree.controllers]
    if tree.version == 1 and missing:
        raise ContainerManagerError(
            "system validation failed - Following Cgroup subsystem not mounted: "
            f"[{' '.join(missing)}]"
        )
    problem = tree.problem(words_of(config.cgroup_root), literal=True)
    if problem is not None:
        raise ContainerManagerError(f"invalid configuration: {problem}")
    return ContainerManager(node, tree, machine.kill_process, deps)


def before_the_first_pod(
    machine: Machine, cgroups: ContainerManager | None, recorder: EventRecorder
) -> None:
    """When the runtime is ready for the first time: the warning of cgroup v1 (CG-014), and the
    cgroups above the pods (CG-035), where pods have any. Raises `ContainerManagerError`."""
    if machine.cgroup_version() == 1:
        recorder.node_event("Warning", "CgroupV1", CGROUP_V1_WARNING)
    if cgroups is not None:
        cgroups.start()
