"""Thresholds, usage and a machine made of numbers for the tests of evictions."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from loops import virtual_loop

from fakecri import FakeNode
from kubeobjects.machine import FilesystemStats, MemoryStats
from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import Threshold
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    SandboxState,
)
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage, ImageFilesystems
from refkubelet.eviction.cycle import EvictionConfig
from refkubelet.eviction.evictor import KillRequest
from refkubelet.eviction.manager import EvictionDeps, EvictionManager
from refkubelet.eviction.observer import Observer
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats.provider import PodStats
from refkubelet.stats.usage import PodUsage
from simclock import Clock

MI = 1 << 20


def hard(signal: str, text: str, reclaim: str = "") -> Threshold:
    minimum = {signal: reclaim} if reclaim else {}
    (found,) = parse_thresholds({signal: text}, {}, {}, minimum)
    return found


def soft(signal: str, text: str, grace: str) -> Threshold:
    (found,) = parse_thresholds({}, {signal: text}, {signal: grace}, {})
    return found


def row(
    name: str = "main",
    *,
    pod: str = "web",
    memory: int | None = 0,
    disk: int | None = 0,
    inodes: int | None = 0,
) -> ContainerUsage:
    """What the container `name` of the pod `pod` uses."""
    return ContainerUsage(
        container_id=f"{pod}-{name}",
        name=name,
        pod_uid=f"uid-{pod}",
        pod_name=pod,
        pod_namespace="default",
        memory_working_set_bytes=memory,
        rootfs_used_bytes=disk,
        rootfs_inodes_used=inodes,
    )


def uses(memory: int | None = 0, disk: int | None = 0, inodes: int = 0) -> PodUsage:
    return PodUsage((row(memory=memory, disk=disk, inodes=inodes),))


def name_of(pod: Pod) -> str:
    assert pod.metadata is not None
    return pod.metadata.name or ""


class Node(FakeNode):
    """A machine, its pods and what they use; records what the manager does."""

    def __init__(self, *pods: Pod, total_mi: int = 1000, disk_mi: int = 1000) -> None:
        super().__init__(cpus=1, boot="b")
        loop = virtual_loop()
        self.clock: Clock = loop.clock
        self.pods = list(pods)
        self.memory_mi = dict.fromkeys(map(name_of, pods), 0)
        self.total_mi, self.disk_mi, self.disk_used_mi = total_mi, disk_mi, 0
        self.killed: list[tuple[float, str, int]] = []
        self.events: list[tuple[str, str, str]] = []
        self.reclaimed: list[str] = []
        self.kill_error: Exception | None = None
        self.finish_after_s = 0.0
        self.image_mount = "/root"
        self.mount_after: dict[str, str] = {}
        """What is reclaimed -> where the images are from then on."""
        self.last: tuple[Pod, ...] = ()
        self.devices = {"/root": "disk", "/images": "other disk"}
        self.rows: tuple[ContainerUsage, ...] | None = None
        """What the runtime tells of the containers' use, if not what `memory_mi` says."""
        self.asked_at_s: list[float] = []
        self.stats_error: Exception | None = None

    def memory(self) -> MemoryStats:
        used = sum(self.memory_mi.values()) * MI
        return MemoryStats(self.total_mi * MI, used, self.clock.wall_ns())

    def filesystem(self, path: str) -> FilesystemStats:
        if path not in self.devices:
            raise FileNotFoundError(path)
        free = (self.disk_mi - self.disk_used_mi) * MI
        return FilesystemStats(
            device=self.devices[path],
            capacity_bytes=self.disk_mi * MI,
            available_bytes=free,
            inodes=100,
            inodes_free=100,
            time_ns=self.clock.wall_ns(),
        )

    async def image_fs_info(self) -> ImageFilesystems:
        return ImageFilesystems((FilesystemUsage(self.image_mount, 0, 0, self.clock.wall_ns()),))

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        sandbox = ListedSandbox("s", SandboxState.READY)
        return tuple(
            RuntimePod(
                uid=uid(pod),
                name=name_of(pod),
                namespace="default",
                sandboxes=(sandbox,),
                containers=(
                    ListedContainer(f"{name_of(pod)}-main", "main", ContainerState.RUNNING),
                ),
            )
            for pod in self.pods
        )

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        self.asked_at_s.append(self.clock.monotonic_s())
        if self.stats_error is not None:
            raise self.stats_error
        if self.rows is not None:
            return self.rows
        return tuple(
            row(pod=name, memory=used * MI, disk=None, inodes=None)
            for name, used in self.memory_mi.items()
        )

    async def kill_pod(self, request: KillRequest) -> None:
        name = name_of(request.pod)
        self.killed.append((self.clock.monotonic_s(), name, request.grace_s))
        if self.kill_error is not None:
            raise self.kill_error
        del self.memory_mi[name]
        self.pods = [pod for pod in self.pods if pod is not request.pod]

    def finished(self, pod: Pod) -> bool:
        return self.clock.monotonic_s() - self.killed[-1][0] >= self.finish_after_s

    def pod_event(self, pod: Pod, event_type: Any, reason: str, message: str, **more: Any) -> None:
        self.events.append((name_of(pod), reason, message))

    def node_event(self, event_type: Any, reason: str, message: str) -> None:
        self.events.append(("node", reason, message))

    async def reclaim(self, what: str, frees_mi: int = 0) -> None:
        self.reclaimed.append(what)
        self.disk_used_mi -= frees_mi
        self.image_mount = self.mount_after.get(what, self.image_mount)

    def listed(self) -> tuple[Pod, ...]:
        """The same tuple as long as they are the same, as the pod manager has it."""
        now = tuple(self.pods)
        self.last = self.last if now == self.last else now
        return self.last

    def manager(self, frees_mi: int = 0, transition_s: float = 30, **settings: Any) -> Any:
        config = EvictionConfig.of(
            KubeletConfiguration(
                enforce_node_allocatable=(),
                eviction_pressure_transition_period_s=transition_s,
                **settings,
            )
        )
        deps = EvictionDeps(
            clock=self.clock,
            observer=Observer(self, "/root"),
            image_fs_info=self.image_fs_info,
            stats=PodStats(self, self),
            pods=self.listed,
            active_pods=lambda: tuple(self.pods),
            pod_is_finished=self.finished,
            kill_pod=self.kill_pod,
            events=self,
            reclaim={
                "containers": partial(self.reclaim, "containers"),
                "images": partial(self.reclaim, "images", frees_mi),
            },
        )
        return EvictionManager(config, deps)


MEMORY = {"eviction_hard": {"memory.available": "100Mi"}}
DISK = {"eviction_hard": {"nodefs.available": "100Mi"}}


async def run_until(manager: EvictionManager, when_s: float) -> None:
    """Let the manager run until that second."""
    try:
        async with asyncio.timeout_at(when_s):
            await manager.run()
    except TimeoutError:
        pass
