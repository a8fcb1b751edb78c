"""How much of a disk is used: by files, and by the volumes of pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kubeobjects.machine import FilesystemStats


class DiskUse(Struct, frozen=True):
    """Used bytes and inodes of a disk."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: DiskUse) -> DiskUse:
        return DiskUse(self.bytes + other.bytes, self.inodes + other.inodes)


NOTHING: Final = DiskUse()


class VolumeSize(Struct, frozen=True):
    """The last measurement of a volume. `local`: it counts as the pod's ephemeral storage, also in
    rankings (EVIC-044, EVIC-101); False for a volume in memory and one of a claim. `room`: how
    large the volume itself is; None: as large as the filesystem that its directory is on. `claim`:
    the name of its claim, "" without one."""

    used: DiskUse
    time_ns: int
    local: bool = True
    room: FilesystemStats | None = None
    claim: str = ""


def added(parts: Iterable[DiskUse]) -> DiskUse:
    """The sum of `parts`."""
    return sum(parts, NOTHING)


def used_of(stats: FilesystemStats) -> DiskUse:
    """The whole used space of a filesystem, without what is kept for root (SRV-033)."""
    used_bytes = stats.capacity_bytes - stats.available_bytes - stats.kept_bytes
    return DiskUse(used_bytes, stats.inodes - stats.inodes_free)
