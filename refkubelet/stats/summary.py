"""Makes the summary of the node and its pods for /stats/summary.

Each request collects the values anew, from the sources that eviction uses (EVIC-020..029, SRV-030);
between requests nothing is done. CPU cores in use come from the runtime, or from the CPU time at
the previous request. The traffic of pods is what the runtime tells, that of the node what its
interfaces have carried.
Upstream: pkg/kubelet/server/stats/summary.go, pkg/kubelet/stats/cri_stats_provider.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from lightkube.models.core_v1 import Volume
from msgspec import Struct

from kubeobjects.machine import FilesystemStats
from kubeobjects.structs import replace
from refkubelet.cri.records import RuntimePod
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage, ImageFilesystems
from refkubelet.host.disk_use import DiskUse, VolumeSize
from refkubelet.host.machine import Machine
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats import wire
from refkubelet.stats.cgroup_stats import CgroupStats
from refkubelet.stats.files import volume_dir
from refkubelet.stats.network import network, of_node
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import PodUsage
from simclock import Clock

Json = dict[str, Any]
PODS: Final = "pods"  # the name of the system container that holds all pods


class SummaryDeps(Struct, frozen=True):
    """The sources of a summary."""

    clock: Clock  # for the times of measurements
    machine: Machine  # memory, filesystems and cgroups of the node
    node_name: str  # shown as nodeName
    root_dir: str
    """The kubelet's directory; its disk is the node's."""
    stats: PodStats  # measures the pods
    pods: Callable[[], Sequence[Pod]]
    """The pods for the summary."""
    image_fs_info: Callable[[], Awaitable[ImageFilesystems]]
    """The runtime's filesystems. May raise `CriCallError`."""
    pods_cgroup: str = ""
    """The path of the cgroup above all pods; "": pods have no cgroups."""
    container_disk: bool = False
    """Whether containers may be on another disk than images (EVIC-040)."""


class SummaryProvider:
    """Makes summaries, and keeps the CPU times of the previous one."""

    def __init__(self, deps: SummaryDeps) -> None:
        self._deps = deps
        self._start_ns = deps.clock.wall_ns()
        self._cgroups = CgroupStats(deps.machine, deps.clock)

    async def summary(self, *, only_cpu_and_memory: bool = False) -> Json:
        """The summary as JSON; `only_cpu_and_memory`: the short form. Raises `CriCallError`, and
        `OSError` if a disk cannot be measured."""
        deps = self._deps
        pods = tuple(deps.pods())
        usage = await deps.stats.of(pods, memory=True, processes=True, files=True, network=True)
        listed = {pod.uid: pod for pod in await deps.stats.runtime.get_pods(all_states=True)}
        node_fs = deps.machine.filesystem(deps.root_dir)
        summary = {
            "node": self._node(node_fs, await deps.image_fs_info()),
            "pods": [
                self._pod(pod, usage[uid(pod)], listed[uid(pod)], node_fs)
                for pod in pods
                if uid(pod) in usage and uid(pod) in listed
            ],
        }
        self._cgroups.rates.next()
        return wire.only_cpu_and_memory(summary) if only_cpu_and_memory else summary

    def _node(self, node_fs: FilesystemStats, images: ImageFilesystems) -> Json:
        machine = self._deps.machine
        root = self._cgroups.of("") or {}
        return {
            "nodeName": self._deps.node_name,
            "systemContainers": self._system_containers(),
            "startTime": wire.shown_time(machine.boot_time_ns() or self._start_ns),
            **root,
            **network(of_node(self._deps.clock.wall_ns(), machine.interfaces())),
            "memory": wire.node_memory(machine.memory(), root.get("memory", {})),
            "fs": wire.filesystem(node_fs),
            "runtime": self._runtime(images),
            "rlimit": wire.rlimit(machine.pids()),
        }

    def _runtime(self, images: ImageFilesystems) -> Json:
        if not images.images:
            raise FileNotFoundError("imagefs device is not found")
        containers = images.containers if self._deps.container_disk else ()
        return {
            "imageFs": self._image_fs(images.images[0]),
            "containerFs": self._image_fs((containers or images.images)[0]),
        }

    def _image_fs(self, usage: FilesystemUsage) -> Json:
        return wire.image_filesystem(self._deps.machine.filesystem(usage.mountpoint), usage)

    def _system_containers(self) -> list[Json]:
        path = self._deps.pods_cgroup
        used = self._cgroups.of(path) if path else None
        if used is None:
            return []
        return [{"name": PODS, "startTime": wire.shown_time(self._start_ns), **used}]

    def _pod(self, pod: Pod, usage: PodUsage, listed: RuntimePod, node_fs: FilesystemStats) -> Json:
        containers = {c.id: c.created_at_ns for c in listed.containers}
        rows = [self._pressed(pod, row) for row in usage.containers]
        parts = [self._container(row, containers, usage, node_fs) for row in rows]
        newest = max(listed.sandboxes, key=lambda s: s.created_at_ns)
        return {
            "podRef": {"name": listed.name, "namespace": listed.namespace, "uid": listed.uid},
            "startTime": wire.shown_time(newest.created_at_ns),
            "containers": parts,
            **self._pod_cgroup(pod, usage, parts),
            **network(usage.traffic),
            **self._volumes(pod, usage),
            "ephemeral-storage": wire.filesystem(node_fs, usage.ephemeral_storage),
            "process_stats": {"process_count": usage.processes},
        }

    def _pod_cgroup(self, pod: Pod, usage: PodUsage, parts: Sequence[Json]) -> Json:
        """CPU, memory, I/O and swap of the pod: of its cgroup, else from the runtime, else the sum
        of its containers."""
        path = self._cgroup(pod)
        used = self._cgroups.of(path) if path is not None else None
        if used is not None:
            return used
        sums = added_up(parts)
        if usage.memory is not None:
            sums["memory"] = wire.cgroup_memory(usage.memory, self._deps.clock.wall_ns())
        return sums

    def _cgroup(self, pod: Pod) -> str | None:
        """The path of the pod's cgroup; None: it has none, or only the runtime is asked."""
        stats = self._deps.stats
        if stats.pod_cgroup is None or stats.by_sandbox:
            return None
        return stats.pod_cgroup(pod)

    def _pressed(self, pod: Pod, row: ContainerUsage) -> ContainerUsage:
        """`row` with the pressure on the container's cgroup; without that, the runtime's
        (SRV-030.7)."""
        path = self._cgroup(pod)
        pressure = None if path is None else self._cgroups.pressure(path, row.container_id)
        if pressure is None:
            return row
        return replace(
            row,
            cpu_psi=pressure["cpu"],
            memory_psi=pressure["memory"],
            io_psi=pressure["io"],
            io_time_ns=self._deps.clock.wall_ns(),
        )

    def _volumes(self, pod: Pod, usage: PodUsage) -> Json:
        sizes = usage.files.volumes
        volumes = [
            self._volume(pod, volume, sizes[volume.name])
            for volume in pod.spec.volumes or ()
            if volume.name in sizes
        ]
        return {"volume": volumes} if volumes else {}

    def _container(
        self,
        row: ContainerUsage,
        created_ns: dict[str, int],
        usage: PodUsage,
        node_fs: FilesystemStats,
    ) -> Json:
        """The part of one container. `created_ns`: container ID -> its creation time."""
        core_ns, nano_cores = row.cpu_usage_core_ns, row.cpu_usage_nano_cores
        if nano_cores is None and core_ns is not None:
            nano_cores = self._cgroups.rates.rate(row.container_id, row.cpu_time_ns, core_ns)
        layer = None
        if row.rootfs_used_bytes is not None:
            layer = DiskUse(row.rootfs_used_bytes, row.rootfs_inodes_used or 0)
        now_ns = self._deps.clock.wall_ns()
        return {
            "name": row.name,
            "startTime": wire.shown_time(created_ns.get(row.container_id, 0)),
            "cpu": wire.container_cpu(row, nano_cores, now_ns),
            "memory": wire.container_memory(row, now_ns),
            "io": wire.container_io(row, now_ns),
            "rootfs": wire.filesystem(self._layer_fs(row), layer, row.rootfs_time_ns),
            "logs": wire.filesystem(node_fs, usage.files.logs.get(row.name, DiskUse())),
            "swap": wire.swap(row, now_ns),
        }

    def _layer_fs(self, row: ContainerUsage) -> FilesystemStats | None:
        try:
            return self._deps.machine.filesystem(row.rootfs_mountpoint)
        except OSError:
            return None

    def _volume(self, pod: Pod, volume: Volume, size: VolumeSize) -> Json:
        room = size.room if size.room is not None else self._room(pod, volume)
        document = {**wire.filesystem(room, size.used, size.time_ns), "name": volume.name}
        if size.claim:
            document["pvcRef"] = {"name": size.claim, "namespace": pod.metadata.namespace}
        return document

    def _room(self, pod: Pod, volume: Volume) -> FilesystemStats | None:
        """The filesystem of a volume that the kubelet made; None: it was unmounted since it was
        measured."""
        try:
            return self._deps.machine.filesystem(volume_dir(self._deps.root_dir, pod, volume))
        except OSError:
            return None


_ADDED: Final = {
    "cpu": ("usageNanoCores", "usageCoreNanoSeconds"),
    "memory": (
        *("availableBytes", "usageBytes", "workingSetBytes", "rssBytes"),
        *("pageFaults", "majorPageFaults"),
    ),
    "swap": ("swapAvailableBytes", "swapUsageBytes"),
}


def added_up(containers: Sequence[Json]) -> Json:
    """The sums of CPU, memory and swap of all containers, with the time of the last one."""
    sums_by_part = {}
    for part, names in _ADDED.items():
        rows = [container[part] for container in containers]
        sums = {name: sum(row.get(name, 0) for row in rows) for name in names}
        sums_by_part[part] = {"time": rows[-1]["time"] if rows else None, **sums}
    if containers:  # pressure cannot be added up
        sums_by_part["io"] = {"time": containers[-1]["io"]["time"]}
    return sums_by_part
