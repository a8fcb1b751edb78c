"""The machine as the kubelet sees it: memory, filesystems, CPUs. One small interface, so that a
fake node can stand in for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Root cgroup memory: `available = total - working set` (EVIC-020). Bytes."""

    total_bytes: int
    working_set_bytes: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class FilesystemStats:
    """statfs of one filesystem (EVIC-022). `device` tells filesystems apart (EVIC-040)."""

    device: str
    capacity_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
    time_ns: int


class Machine(Protocol):
    """What eviction, the Node object and OOM scores ask of the machine."""

    def memory(self) -> MemoryStats: ...

    def filesystem(self, path: str) -> FilesystemStats:
        """Raises FileNotFoundError when `path` is on no filesystem."""
        ...

    def cpu_count(self) -> int: ...

    def boot_id(self) -> str: ...
