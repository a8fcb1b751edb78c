"""Makes the memory manager. Every error stops the kubelet's start, with upstream's text.

Rules: CG-082. Upstream: pkg/kubelet/cm/memorymanager/memory_manager.go: NewManager, Start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubeobjects.golang.strconv import quoted
from kubeobjects.topology import MachineTopology
from refkubelet.checkpoints.state_file import StateFile
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import parsed
from refkubelet.container_manager.memory.checkpoint import (
    FILE_NAME,
    MemoryStateFile,
    from_file,
    to_file,
)
from refkubelet.container_manager.memory.manager import MemoryManager
from refkubelet.container_manager.memory.reserved import Reservation, machine_memory
from refkubelet.container_manager.memory.state import MemoryState
from refkubelet.container_manager.memory.static import checked
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import Affinities
from refkubelet.telemetry.node_metrics import ExclusiveMetrics

NONE: Final = "None"
STATIC: Final = "Static"
BEST_EFFORT: Final = "BestEffort"  # only on Windows


def no_memory_manager(root_dir: Path) -> None:
    """Policy None: only check the state file. Raises ValueError."""
    _file(root_dir, NONE).restore(MemoryState())


def memory_manager(
    config: KubeletConfiguration,
    machine: MachineTopology,
    reserved: Mapping[str, int],
    root_dir: Path,
    affinities: Affinities,
    active: ActiveContainers,
    metrics: ExclusiveMetrics | None = None,
) -> MemoryManager:
    """Policy Static. `reserved`: the reservations, in nano units. Raises ValueError."""
    name = config.memory_manager_policy
    if name == BEST_EFFORT:
        raise ValueError(f'policy {quoted(name)} is not available for platform "linux"')
    if name != STATIC:
        raise ValueError(f"unknown policy: {quoted(name)}")
    reservations = [Reservation(r.numa_node, parsed(r.limits)) for r in config.reserved_memory]
    fresh = machine_memory(machine.nodes, reservations, reserved)
    file = _file(root_dir, STATIC)
    state = file.restore_checked(MemoryState(), lambda restored: checked(restored, fresh))
    return MemoryManager(
        state, store=file.store, affinities=affinities, active=active, metrics=metrics
    )


def _file(root_dir: Path, policy: str) -> StateFile[MemoryStateFile, MemoryState]:
    return StateFile(
        path=root_dir / FILE_NAME,
        kind="memory",
        policy=policy,
        shape=MemoryStateFile,
        encode=to_file,
        decode=from_file,
    )
