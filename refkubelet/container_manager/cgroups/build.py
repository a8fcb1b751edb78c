"""Makes the container manager, after checking what the machine must have.

Rules: CG-014, CG-015, CG-034, CG-035, CG-037. Upstream: pkg/kubelet/cm/container_manager_linux.go:
NewContainerManager, validateSystemRequirements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.manager import (
    ContainerManager,
    ContainerManagerDeps,
    ContainerManagerError,
)
from refkubelet.container_manager.cgroups.node_config import node_cgroups, reservation_problem
from refkubelet.container_manager.cgroups.removal import reason
from refkubelet.container_manager.cgroups.tree import CgroupTree
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.machine import Machine, internal_capacity
from refkubelet.model.cgroups.names import words_of
from refkubelet.model.objects import Pod
from refkubelet.telemetry.node_metrics import CgroupMetrics
from simclock import Clock

REQUIRED_V1: Final = ("cpu", "cpuacct", "cpuset", "memory")
CGROUP_V1_WARNING: Final = (
    "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. "
    "Please migrate to cgroup v2. More information at "
    "https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"
)


@dataclass(frozen=True, slots=True)
class ManagerDeps:
    """What the container manager works with. `active_pods`: with allocated resources;
    `has_exclusive_cpus`: whether a container of the pod has exclusive CPUs (CG-031)."""

    clock: Clock
    recorder: EventRecorder
    active_pods: Callable[[], Iterable[Pod]]
    has_exclusive_cpus: Callable[[Pod], bool] = lambda pod: False
    metrics: CgroupMetrics = field(default_factory=CgroupMetrics)


def check_reservations(config: KubeletConfiguration, capacity: Mapping[str, int]) -> None:
    """Raise `ContainerManagerError` if the reservations exceed `capacity`, that of the Node object
    (CG-034)."""
    problem = reservation_problem(config, capacity)
    if problem is not None:
        raise ContainerManagerError(problem)


def container_manager(
    config: KubeletConfiguration, machine: Machine, deps: ManagerDeps
) -> ContainerManager:
    """Make the container manager; this only reads from the machine. Raises
    `ContainerManagerError`."""
    node = node_cgroups(
        config, internal_capacity(machine), machine.topology(), machine.cgroup_version()
    )
    try:
        tree = CgroupTree(
            machine.cgroup_root(),
            version=machine.cgroup_version(),
            driver=config.cgroup_driver,
            page_sizes=node.page_sizes,
            timed=lambda operation: deps.metrics.duration.timed(deps.clock, operation),
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
    manager_deps = ContainerManagerDeps(
        clock=deps.clock,
        recorder=deps.recorder,
        tree=tree,
        active_pods=deps.active_pods,
        kill=machine.kill_process,
        has_exclusive_cpus=deps.has_exclusive_cpus,
    )
    return ContainerManager(node, manager_deps)


def before_the_first_pod(
    machine: Machine, cgroups: ContainerManager | None, recorder: EventRecorder
) -> None:
    """When the runtime is ready for the first time: the warning of cgroup v1 (CG-014), and the
    cgroups above the pods (CG-035), where pods have any. Raises `ContainerManagerError`."""
    if machine.cgroup_version() == 1:
        recorder.node_event("Warning", "CgroupV1", CGROUP_V1_WARNING)
    if cgroups is not None:
        cgroups.start()
