"""The eviction manager's cycles in virtual time, on a machine made of numbers."""

from __future__ import annotations

import pytest
from eviction_world import DISK, MEMORY, Node, row, run_until
from pods import container, make_pod

from refkubelet.eviction.manager import PressureCondition

pytestmark = pytest.mark.virtual_time

MI = 1 << 20


async def test_the_hungriest_pod_goes_and_the_node_says_why_EVIC_055_EVIC_090() -> None:
    node = Node(make_pod(name="calm"), make_pod(name="hog"))
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
    node = Node(*(make_pod(name=name) for name in "abc"))
    node.memory_mi.update(a=320, b=310, c=300)
    node.total_mi = 500
    await run_until(node.manager(**MEMORY), 5)
    assert [(name, grace) for _, name, grace in node.killed] == [("a", 1), ("b", 1)]
    assert node.killed[1][0] < 5  # the cleanup was waited for, not the interval


async def test_cleanup_is_waited_for_but_not_for_ever_EVIC_051() -> None:
    node = Node(make_pod(name="a"), make_pod(name="b"))
    node.memory_mi.update(a=960, b=950)
    node.finish_after_s = 100
    await run_until(node.manager(**MEMORY), 50)
    assert [time_s for time_s, _, _ in node.killed] == [0.0, 30.0]


async def test_critical_pods_are_never_ended_EVIC_085_EVIC_057() -> None:
    static = make_pod(name="static", static=True)
    high = make_pod(name="high", priority=2_000_000_000)
    node = Node(static, high)
    node.memory_mi.update(static=500, high=480)
    manager = node.manager(**MEMORY)
    await run_until(manager, 15)
    assert node.killed == []
    assert [reason for _, reason, _ in node.events] == ["EvictionThresholdMet"] * 2
    node.pods.append(make_pod(name="plain"))
    node.memory_mi["plain"] = 1
    await run_until(manager, 25)
    assert [name for _, name, _ in node.killed] == ["plain"]


async def test_conditions_and_admission_follow_the_transition_period_EVIC_110_EVIC_112() -> None:
    node = Node(make_pod(name="hog"))
    node.memory_mi["hog"] = 950
    manager = node.manager(**MEMORY)
    newcomer = make_pod(name="newcomer")
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
    node = Node(make_pod(name="hog", terminationGracePeriodSeconds=60))
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
    node = Node(make_pod(name="a"))
    node.disk_used_mi = 950
    await run_until(node.manager(frees_mi=100, **DISK), 5)
    assert node.reclaimed == ["containers", "images"]
    assert node.killed == []
    assert [event[2] for event in node.events] == ["Attempting to reclaim ephemeral-storage"]


async def test_the_layout_of_the_disks_is_decided_once_EVIC_040() -> None:
    node = Node(make_pod(name="a"))
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
    node = Node(make_pod(name="a"))
    node.disk_used_mi = 950
    await run_until(node.manager(frees_mi=10, **DISK), 5)
    assert [name for _, name, _ in node.killed] == ["a"]


async def test_an_unreadable_image_disk_stops_everything_EVIC_041() -> None:
    node = Node(make_pod(name="hog"))
    node.memory_mi["hog"] = 950
    node.image_mount = "/nowhere"
    manager = node.manager(**MEMORY)
    await run_until(manager, 25)
    assert (node.killed, manager.conditions) == ([], ())
    node.image_mount = "/root"
    await run_until(manager, 35)
    assert [name for _, name, _ in node.killed] == ["hog"]


async def test_a_kill_that_times_out_counts_EVIC_086_EVIC_089() -> None:
    node = Node(make_pod(name="hog"))
    node.memory_mi["hog"] = 950
    node.kill_error = RuntimeError("still running")
    evicted = await node.manager(**MEMORY).synchronize()
    assert [pod.metadata.name for pod in evicted] == ["hog"]


async def test_offenders_of_storage_limits_go_first_and_together_EVIC_055_EVIC_102() -> None:
    limited = container(storage="/1Mi")
    node = Node(*(make_pod(limited, name=name) for name in "ab"), make_pod(name="hog"))
    node.memory_mi["hog"] = 950
    node.rows = (*(row(pod=n, disk=2 * MI) for n in "ab"), row(pod="hog", memory=950 * MI))
    evicted = await node.manager(**MEMORY).synchronize()
    assert [pod.metadata.name for pod in evicted] == ["a", "b"]
    assert [grace for _, _, grace in node.killed] == [1, 1]
    assert {reason for _, reason, _ in node.events} == {"Evicted"}


async def test_a_limit_that_comes_late_counts_EVIC_102() -> None:
    """The same pods are not looked at again, other ones always are."""
    node = Node(make_pod(name="calm"))
    node.rows = (row(pod="late", disk=2 * MI),)
    manager = node.manager(**MEMORY)
    for _ in range(3):
        assert await manager.synchronize() == ()
    node.pods.append(make_pod(container(storage="/1Mi"), name="late"))
    assert [pod.metadata.name for pod in await manager.synchronize()] == ["late"]
