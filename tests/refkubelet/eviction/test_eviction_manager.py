"""The eviction manager's cycles in virtual time, on a machine made of numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakecri import FakeNode
from refkubelet.config.kubelet_config import KubeletConfiguration
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
from refkubelet.eviction.manager import EvictionDeps, EvictionManager, PressureCondition
from refkubelet.eviction.observer import Observer
from refkubelet.host.machine import FilesystemStats, MemoryStats
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.stats.provider import PodStats
from simtime import Clock, VirtualLoop

pytestmark = pytest.mark.virtual_time

MI = 1 << 20


def make_pod(name: str, **spec: Any) -> Pod:
    annotations = spec.pop("annotations", {})
    return decode_pod(
        {
            "metadata": {"name": name, "namespace": "n", "uid": name, "annotations": annotations},
            "spec": {"containers": [{"name": "main"}], **spec},
        }
    )


class Node(FakeNode):
    """A machine, its pods and what they use; records what the manager does."""

    def __init__(self, *pods: Pod, total_mi: int = 1000, disk_mi: int = 1000) -> None:
        super().__init__(cpus=1, boot="b")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.clock: Clock = loop.clock
        self.pods = list(pods)
        self.memory_mi = {pod.metadata.name or "": 0 for pod in pods if pod.metadata}
        self.total_mi, self.disk_mi, self.disk_used_mi = total_mi, disk_mi, 0
        self.killed: list[tuple[float, str, int]] = []
        self.events: list[tuple[str, str, str]] = []
        self.reclaimed: list[str] = []
        self.kill_error: Exception | None = None
        self.finish_after_s = 0.0
        self.image_mount = "/root"
        self.last: tuple[Pod, ...] = ()
        self.devices = {"/root": "disk", "/images": "other disk"}

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
                uid=name,
                name=name,
                namespace="n",
                sandboxes=(sandbox,),
                containers=(ListedContainer(name, "c", ContainerState.RUNNING),),
            )
            for name in (pod.metadata.name or "" for pod in self.pods if pod.metadata)
        )

    async def container_stats(self) -> tuple[ContainerUsage, ...]:
        return tuple(
            ContainerUsage(
                container_id=name,
                name="main",
                pod_uid=name,
                pod_name=name,
                pod_namespace="n",
                memory_working_set_bytes=used * MI,
            )
            for name, used in self.memory_mi.items()
        )

    async def kill_pod(self, request: KillRequest) -> None:
        assert request.pod.metadata is not None
        name = request.pod.metadata.name or ""
        self.killed.append((self.clock.monotonic_s(), name, request.grace_s))
        if self.kill_error is not None:
            raise self.kill_error
        del self.memory_mi[name]
        self.pods = [pod for pod in self.pods if pod is not request.pod]

    def finished(self, pod: Pod) -> bool:
        return self.clock.monotonic_s() - self.killed[-1][0] >= self.finish_after_s

    def pod_event(self, pod: Pod, event_type: Any, reason: str, message: str, **more: Any) -> None:
        assert pod.metadata is not None
        self.events.append((pod.metadata.name or "", reason, message))

    def node_event(self, event_type: Any, reason: str, message: str) -> None:
        self.events.append(("node", reason, message))

    def reclaim(self, what: str, frees_mi: int = 0) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            self.reclaimed.append(what)
            self.disk_used_mi -= frees_mi

        return run

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
                "containers": self.reclaim("containers"),
                "images": self.reclaim("images", frees_mi),
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


async def test_the_hungriest_pod_goes_and_the_node_says_why_EVIC_055_EVIC_090() -> None:
    node = Node(make_pod("calm"), make_pod("hog"))
    manager = node.manager(**MEMORY)
    node.memory_mi.update(calm=100, hog=850)
    await run_until(manager, 25)
    assert node.killed == [(0.0, "hog", 1)]
    assert [event[:2] for event in node.events] == [
        ("node", "EvictionThresholdMet"),
        ("hog", "Evicted"),
    ]
    assert node.events[0][2] == "Attempting to reclaim memory"  # EVIC-056
    assert manager.conditions == ("MemoryPressure",)


async def test_one_pod_per_cycle_and_no_pause_after_it_EVIC_050_EVIC_086() -> None:
    node = Node(*(make_pod(name) for name in "abc"))
    node.memory_mi.update(a=320, b=310, c=300)
    node.total_mi = 500
    await run_until(node.manager(**MEMORY), 5)
    assert [(name, grace) for _, name, grace in node.killed] == [("a", 1), ("b", 1)]
    assert node.killed[1][0] < 5  # the cleanup was waited for, not the interval


async def test_cleanup_is_waited_for_but_not_for_ever_EVIC_051() -> None:
    node = Node(make_pod("a"), make_pod("b"))
    node.memory_mi.update(a=960, b=950)
    node.finish_after_s = 100
    await run_until(node.manager(**MEMORY), 50)
    assert [time_s for time_s, _, _ in node.killed] == [0.0, 30.0]


async def test_critical_pods_are_never_ended_EVIC_085_EVIC_057() -> None:
    static = make_pod("static", annotations={"kubernetes.io/config.source": "file"})
    high = make_pod("high", priority=2_000_000_000)
    node = Node(static, high)
    node.memory_mi.update(static=500, high=480)
    manager = node.manager(**MEMORY)
    await run_until(manager, 15)
    assert node.killed == []
    assert [reason for _, reason, _ in node.events] == ["EvictionThresholdMet"] * 2
    node.pods.append(make_pod("plain"))
    node.memory_mi["plain"] = 1
    await run_until(manager, 25)
    assert [name for _, name, _ in node.killed] == ["plain"]


async def test_conditions_and_admission_follow_the_transition_period_EVIC_110_EVIC_112() -> None:
    node = Node(make_pod("hog"))
    node.memory_mi["hog"] = 950
    manager = node.manager(**MEMORY)
    newcomer = make_pod("newcomer")
    assert manager.admit(newcomer) is None
    await run_until(manager, 25)
    assert manager.admit(newcomer).message == "The node had condition: [MemoryPressure]. "
    assert manager.node_conditions() == (
        PressureCondition("MemoryPressure", "True"),
        PressureCondition("DiskPressure", "False"),
        PressureCondition("PIDPressure", "False"),
    )  # EVIC-060, EVIC-061, EVIC-062
    await run_until(manager, 55)
    assert manager.admit(newcomer) is None


async def test_soft_threshold_waits_and_takes_the_smaller_grace_EVIC_087_golden_s22b() -> None:
    node = Node(make_pod("hog", terminationGracePeriodSeconds=60))
    node.memory_mi["hog"] = 950
    manager = node.manager(
        eviction_soft={"memory.available": "100Mi"},
        eviction_soft_grace_period={"memory.available": "15s"},
        eviction_max_pod_grace_period=4,
    )
    await run_until(manager, 5)
    assert manager.conditions == ("MemoryPressure",)
    await run_until(manager, 60)
    assert [(name, grace) for _, name, grace in node.killed] == [("hog", 4)]


async def test_garbage_goes_before_pods_EVIC_070_EVIC_071_EVIC_072() -> None:
    node = Node(make_pod("a"))
    node.disk_used_mi = 950
    await run_until(node.manager(frees_mi=100, **DISK), 5)
    assert node.reclaimed == ["containers", "images"]
    assert node.killed == []
    assert [event[2] for event in node.events] == ["Attempting to reclaim ephemeral-storage"]


async def test_the_layout_of_the_disks_is_decided_once_EVIC_040() -> None:
    node = Node(make_pod("a"))
    node.image_mount = "/images"  # images on a disk of their own: removing some frees no nodefs
    manager = node.manager(frees_mi=100, **DISK)
    await manager.synchronize()
    await node.clock.sleep(10)
    node.image_mount = "/root"
    node.disk_used_mi = 950
    await manager.synchronize()
    assert node.reclaimed == []
    assert [name for _, name, _ in node.killed] == ["a"]


async def test_a_pod_goes_when_garbage_is_not_enough_EVIC_070() -> None:
    node = Node(make_pod("a"))
    node.disk_used_mi = 950
    await run_until(node.manager(frees_mi=10, **DISK), 5)
    assert [name for _, name, _ in node.killed] == ["a"]


async def test_an_unreadable_image_disk_stops_everything_EVIC_041() -> None:
    node = Node(make_pod("hog"))
    node.memory_mi["hog"] = 950
    node.image_mount = "/nowhere"
    manager = node.manager(**MEMORY)
    await run_until(manager, 25)
    assert (node.killed, manager.conditions) == ([], ())
    node.image_mount = "/root"
    await run_until(manager, 35)
    assert [name for _, name, _ in node.killed] == ["hog"]


async def test_a_kill_that_times_out_counts_EVIC_086_EVIC_089() -> None:
    node = Node(make_pod("hog"))
    node.memory_mi["hog"] = 950
    node.kill_error = RuntimeError("still running")
    evicted = await node.manager(**MEMORY).synchronize()
    assert [pod.metadata.name for pod in evicted] == ["hog"]


async def test_offenders_of_storage_limits_go_first_and_together_EVIC_055_EVIC_102() -> None:
    limits = {"limits": {"ephemeral-storage": "1Mi"}}
    containers = [{"name": "main", "resources": limits}]
    node = Node(*(make_pod(name, containers=containers) for name in "ab"), make_pod("hog"))
    node.memory_mi["hog"] = 950

    async def stats() -> tuple[ContainerUsage, ...]:
        rows = [
            ContainerUsage(
                container_id=n,
                name="main",
                pod_uid=n,
                pod_name=n,
                pod_namespace="n",
                memory_working_set_bytes=0,
                memory_time_ns=0,
                cpu_usage_core_ns=None,
                cpu_usage_nano_cores=None,
                rootfs_used_bytes=2 * MI,
            )
            for n in "ab"
        ]
        return (
            *rows,
            ContainerUsage(
                container_id="hog",
                name="main",
                pod_uid="hog",
                pod_name="hog",
                pod_namespace="n",
                memory_working_set_bytes=950 * MI,
            ),
        )

    node.container_stats = stats  # type: ignore[method-assign]
    evicted = await node.manager(**MEMORY).synchronize()
    assert [pod.metadata.name for pod in evicted] == ["a", "b"]
    assert [grace for _, _, grace in node.killed] == [1, 1]
    assert {reason for _, reason, _ in node.events} == {"Evicted"}


async def test_a_limit_that_comes_late_counts_EVIC_102() -> None:
    """The same pods are not looked at again, other ones always are."""
    node = Node(make_pod("calm"))

    async def stats() -> tuple[ContainerUsage, ...]:
        return (
            ContainerUsage(
                container_id="late",
                name="main",
                pod_uid="late",
                pod_name="late",
                pod_namespace="n",
                memory_working_set_bytes=0,
                memory_time_ns=0,
                cpu_usage_core_ns=None,
                cpu_usage_nano_cores=None,
                rootfs_used_bytes=2 * MI,
            ),
        )

    node.container_stats = stats  # type: ignore[method-assign]
    manager = node.manager(**MEMORY)
    for _ in range(3):
        assert await manager.synchronize() == ()
    resources = {"limits": {"ephemeral-storage": "1Mi"}}
    node.pods.append(make_pod("late", containers=[{"name": "main", "resources": resources}]))
    assert [pod.metadata.name for pod in await manager.synchronize()] == ["late"]
