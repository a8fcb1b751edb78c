"""What a machine says of itself, as plain values: memory, disks, processes, the kernel's log. Pure.

A kubelet makes the Node object of them, and a fake machine answers with them. Amounts are in bytes.
"""

from __future__ import annotations

from msgspec import Struct


class MemoryStats(Struct, frozen=True):
    """Memory of the root cgroup: `available = total - working set` (EVIC-020)."""

    total_bytes: int
    working_set_bytes: int
    time_ns: int


class FilesystemStats(Struct, frozen=True):
    """statfs of one filesystem (EVIC-022). `device` tells filesystems apart (EVIC-040).
    `kept_bytes`: free, but for root only, and so not available."""

    device: str
    capacity_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
    time_ns: int
    kept_bytes: int = 0


class PidStats(Struct, frozen=True):
    """Tasks (threads count) that there may be, and that there are (EVIC-025)."""

    limit: int
    running: int
    time_ns: int


class KernelMessage(Struct, frozen=True):
    """A record of the kernel's log, and when it was written or read; continuation lines are left
    out."""

    time_ns: int
    text: str
