"""The summary of a node and its pods, as /stats/summary serves it.

Made anew for each request from the same sources that evictions look at (EVIC-020..029). CPU cores
in use are what the runtime says, or the difference to the request before.
What must never happen here: a summary changes anything, or costs anything while nobody asks.
Upstream: pkg/kubelet/server/stats/summary.go, pkg/kubelet/stats/cri_stats_provider.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from refkubelet.model.names import pod_volume_dir
from refkubelet.model.objects import Pod, uid
from refkubelet.node.machine import FilesystemStats, Machine
from refkubelet.runtime.records import ContainerUsage, FilesystemUsage, ImageFilesystems, RuntimePod
from refkubelet.stats import wire
from refkubelet.stats.cgroups import cpu_usage_ns, memory_dir, read_memory
from refkubelet.stats.files import EMPTY_DIR
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import DiskUse, PodUsage
from simtime import Clock

Json = dict[str, Any]
NODE: Final = "node"
PODS: Final = "pods"  # the name of the system container that holds all pods


@dataclass(frozen=True, slots=True)
class SummaryDeps:
    """What a summary is made from. `pods_cgroup`: path of the cgroup of all pods, "" for none;
    `container_disk`: containers may lie on another disk than images (EVIC-040)."""

    clock: Clock
    machine: Machine
    node_name: str
    root_dir: str
    stats: PodStats
    pods: Callable[[], Sequence[Pod]]
    image_fs_info: Callable[[], Awaitable[ImageFilesystems]]
    pods_cgroup: str = ""
    container_disk: bool = False


class SummaryProvider:
    """One per kubelet: it remembers CPU times of the request before."""

    def __init__(self, deps: SummaryDeps) -> None:
        self._deps = deps
        self._start_ns = deps.clock.wall_ns()
        self._cpu = CpuRates()

    async def summary(self, *, only_cpu_and_memory: bool = False) -> Json:
        """The whole summary. Raises `CriCallError`, and `OSError` when a disk cannot be found."""
        deps = self._deps
        pods = tuple(deps.pods())
        usage = await deps.stats.of(pods, memory=True, processes=True, files=True)
        listed = {pod.uid: pod for pod in await deps.stats.runtime.get_pods(all_states=True)}
        node_fs = deps.machine.filesystem(deps.root_dir)
        found = {
            "node": self._node(node_fs, await deps.image_fs_info()),
            "pods": [
                self._pod(pod, usage[uid(pod)], listed[uid(pod)], node_fs)
                for pod in pods
                if uid(pod) in usage and uid(pod) in listed
            ],
        }
        self._cpu.next()
        return wire.only_cpu_and_memory(found) if only_cpu_and_memory else found

    def _node(self, node_fs: FilesystemStats, images: ImageFilesystems) -> Json:
        machine, version = self._deps.machine, self._deps.machine.cgroup_version()
        root = read_memory(memory_dir(machine, ""), version)
        return {
            "nodeName": self._deps.node_name,
            "systemContainers": self._system_containers(),
            "startTime": wire.shown_time(self._start_ns),
            "cpu": self._cgroup_cpu(""),
            "memory": wire.node_memory(machine.memory(), root),
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
        path, machine = self._deps.pods_cgroup, self._deps.machine
        memory = path and read_memory(memory_dir(machine, path), machine.cgroup_version())
        if not memory:
            return []
        return [
            {
                "name": PODS,
                "startTime": wire.shown_time(self._start_ns),
                "cpu": self._cgroup_cpu(path),
                "memory": wire.cgroup_memory(memory, self._deps.clock.wall_ns()),
            }
        ]

    def _cgroup_cpu(self, path: str) -> Json:
        now_ns = self._deps.clock.wall_ns()
        used_ns = cpu_usage_ns(self._deps.machine, path)
        rate = None if used_ns is None else self._cpu.rate(f"{NODE}{path}", now_ns, used_ns)
        return wire.cpu(now_ns, used_ns, rate)

    def _pod(self, pod: Pod, usage: PodUsage, listed: RuntimePod, node_fs: FilesystemStats) -> Json:
        containers = {c.id: c.created_at_ns for c in listed.containers}
        parts = [self._container(row, containers, usage, node_fs) for row in usage.containers]
        memory = usage.memory
        now_ns = self._deps.clock.wall_ns()
        newest = max(listed.sandboxes, key=lambda s: s.created_at_ns)
        return {
            "podRef": {"name": listed.name, "namespace": listed.namespace, "uid": listed.uid},
            "startTime": wire.shown_time(newest.created_at_ns),
            "containers": parts,
            "cpu": self._added_cpu(parts),
            "memory": wire.cgroup_memory(memory, now_ns) if memory else _added_memory(parts),
            "volume": [
                self._volume(pod, name, seen.used, seen.time_ns)
                for name, seen in usage.files.volumes.items()
            ],
            "ephemeral-storage": wire.filesystem(node_fs, usage.ephemeral_storage),
            "process_stats": {"process_count": usage.processes},
        }

    def _container(
        self,
        row: ContainerUsage,
        created_ns: dict[str, int],
        usage: PodUsage,
        node_fs: FilesystemStats,
    ) -> Json:
        core_ns, nano_cores = row.cpu_usage_core_ns, row.cpu_usage_nano_cores
        if nano_cores is None and core_ns is not None:
            nano_cores = self._cpu.rate(row.container_id, row.cpu_time_ns, core_ns)
        layer = None
        if row.rootfs_used_bytes is not None:
            layer = DiskUse(row.rootfs_used_bytes, row.rootfs_inodes_used or 0)
        return {
            "name": row.name,
            "startTime": wire.shown_time(created_ns.get(row.container_id, 0)),
            "cpu": wire.cpu(row.cpu_time_ns, core_ns, nano_cores),
            "memory": wire.container_memory(row),
            "rootfs": wire.filesystem(self._layer_fs(row), layer, row.rootfs_time_ns),
            "logs": wire.filesystem(node_fs, usage.files.logs.get(row.name, DiskUse())),
            "swap": wire.swap(row),
        }

    def _layer_fs(self, row: ContainerUsage) -> FilesystemStats | None:
        try:
            return self._deps.machine.filesystem(row.rootfs_mountpoint)
        except OSError:
            return None

    def _volume(self, pod: Pod, name: str, used: DiskUse, time_ns: int) -> Json:
        path = pod_volume_dir(self._deps.root_dir, uid(pod), EMPTY_DIR, name)
        try:
            room = self._deps.machine.filesystem(path)
        except OSError:  # unmounted since it was measured
            room = None
        return {**wire.filesystem(room, used, time_ns), "name": name}

    def _added_cpu(self, containers: Sequence[Json]) -> Json:
        parts = [c["cpu"] for c in containers]
        return _added(parts, ("usageNanoCores", "usageCoreNanoSeconds"))


def _added_memory(containers: Sequence[Json]) -> Json:
    names = ("availableBytes", "usageBytes", "workingSetBytes", "rssBytes", "pageFaults")
    return _added([c["memory"] for c in containers], (*names, "majorPageFaults"))


def _added(parts: Sequence[Json], names: Sequence[str]) -> Json:
    """The sums, with the time of the last part."""
    time = parts[-1]["time"] if parts else None
    return {"time": time, **{n: sum(p.get(n, 0) for p in parts) for n in names}}


class CpuRates:
    """Cores in use, from two readings of the CPU time."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, int]] = {}
        self._now: dict[str, tuple[int, int]] = {}

    def rate(self, key: str, time_ns: int, used_ns: int) -> int | None:
        """Nano cores since the reading before; None without one, or with an older value there."""
        self._now[key] = (time_ns, used_ns)
        before = self._before.get(key)
        if before is None or time_ns <= before[0] or used_ns < before[1]:
            return None
        return (used_ns - before[1]) * 10**9 // (time_ns - before[0])

    def next(self) -> None:
        """A summary is done: its readings are those before; what is gone is forgotten."""
        self._before, self._now = self._now, {}
