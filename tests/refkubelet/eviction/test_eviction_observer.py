"""Observer, notifications, trace, metrics and layouts of the eviction manager."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest
from eviction_world import DISK, MEMORY, MI, Node, row, run_until
from loops import virtual_loop
from pods import container, make_pod

from fakecri import FakeNode
from fakecri.cgroupfs import CgroupFS
from kubeobjects.machine import FilesystemStats
from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import Threshold, ThresholdValue
from refkubelet.cri.target import CriCallError
from refkubelet.cri.usage import FilesystemUsage, ImageFilesystems
from refkubelet.eviction.cycle import Observation
from refkubelet.eviction.layout import (
    Layout,
)
from refkubelet.eviction.notifier import MemoryNotifications, notification_bytes
from refkubelet.eviction.observer import Observer

pytestmark = pytest.mark.virtual_time

GI = 1 << 30


def images(mount: str = "/images", containers: str = "") -> ImageFilesystems:
    found = (FilesystemUsage(containers, 1, 1, 9),) if containers else ()
    return ImageFilesystems((FilesystemUsage(mount, 1, 1, 5),), found)


def test_processes_are_looked_at_when_a_threshold_needs_them_EVIC_025() -> None:
    class Machine(FakeNode):
        def pids(self) -> Any:
            raise AssertionError("processes are not to be counted")

    assert "pid.available" not in Observer(Machine(), "/").observe(images(), {"x"}).signals
    seen = Observer(FakeNode(pid_limit=1000), "/").observe(images(), {"pid.available"})
    assert seen.signals["pid.available"] == Observation(900, 1000, 0)


def machine_with_pods(limit: str) -> FakeNode:
    machine = FakeNode()
    machine.cgroups = CgroupFS(1, controllers=["memory"])
    group = machine.cgroup_root() / "memory" / "kubepods"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(limit)
    machine.cgroups.spawn("/kubepods").set_usage(memory_bytes=30 * MI)
    return machine


@pytest.mark.parametrize(
    ("limit", "path", "wanted"),
    [
        (str(100 * MI), "/kubepods", Observation(70 * MI, 100 * MI, 0)),
        ("-1", "/kubepods", None),  # EVIC-027
        (str(100 * MI), "/gone", None),
        (str(100 * MI), "", None),
    ],
)
def test_allocatable_memory_EVIC_021_EVIC_027(limit: str, path: str, wanted: Any) -> None:
    signal = "allocatableMemory.available"
    observer = Observer(machine_with_pods(limit), "/", path)
    assert observer.observe(images(), {signal}).signals.get(signal) == wanted
    assert signal not in observer.observe(images(), {"nodefs.available"}).signals


def test_a_disk_for_containers_of_crio_alone_EVIC_024_EVIC_040_EVIC_046() -> None:
    class Machine(FakeNode):
        def filesystem(self, path: str) -> Any:
            return FilesystemStats(
                device=path,
                capacity_bytes=len(path),
                available_bytes=1,
                inodes=3,
                inodes_free=2,
                time_ns=0,
            )

    both = images("/images", "/containers")
    alone = Observer(Machine(), "/root").observe(both, set())
    assert alone.layout is Layout.DEDICATED
    assert alone.signals["containerfs.available"] == Observation(1, len("/images"), 5)
    split = Observer(Machine(), "/root", may_split=True).observe(both, set())
    assert split.layout is Layout.SPLIT
    assert split.signals["imagefs.available"] == Observation(1, len("/images"), 5)
    assert split.signals["containerfs.available"] == Observation(1, len("/containers"), 9)


async def test_copies_take_part_from_the_second_cycle_on_EVIC_043() -> None:
    node = Node(make_pod(name="a"), make_pod(name="b"))
    node.disk_used_mi = 950
    manager = node.manager(**DISK)
    await manager.synchronize()
    assert {t.signal for t in manager._memory.met} == {"nodefs.available"}
    await node.clock.sleep(10)
    await manager.synchronize()
    assert {t.signal for t in manager._memory.met} == {
        "nodefs.available",
        "containerfs.available",
    }


async def test_without_thresholds_and_limits_nobody_looks_EVIC_050() -> None:
    node = Node(make_pod(name="a"))
    node.image_mount = "/nowhere"  # looking would fail
    assert await node.manager(local_storage_capacity_isolation=False).synchronize() == ()
    with pytest.raises(FileNotFoundError):
        await node.manager(local_storage_capacity_isolation=True).synchronize()


async def test_limits_are_not_looked_at_when_switched_off_EVIC_102() -> None:
    node = Node(make_pod(container(storage="/1Mi"), name="a"))
    await node.manager(**MEMORY, local_storage_capacity_isolation=False).synchronize()
    assert node.asked_at_s == []
    await node.manager(**MEMORY).synchronize()
    assert len(node.asked_at_s) == 1


async def test_a_critical_pod_above_its_limits_lives_EVIC_085_EVIC_100() -> None:
    node = Node(make_pod(container(storage="/1Mi"), name="vital", priority=2 * 10**9))
    node.rows = (row(pod="vital", disk=2 * MI),)
    manager = node.manager(**MEMORY)
    assert await manager.synchronize() == ()
    assert (node.killed, node.events, dict(manager.metrics.evictions)) == ([], [], {})


async def test_statistics_are_asked_for_when_somebody_may_go_EVIC_029() -> None:
    node = Node(make_pod(name="a"))
    manager = node.manager(**MEMORY)
    await run_until(manager, 25)
    assert node.asked_at_s == []
    node.memory_mi["a"] = 950
    await run_until(manager, 35)
    assert len(node.asked_at_s) == 1


async def test_without_statistics_nothing_happens_and_nothing_is_remembered_EVIC_041() -> None:
    node = Node(make_pod(name="hog"))
    node.memory_mi["hog"] = 950
    node.stats_error = CriCallError("ListContainerStats", "UNAVAILABLE", "no")
    manager = node.manager(**MEMORY)
    await run_until(manager, 15)
    assert (node.killed, node.events, manager.conditions) == ([], [], ())
    node.stats_error = None
    await run_until(manager, 25)
    assert [name for _, name, _ in node.killed] == ["hog"]


async def test_a_look_that_fails_after_a_reclaim_was_not_enough_EVIC_070() -> None:
    node = Node(make_pod(name="a"))
    node.disk_used_mi = 950
    manager = node.manager(frees_mi=900, **DISK)
    node.mount_after["images"] = "/nowhere"
    await manager.synchronize()
    assert [name for _, name, _ in node.killed] == ["a"]


async def test_a_step_that_fails_does_not_keep_the_next_from_its_turn_EVIC_070() -> None:
    node = Node(make_pod(name="a"))
    node.disk_used_mi = 950
    manager = node.manager(frees_mi=100, **DISK)
    manager._deps.reclaim["containers"] = AsyncMock(side_effect=RuntimeError("no"))
    await manager.synchronize()
    assert (node.reclaimed, node.killed) == (["images"], [])


async def test_minimum_reclaim_counts_after_a_reclaim_EVIC_070_EVIC_005() -> None:
    node = Node(make_pod(name="a"))
    node.disk_used_mi = 950
    reclaim = {"eviction_minimum_reclaim": {"nodefs.available": "100Mi"}}
    await node.manager(frees_mi=60, **DISK, **reclaim).synchronize()
    assert [name for _, name, _ in node.killed] == ["a"]


def test_usage_at_which_the_kernel_tells_EVIC_058() -> None:
    quantity = Threshold("memory.available", ThresholdValue("100", quantity=100))
    share = Threshold("memory.available", ThresholdValue("10%", percent=10.0))
    assert notification_bytes(quantity, 1000, 30) == 930
    assert notification_bytes(share, 1000, 0) == 900


class Watched(FakeNode):
    """Notes what the kernel is told, and forgets what is ended."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(memory_bytes=GI)
        self.cgroups = machine_with_pods(str(100 * MI)).cgroups
        self.cgroups_version = 1
        self.told: list[tuple[str, int]] = []
        self.ended = 0
        self.fails = fails

    def watch_memory(self, cgroup: str, usage_bytes: int, passed: Any) -> Any:
        if self.fails:
            raise PermissionError("no")
        self.told.append((cgroup, usage_bytes))

        def stop() -> None:
            self.ended += 1

        return stop


def notifications(machine: FakeNode, thresholds: Any) -> MemoryNotifications:
    loop = virtual_loop()
    observer = Observer(machine, "/", "/kubepods")
    return MemoryNotifications(observer, thresholds, loop.clock, lambda: None)


BOTH = parse_thresholds(
    {"memory.available": "10Mi", "nodefs.available": "1Gi"},
    {},
    soft_grace_period={},
    minimum_reclaim={},
    enforced=["pods"],
)


async def test_the_kernel_is_told_anew_at_most_every_ten_seconds_EVIC_058() -> None:
    machine = Watched()
    watching = notifications(machine, BOTH)
    watching.update()
    assert machine.told == [("", GI - 10 * MI), ("/kubepods", 90 * MI)]
    await asyncio.sleep(10)
    watching.update()
    assert (len(machine.told), machine.ended) == (2, 0)
    await asyncio.sleep(0.5)
    watching.update()
    assert (len(machine.told), machine.ended) == (4, 2)
    watching.close()
    assert machine.ended == 4


async def test_a_kernel_that_does_not_tell_is_no_reason_to_stop_EVIC_058() -> None:
    machine = Watched(fails=True)
    notifications(machine, BOTH).update()
    limitless = Watched()
    limitless.cgroups = machine_with_pods("-1").cgroups
    notifications(limitless, BOTH).update()
    assert limitless.told == [("", GI - 10 * MI)]


async def test_a_notification_is_a_cycle_at_once_EVIC_058() -> None:
    node = Node(make_pod(name="hog"))
    node.cgroups_version = 1
    passed: list[Any] = []

    def watch_memory(cgroup: str, usage_bytes: int, call: Any) -> Any:
        passed.append(call)
        return lambda: None

    node.watch_memory = watch_memory  # type: ignore[method-assign]
    manager = node.manager(**MEMORY, kernel_memcg_notification=True)
    loop = asyncio.get_running_loop()

    def rise() -> None:
        node.memory_mi["hog"] = 950
        passed[0]()

    loop.call_later(3.5, rise)
    await run_until(manager, 9)
    assert [when_s for when_s, _, _ in node.killed] == [3.5]


async def test_there_are_no_notifications_with_cgroup_v2_EVIC_058() -> None:
    node = Node(make_pod(name="hog"))
    node.cgroups_version = 2
    assert node.manager(**MEMORY, kernel_memcg_notification=True)._notifications is None
    node.cgroups_version = 1
    assert node.manager(**MEMORY)._notifications is None
