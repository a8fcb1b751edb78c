"""The sync loop: one event at a time, standing still in trouble, never stopped by a handler."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from loop_world import LoopWorld, running_loop
from pods import make_pod

from kubeobjects.structs import replace
from refkubelet.model.pod_updates import PodOperation, PodSource, PodUpdate
from refkubelet.model.probe_results import ProbeResult, ProbeUpdate
from refkubelet.pleg.compute import PodLifecycleEvent, PodLifecycleEventType
from refkubelet.sync_loop.inputs import Inputs

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    ("operation", "handler"),
    [
        (PodOperation.ADD, "handle_pod_additions"),
        (PodOperation.UPDATE, "handle_pod_updates"),
        (PodOperation.DELETE, "handle_pod_updates"),
        (PodOperation.REMOVE, "handle_pod_removes"),
        (PodOperation.RECONCILE, "handle_pod_reconcile"),
    ],
)
async def test_each_operation_has_its_handler_LIFE_001_SRC_066(
    operation: PodOperation, handler: str
) -> None:
    async with running_loop() as w:
        await w.queues.config.put(PodUpdate(operation, PodSource.FILE))
        await w.clock.sleep(0.1)
        assert w.did("added") == [handler]
        w.loop._seen.ready()
        assert w.seen == {PodSource.FILE}  # SRC-070


async def test_ticks_LIFE_004() -> None:
    async with running_loop() as w:
        w.all_seen = True
        await w.clock.sleep(6.5)
        assert w.times_s("sync_due") == pytest.approx([1, 2, 3, 4, 5, 6])
        assert w.times_s("housekeeping") == pytest.approx([2, 4, 6])


async def test_no_housekeeping_before_all_sources_are_seen_SRC_071() -> None:
    async with running_loop() as w:
        await w.clock.sleep(10.5)
        assert w.times_s("housekeeping") == []
        w.all_seen = True
        await w.clock.sleep(2.5)
        assert w.times_s("housekeeping") == [12]


async def test_nothing_is_read_while_the_runtime_is_in_trouble_LIFE_006_NODE_051() -> None:
    async with running_loop() as w:
        await w.clock.sleep(0.5)
        w.error = "container runtime is down"
        await w.clock.sleep(1)
        before = len(w.log)
        await w.queues.config.put(PodUpdate(PodOperation.ADD, PodSource.FILE))
        await w.clock.sleep(60)
        assert len(w.log) <= before + 1  # the event that was being waited for
        w.error = None
        await w.clock.sleep(5.1)
        assert "handle_pod_additions" in w.did()


async def test_waiting_for_the_runtime_doubles_from_100_ms_to_5_s_LIFE_006() -> None:
    world = LoopWorld()
    asked_s: list[float] = []

    def errors() -> str | None:
        asked_s.append(world.clock.monotonic_s())
        return "down"

    world.loop._deps = replace(world.loop._deps, runtime_errors=errors)
    running = asyncio.create_task(world.loop.run())
    await world.clock.sleep(30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    gaps = [round(b - a, 3) for a, b in pairwise(asked_s)]
    assert gaps[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def update(operation: PodOperation, *names: str) -> PodUpdate:
    pods = tuple(make_pod(name=name, uid=name) for name in names)
    return PodUpdate(operation, PodSource.API, pods)


async def test_additions_that_take_long_hold_up_only_what_must_follow_them_LIFE_010() -> None:
    async with running_loop() as w:
        w.all_seen = True
        await w.queues.config.put(update(PodOperation.ADD, "old"))
        await w.clock.sleep(0.5)
        w.log.clear()
        w.recording.additions_take_s = 10.2
        for one in (
            update(PodOperation.ADD, "a", "b"),
            update(PodOperation.RECONCILE, "b"),  # waits: it is among those that are added
            update(PodOperation.ADD, "c"),
            update(PodOperation.REMOVE, "c"),  # waits
            update(PodOperation.UPDATE, "old"),  # waits: it may ask for other resources
            update(PodOperation.REMOVE, "old"),  # waits for what comes before
            update(PodOperation.DELETE, "older"),  # passes
        ):
            await w.queues.config.put(one)
        await w.queues.pleg.put(PodLifecycleEvent("u", PodLifecycleEventType.CONTAINER_DIED))
        await w.clock.sleep(9)
        assert sorted(w.did()) == ["handle_pod_additions", "handle_pod_updates", "pleg_event"]
        assert len(w.times_s("sync_due")) == 9
        await w.clock.sleep(15)
        assert w.did("pleg_event", "housekeeping") == [
            *("handle_pod_additions", "handle_pod_updates", "added", "handle_pod_reconcile"),
            *(
                "handle_pod_additions",
                "added",
                "handle_pod_removes",
                "handle_pod_updates",
                "handle_pod_removes",
            ),
        ]
        # Not while pods may be half admitted: at 10.7 s, between two batches, and in the end.
        rounds = w.did(
            "pleg_event",
            "handle_pod_additions",
            "handle_pod_reconcile",
            "handle_pod_updates",
            "handle_pod_removes",
        )
        assert rounds[:4] == ["added", "housekeeping", "added", "housekeeping"]


@pytest.mark.parametrize(("every_s", "rounds"), [(2.0, 290), (1.0, 195)])
async def test_housekeeping_has_its_turn_however_many_pods_are_admitted_LIFE_015(
    every_s: float, rounds: int
) -> None:
    """An admission takes 1.5 s; pods that come each second are more than can be admitted."""

    async with running_loop() as w:
        w.all_seen = True
        w.recording.additions_take_s = 1.5
        await w.clock.sleep(0.9)
        for number in range(int(600 / every_s)):
            await w.queues.config.put(update(PodOperation.ADD, f"pod-{number}"))
            await w.clock.sleep(every_s)
        assert rounds <= len(w.times_s("housekeeping")) <= 301
        assert all(
            then == "added" for what, then in pairwise(w.did()) if what == "handle_pod_additions"
        )


async def test_additions_are_waited_for_a_second_LIFE_010() -> None:
    """Nothing changes where admission is quick."""

    async with running_loop() as w:
        w.recording.additions_take_s = 0.9
        await w.queues.config.put(update(PodOperation.ADD, "a"))
        await w.clock.sleep(0.1)
        await w.queues.pleg.put(PodLifecycleEvent("u", PodLifecycleEventType.CONTAINER_DIED))
        await w.clock.sleep(2)
        assert w.did() == ["handle_pod_additions", "added", "pleg_event"]


async def test_nothing_passes_additions_before_its_source_is_seen_SRC_070() -> None:
    async with running_loop() as w:
        w.recording.additions_take_s = 5
        await w.queues.config.put(update(PodOperation.ADD, "a"))
        await w.queues.config.put(update(PodOperation.RECONCILE, "b"))
        await w.clock.sleep(3)
        w.loop._seen.ready()
        assert w.seen == frozenset()
        assert w.did() == ["handle_pod_additions"]
        await w.clock.sleep(3)
        w.loop._seen.ready()
        assert w.seen == {PodSource.API}
        assert w.did() == ["handle_pod_additions", "added", "handle_pod_reconcile"]


async def test_nothing_passes_additions_while_resizes_are_pending_CG_061() -> None:
    async with running_loop() as w:
        await w.queues.config.put(update(PodOperation.ADD, "old"))
        await w.clock.sleep(0.1)
        w.recording.additions_take_s, w.recording.resizes_pend = 5, True
        await w.queues.config.put(update(PodOperation.ADD, "a"))
        await w.queues.config.put(update(PodOperation.REMOVE, "old"))
        await w.clock.sleep(6)
        assert w.did() == [
            "handle_pod_additions",
            "added",
            "handle_pod_additions",
            "added",
            "handle_pod_removes",
        ]


async def test_additions_under_way_end_with_the_loop() -> None:
    async with running_loop() as w:  # a task that is left over fails
        w.recording.additions_take_s = 50
        await w.queues.config.put(update(PodOperation.ADD, "a"))
        await w.clock.sleep(5)
    assert w.did() == ["handle_pod_additions"]


async def test_a_failing_handler_does_not_stop_the_loop() -> None:
    async with running_loop() as w:
        w.recording.fails = {"handle_pod_additions", "sync_due", "housekeeping", "pleg_event"}
        w.all_seen = True
        await w.queues.config.put(PodUpdate(PodOperation.ADD, PodSource.API))
        await w.queues.pleg.put(PodLifecycleEvent("u", PodLifecycleEventType.CONTAINER_DIED))
        await w.clock.sleep(4.5)
        assert {"handle_pod_additions", "pleg_event", "housekeeping"} <= set(w.did())
        assert len(w.times_s("sync_due")) == 4


@pytest.mark.parametrize(
    ("queue", "result", "expected"),
    [
        ("liveness", ProbeResult.FAILURE, ["sync_by_uid"]),
        ("liveness", ProbeResult.SUCCESS, []),
        ("readiness", ProbeResult.SUCCESS, ["set_container_readiness", "sync_by_uid"]),
        ("readiness", ProbeResult.FAILURE, ["set_container_readiness", "sync_by_uid"]),
        ("startup", ProbeResult.SUCCESS, ["set_container_startup", "sync_by_uid"]),
    ],
)
async def test_probe_results_LIFE_005_PROBE_032(
    queue: str, result: ProbeResult, expected: list[str]
) -> None:
    async with running_loop() as w:
        await getattr(w.queues, queue).put(ProbeUpdate("c1", result, "u1"))
        await w.clock.sleep(0.1)
        assert w.did() == expected
        if len(expected) == 2:
            assert w.log[0][2] == ("u1", "c1", result is ProbeResult.SUCCESS)


async def test_inputs_are_chosen_among_the_ready_ones_and_none_is_lost_LIFE_001() -> None:
    queues: dict[str, asyncio.Queue[int]] = {name: asyncio.Queue() for name in "abc"}
    offered: list[list[str]] = []

    def choose(ready: object) -> str:
        assert isinstance(ready, list)
        offered.append(list(ready))
        return str(ready[-1])

    inputs = Inputs(queues, choose)
    for number, name in enumerate("abcab"):
        queues[name].put_nowait(number)
    taken = [await inputs.next() for _ in range(5)]
    await inputs.close()
    assert sorted(taken) == [("a", 0), ("a", 3), ("b", 1), ("b", 4), ("c", 2)]
    assert all(set(names) <= set("abc") for names in offered)
