"""Makes the CPU manager. Every error stops the kubelet's start, with upstream's text.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager/cpu_manager.go: NewManager, Start;
cmd/kubelet/app/server.go: getReservedCPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubeobjects.golang.strconv import quoted
from kubeobjects.topology import MachineTopology
from refkubelet.checkpoints.state_file import StateFile
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cpu.manager import CpuManager
from refkubelet.container_manager.cpu.policy_options import check_no_options, static_options
from refkubelet.container_manager.cpu.state import (
    FILE_NAME,
    CpuState,
    CpuStateFile,
    from_file,
    to_file,
)
from refkubelet.container_manager.cpu.static import StaticPolicy, static_policy
from refkubelet.container_manager.cpu.topology import CpuTopology, cpu_topology
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import Affinities
from refkubelet.container_manager.topology.policies import SINGLE_NUMA_NODE
from refkubelet.model.cpuset import CpuSet, format_cpuset, parse_cpuset
from refkubelet.telemetry.node_metrics import ExclusiveMetrics

NONE: Final = "none"
STATIC: Final = "static"


def no_cpu_manager(config: KubeletConfiguration, root_dir: Path) -> None:
    """Policy none: only check the options and the state file. Raises ValueError."""
    try:
        check_no_options(config.cpu_manager_policy_options)
    except ValueError as error:
        raise ValueError(f"new none policy error: {error}") from None
    _file(root_dir, NONE).restore(CpuState())


def cpu_manager(
    config: KubeletConfiguration,
    machine: MachineTopology,
    reserved: Mapping[str, int],
    root_dir: Path,
    affinities: Affinities,
    active: ActiveContainers,
    metrics: ExclusiveMetrics | None = None,
) -> CpuManager:
    """Policy static. `reserved`: the reservations, in nano units. Raises ValueError."""
    if config.cpu_manager_policy != STATIC:
        raise ValueError(f"unknown policy: {quoted(config.cpu_manager_policy)}")
    policy = _policy(config, cpu_topology(machine), reserved)
    file = _file(root_dir, STATIC)
    state = file.restore_checked(CpuState(), policy.checked)
    return CpuManager(
        policy,
        state=state,
        store=file.store,
        affinities=affinities,
        active=active,
        metrics=metrics,
    )


def _file(root_dir: Path, policy: str) -> StateFile[CpuStateFile, CpuState]:
    return StateFile(
        path=root_dir / FILE_NAME,
        kind="CPU",
        policy=policy,
        shape=CpuStateFile,
        encode=to_file,
        decode=from_file,
    )


def _policy(
    config: KubeletConfiguration, topology: CpuTopology, reserved: Mapping[str, int]
) -> StaticPolicy:
    """The policy with its options and reserved CPUs. Raises ValueError."""
    named = named_cpus(config, topology)
    if not reserved.get("cpu"):
        raise ValueError(
            "[cpumanager] unable to determine reserved CPU resources for static policy: "
            "set systemReserved, kubeReserved or reservedSystemCPUs"
        )
    try:
        options = static_options(config.cpu_manager_policy_options, config.feature_gates)
        if options.align_by_socket and config.topology_manager_policy == SINGLE_NUMA_NODE:
            raise ValueError(
                f"Topolgy manager {SINGLE_NUMA_NODE} policy is incompatible with CPUManager "
                "align-by-socket policy option"
            )
        return static_policy(topology, options, reserved["cpu"], named)
    except ValueError as error:
        raise ValueError(f"new static policy error: {error}") from None


def named_cpus(config: KubeletConfiguration, topology: CpuTopology) -> CpuSet:
    """The CPUs of reservedSystemCPUs. Raises ValueError if the machine lacks some of them."""
    named = parse_cpuset(config.reserved_system_cpus)
    if not named <= topology.cpus:
        raise ValueError(
            f"reserved-cpus: {config.reserved_system_cpus} is not a subset of "
            f"online-cpus: {format_cpuset(topology.cpus)}"
        )
    return named
