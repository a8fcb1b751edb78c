"""What each pod uses: memory, processes, disk. The pods' part of the summary API, and what eviction
ranks by.

Rules: EVIC-029, EVIC-101. Pure. A value of None was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from refkubelet.cri.usage import ContainerUsage


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes on disk and inodes, of one directory or of several together."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: DiskUse) -> DiskUse:
        return DiskUse(self.bytes + other.bytes, self.inodes + other.inodes)


NOTHING = DiskUse()


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """One volume, when it was last measured. `local`: it counts as the pod's ephemeral storage and
    when pods are ranked (EVIC-044, EVIC-101); one in memory does not."""

    used: DiskUse
    time_ns: int
    local: bool = True


def _logs() -> Mapping[str, DiskUse]:
    return MappingProxyType({})


def _volumes() -> Mapping[str, VolumeUse]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PodFiles:
    """Files of a pod on the disk of the kubelet's directory. `logs`: of containers that have log
    files, by container; `pod_logs`: those beside the containers' directories."""

    logs: Mapping[str, DiskUse] = field(default_factory=_logs)
    volumes: Mapping[str, VolumeUse] = field(default_factory=_volumes)
    pod_logs: DiskUse = NOTHING
    etc_hosts: DiskUse = NOTHING

    def local_volumes(self) -> DiskUse:
        """Those that count when pods are ranked."""
        return added(volume.used for volume in self.volumes.values() if volume.local)


@dataclass(frozen=True, slots=True)
class CgroupMemory:
    """Memory of one cgroup, bytes. `limit_bytes` None: unlimited (EVIC-027)."""

    usage_bytes: int
    working_set_bytes: int
    limit_bytes: int | None = None
    rss_bytes: int = 0
    page_faults: int = 0
    major_page_faults: int = 0

    @property
    def available_bytes(self) -> int | None:
        """Limit minus working set, which may be negative; None without a limit."""
        return None if self.limit_bytes is None else self.limit_bytes - self.working_set_bytes


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod's use; exists only while a container of it runs and has statistics (EVIC-029).

    `containers` keeps the order of the runtime's answer. `memory`: of the pod's cgroup, None where
    there is none. `processes`: of its containers, as far as their cgroups are known.
    """

    containers: tuple[ContainerUsage, ...]
    memory: CgroupMemory | None = None
    processes: int = 0
    files: PodFiles = PodFiles()

    @property
    def memory_bytes(self) -> int:
        """Working set: of the pod's cgroup if it has one, else of its containers together."""
        if self.memory is not None:
            return self.memory.working_set_bytes
        return sum(c.memory_working_set_bytes or 0 for c in self.containers)

    @property
    def layers(self) -> DiskUse:
        """Writable layers of all containers."""
        return added(layer(row) for row in self.containers)

    @property
    def logs(self) -> DiskUse:
        """Logs of the containers that have statistics."""
        return added(self.files.logs.get(row.name, NOTHING) for row in self.containers)

    @property
    def ephemeral_storage(self) -> DiskUse:
        """All that counts against the pod's limit (EVIC-101)."""
        files = self.files
        return self.layers + self.logs + files.local_volumes() + files.pod_logs + files.etc_hosts


def layer(row: ContainerUsage) -> DiskUse:
    """The container's writable layer, nothing where the runtime gave no numbers."""
    return DiskUse(row.rootfs_used_bytes or 0, row.rootfs_inodes_used or 0)


def added(parts: Iterable[DiskUse]) -> DiskUse:
    """All together."""
    return sum(parts, NOTHING)


def rows_by_pod(
    stats: Iterable[ContainerUsage], running: Iterable[str]
) -> Mapping[str, tuple[ContainerUsage, ...]]:
    """Pod UID -> statistics of its containers, of those only that are among the IDs of running
    containers (EVIC-029)."""
    alive = frozenset(running)
    grouped: dict[str, list[ContainerUsage]] = {}
    for row in stats:
        if row.container_id in alive:
            grouped.setdefault(row.pod_uid, []).append(row)
    return {uid: tuple(rows) for uid, rows in grouped.items()}
