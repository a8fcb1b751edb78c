"""What each pod uses: the runtime's container statistics, and its files on the node's disk.

Rules: EVIC-029, EVIC-044, EVIC-045. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from refkubelet.runtime.records import ContainerUsage


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PodFiles:
    """Bytes on the disk of the kubelet's directory: logs by container name, and emptyDir volumes
    (not those in memory) by volume name."""

    logs: Mapping[str, int] = field(default_factory=_none)
    volumes: Mapping[str, int] = field(default_factory=_none)


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod's use; exists only while a container of it runs and has statistics (EVIC-029).

    Bytes, inodes, processes. `containers` keeps the order of the runtime's answer.
    """

    containers: tuple[ContainerUsage, ...]
    processes: int = 0
    files: PodFiles = PodFiles()

    @property
    def memory_bytes(self) -> int:
        return sum(c.memory_working_set_bytes or 0 for c in self.containers)

    @property
    def disk_bytes(self) -> int:
        """Writable layers, logs and local volumes together (EVIC-044)."""
        layers = sum(c.rootfs_used_bytes or 0 for c in self.containers)
        return layers + sum(self.files.logs.values()) + sum(self.files.volumes.values())

    @property
    def inodes(self) -> int:
        return sum(c.rootfs_inodes_used or 0 for c in self.containers)

    def container_disk_bytes(self, row: ContainerUsage) -> int | None:
        """Writable layer and logs of one container; None without a layer."""
        if row.rootfs_used_bytes is None:
            return None
        return row.rootfs_used_bytes + self.files.logs.get(row.name, 0)


def usage_by_pod(stats: Iterable[ContainerUsage]) -> Mapping[str, PodUsage]:
    """Pod UID -> usage, without files."""
    grouped: dict[str, list[ContainerUsage]] = {}
    for row in stats:
        grouped.setdefault(row.pod_uid, []).append(row)
    return {uid: PodUsage(tuple(rows)) for uid, rows in grouped.items()}


def usage_on_disk(usage: PodUsage, signal: str, *, dedicated_image_fs: bool) -> PodUsage:
    """The part of `usage` that lies on the disk a signal is about. With a disk of their own for
    images, writable layers are on that one and everything else is not (EVIC-045)."""
    if not dedicated_image_fs:
        return usage
    if not signal.startswith("nodefs"):
        return replace(usage, files=PodFiles())
    bare = (replace(c, rootfs_used_bytes=0, rootfs_inodes_used=0) for c in usage.containers)
    return replace(usage, containers=tuple(bare))
