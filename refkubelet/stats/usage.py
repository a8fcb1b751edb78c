"""The usage of pods: memory, processes, disk; for the summary API and for ranking by eviction.
Pure.

Rules: EVIC-029, EVIC-101. None: not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct, field

from refkubelet.cri.usage import ContainerUsage
from refkubelet.host.disk_use import NOTHING, DiskUse, VolumeSize, added
from refkubelet.model.traffic import Traffic


def _logs() -> Mapping[str, DiskUse]:
    return MappingProxyType({})


def _volumes() -> Mapping[str, VolumeSize]:
    return MappingProxyType({})


class PodFiles(Struct, frozen=True):
    """A pod's files on the disk of the kubelet's directory. `logs`: by container; `pod_logs`: log
    files beside the containers' directories."""

    logs: Mapping[str, DiskUse] = field(default_factory=_logs)
    volumes: Mapping[str, VolumeSize] = field(default_factory=_volumes)
    pod_logs: DiskUse = NOTHING
    etc_hosts: DiskUse = NOTHING

    def local_volumes(self) -> DiskUse:
        """The sum of the volumes that count as ephemeral storage."""
        return added(volume.used for volume in self.volumes.values() if volume.local)


class CgroupMemory(Struct, frozen=True):
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


class PodUsage(Struct, frozen=True):
    """The usage of a pod with running containers that have statistics (EVIC-029). `containers`: in
    the order of the runtime; `memory`: of the pod's cgroup, None without one; `processes`: of the
    containers whose cgroups are found."""

    containers: tuple[ContainerUsage, ...]
    memory: CgroupMemory | None = None
    processes: int = 0
    files: PodFiles = PodFiles()
    traffic: Traffic | None = None
    """None: not asked for, or not known."""

    @property
    def memory_bytes(self) -> int:
        """The working set of the pod's cgroup, or else the sum of its containers."""
        if self.memory is not None:
            return self.memory.working_set_bytes
        return sum(c.memory_working_set_bytes or 0 for c in self.containers)

    @property
    def layers(self) -> DiskUse:
        """The writable layers of all containers."""
        return added(layer(row) for row in self.containers)

    @property
    def logs(self) -> DiskUse:
        """The logs of the containers that have statistics."""
        return added(self.files.logs.get(row.name, NOTHING) for row in self.containers)

    @property
    def ephemeral_storage(self) -> DiskUse:
        """Everything that counts against the pod's limit (EVIC-101)."""
        files = self.files
        return self.layers + self.logs + files.local_volumes() + files.pod_logs + files.etc_hosts


def layer(row: ContainerUsage) -> DiskUse:
    """The container's writable layer; nothing if the runtime does not report it."""
    return DiskUse(row.rootfs_used_bytes or 0, row.rootfs_inodes_used or 0)


def rows_by_pod(
    stats: Iterable[ContainerUsage], running: Iterable[str]
) -> Mapping[str, tuple[ContainerUsage, ...]]:
    """Pod UID -> the statistics of its running containers. `running`: their IDs (EVIC-029)."""
    alive = frozenset(running)
    grouped: dict[str, list[ContainerUsage]] = {}
    for row in stats:
        if row.container_id in alive:
            grouped.setdefault(row.pod_uid, []).append(row)
    return {uid: tuple(rows) for uid, rows in grouped.items()}
