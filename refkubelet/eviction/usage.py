"""What each pod uses, added up from the runtime's container statistics (EVIC-029). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refkubelet.runtime.records import ContainerUsage


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod's use; exists only while a container of it runs and has statistics (EVIC-029).

    Bytes, inodes, processes. `containers` keeps the order of the runtime's answer.
    """

    containers: tuple[ContainerUsage, ...]
    processes: int = 0

    @property
    def memory_bytes(self) -> int:
        return sum(c.memory_working_set_bytes or 0 for c in self.containers)

    @property
    def disk_bytes(self) -> int:
        return sum(c.rootfs_used_bytes or 0 for c in self.containers)

    @property
    def inodes(self) -> int:
        return sum(c.rootfs_inodes_used or 0 for c in self.containers)


def usage_by_pod(stats: Iterable[ContainerUsage]) -> Mapping[str, PodUsage]:
    """Pod UID -> usage."""
    grouped: dict[str, list[ContainerUsage]] = {}
    for row in stats:
        grouped.setdefault(row.pod_uid, []).append(row)
    return {uid: PodUsage(tuple(rows)) for uid, rows in grouped.items()}
