"""What the machine has left: one observation per signal.

Rules: EVIC-020, EVIC-022, EVIC-023, EVIC-026..028. Not observed: allocatable memory, processes, a
disk for containers. A signal without observation is never pressure (EVIC-027). The numbers of
ImageFsInfo do not count: its mount point is measured, only its time stamp is taken (EVIC-028).
Upstream: pkg/kubelet/eviction/helpers.go: makeSignalObservations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refkubelet.node.machine import FilesystemStats, Machine
from refkubelet.runtime.records import FilesystemUsage


@dataclass(frozen=True, slots=True)
class Observation:
    """Bytes, inodes or pids; `time_ns` says how fresh it is (EVIC-053 step 7), 0 = unknown."""

    available: int
    capacity: int
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class NodeObservations:
    """All signals of one look at the machine, and the layout of its disks (EVIC-040)."""

    signals: Mapping[str, Observation]
    dedicated_image_fs: bool


def observe(
    machine: Machine, root_dir: str, image_fs: tuple[FilesystemUsage, ...]
) -> NodeObservations:
    """Look at memory, the disk of `root_dir` and the disk of the images.

    Raises `OSError` when a disk cannot be found: the whole cycle is then skipped (EVIC-041).
    """
    memory = machine.memory()
    node_fs = machine.filesystem(root_dir)
    signals = {
        "memory.available": Observation(
            memory.total_bytes - memory.working_set_bytes, memory.total_bytes, memory.time_ns
        ),
        **_disk("nodefs", node_fs, memory.time_ns),
    }
    if not image_fs:
        return NodeObservations(signals, dedicated_image_fs=False)
    images = machine.filesystem(image_fs[0].mountpoint)
    signals |= _disk("imagefs", images, image_fs[0].time_ns)
    return NodeObservations(signals, dedicated_image_fs=images.device != node_fs.device)


def _disk(name: str, stats: FilesystemStats, time_ns: int) -> dict[str, Observation]:
    return {
        f"{name}.available": Observation(stats.available_bytes, stats.capacity_bytes, time_ns),
        f"{name}.inodesFree": Observation(stats.inodes_free, stats.inodes, time_ns),
    }
