"""The evented PLEG: the stream, the cache, the way back to listing (PLEG-301..303)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from runtime_calls import started

from fakecri import FakeCRI, exits
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePod,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.reading.pod_events import (
    PodEvent,
    PodEventKind,
    PodEventReader,
    pod_event,
)
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.pleg import PodCache
from refkubelet.pleg.compute import PodLifecycleEventType
from refkubelet.pleg.evented import MAX_STREAM_ERRORS, RARELY, EventedPLEG
from refkubelet.pleg.generic import GenericPLEG
from simclock import VirtualLoop

pytestmark = pytest.mark.virtual_time

S, D, R, *_ = PodLifecycleEventType
NS = 1_000_000_000


class FakeRuntime:
    """`truth`: what it holds of the pod `u`. `broken`: so many of its answers fail. `takes_s`: so
    long it needs for a status."""

    def __init__(self) -> None:
        self.lists = 0
        self.asked: list[str] = []
        self.truth: RuntimePodStatus | None = None
        self.broken = 0
        self.takes_s = 0.0

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        self.lists += 1
        pod = self._pod()
        return (pod,) if pod is not None else ()

    async def get_pod(self, uid: str) -> RuntimePod | None:
        self.asked.append(uid)
        return self._pod() if uid == "u" else None

    def _pod(self) -> RuntimePod | None:
        if self.broken:
            self.broken -= 1
            raise CriCallError("ListContainers", "UNAVAILABLE", "down")
        return running_pod(self.truth) if self.truth is not None else None

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        await asyncio.sleep(self.takes_s)
        assert self.truth is not None
        return self.truth


def box(name: str, at: int = 1, *, ready: bool = True, attempt: int = 0) -> SandboxRecord:
    state = SandboxState.READY if ready else SandboxState.NOTREADY
    return SandboxRecord(name, state, attempt, created_at_ns=at * NS)


def main(name: str, in_box: str, state: ContainerState, at: int = 1) -> ContainerRecord:
    return ContainerRecord(name, "main", state, sandbox_id=in_box, created_at_ns=at * NS)


class World:
    """An evented PLEG on a stream that plays `script`: events, errors, and the end of it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.runtime = FakeRuntime()
        self.cache = PodCache(loop.clock)
        self.generic = GenericPLEG(self.runtime, self.cache, loop.clock, RARELY)
        self.script: asyncio.Queue[PodEvent | Exception | None] = asyncio.Queue()
        self.streams = 0
        self.pleg = EventedPLEG(self.generic, self._stream, self.cache, loop.clock)

    async def _stream(self) -> AsyncGenerator[PodEvent, None]:
        self.streams += 1
        while (item := await self.script.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def event(
        self,
        kind: PodEventKind,
        about: str = "c1",
        *,
        age_s: float = 0.0,
        box: str = "b1",
        at: int = 1,
    ) -> None:
        """Something happened to `about`; `box` is the pod's sandbox, made at second `at`."""
        state = {PodEventKind.STARTED: "running", PodEventKind.STOPPED: "exited"}
        seen = ContainerState(state.get(kind, "created"))
        record = ContainerRecord("c1", "main", seen, sandbox_id=box)
        sandbox = SandboxRecord(box, SandboxState.NOTREADY, created_at_ns=at * NS)
        status = RuntimePodStatus("u", "web", sandboxes=(sandbox,), containers=(record,))
        made_ns = self.loop.clock.wall_ns() - round(age_s * NS)
        self.script.put_nowait(PodEvent(kind, about, made_ns, status))

    def told(self) -> list[PodLifecycleEventType]:
        found = []
        while not self.generic.events.empty():
            found.append(self.generic.events.get_nowait().type)
        return found

    def state(self) -> ContainerState | None:
        containers = self.cache.get("u").containers
        return containers[0].state if containers else None


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world that has run for two seconds: everything was listed since the stream was opened."""
    loop = virtual_loop()
    world = World(loop)
    task = asyncio.create_task(world.pleg.run())
    await loop.clock.sleep(2)
    yield world
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (PodEventKind.CREATED, []),
        (PodEventKind.STARTED, [S]),
        (PodEventKind.STOPPED, [D]),
        (PodEventKind.DELETED, [D, R]),
    ],
)
async def test_what_each_kind_tells_PLEG_302(
    kind: PodEventKind, told: list[PodLifecycleEventType], world: World
) -> None:
    world.event(kind)
    await world.loop.clock.sleep(0.1)
    assert world.told() == told
    assert (world.state() is None) == (kind is PodEventKind.DELETED)


async def test_a_deleted_container_leaves_the_cache_alone_and_a_deleted_sandbox_clears_it_PLEG_302(
    world: World,
) -> None:
    world.event(PodEventKind.STOPPED)
    world.event(PodEventKind.DELETED)
    await world.loop.clock.sleep(0.1)
    assert world.state() is ContainerState.EXITED
    world.event(PodEventKind.DELETED, "b1")
    await world.loop.clock.sleep(0.1)
    assert world.cache.get("u") == RuntimePodStatus("u")


async def test_older_news_is_refused_and_tells_nothing_PLEG_302(world: World) -> None:
    world.event(PodEventKind.STOPPED, age_s=0.2)
    world.event(PodEventKind.STARTED, age_s=0.3)
    await world.loop.clock.sleep(0.1)
    assert (world.told(), world.state()) == ([D], ContainerState.EXITED)


async def test_news_of_one_of_two_sandboxes_never_hides_the_other_PLEG_302(world: World) -> None:
    """Completed work in the old sandbox is still known, whichever sandbox the event is about."""

    done = main("c1", "b1", ContainerState.EXITED)
    boxes = (box("b2", 5, attempt=1), box("b1", 1, ready=False))
    world.event(PodEventKind.STOPPED, "c1", box="b1")
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=boxes, containers=(done,))
    world.event(PodEventKind.STARTED, "b2", box="b2", at=5)
    await world.loop.clock.sleep(0.1)
    assert world.cache.get("u") == world.runtime.truth
    world.event(PodEventKind.DELETED, "b1", box="b1", at=1)
    await world.loop.clock.sleep(0.1)
    assert world.cache.get("u") == world.runtime.truth


async def test_a_list_repairs_what_was_heard_wrong_PLEG_302(world: World) -> None:
    """The list is that of last time; but the cache says something else."""

    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1", ready=False),))
    await world.generic.relist()
    wrong = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    world.cache.heard("u", wrong, world.cache.stamp_s())
    await world.generic.relist()
    assert world.cache.get("u") == world.runtime.truth


async def test_an_event_as_old_as_a_reading_is_not_believed_PLEG_302(world: World) -> None:
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    await world.generic.relist_pod("u")
    world.event(PodEventKind.STARTED)  # of this very instant, and it has one container more
    await world.loop.clock.sleep(0.1)
    assert world.cache.get("u") == world.runtime.truth
    assert world.runtime.asked == ["u", "u"]


async def test_a_reading_that_fails_is_done_again_and_nobody_goes_on_before_PLEG_302(
    world: World,
) -> None:
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    world.runtime.broken = 9
    end_s = world.cache.stamp_s()
    world.generic.request_relist("u")  # as a worker does after a sync that acted
    status = await world.cache.get_newer_than("u", end_s)
    assert status == world.runtime.truth
    assert 8.9 < world.loop.clock.monotonic_s() - end_s < 9.2  # the cache's time moved on at 5


async def test_a_failed_step_is_followed_by_the_next_after_a_second_PLEG_302(world: World) -> None:
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    end_s = world.cache.stamp_s()
    rest_s = world.generic.after_failure("u")
    await world.cache.get_newer_than("u", end_s + rest_s)
    assert world.loop.clock.monotonic_s() - end_s == pytest.approx(1.0)


async def test_a_list_that_fails_is_done_again_after_a_second_PLEG_301(world: World) -> None:
    world.runtime.broken = 3
    lists = world.runtime.lists
    world.generic.hurry()
    await world.loop.clock.sleep(3.5)
    assert world.runtime.lists - lists == 4


async def test_time_of_the_cache_stands_until_all_is_listed_after_a_break_PLEG_302(
    world: World,
) -> None:
    end_s = world.cache.stamp_s()
    world.runtime.broken = 20
    world.script.put_nowait(None)
    await world.cache.get_newer_than("nobody", end_s)
    assert world.loop.clock.monotonic_s() - end_s > 18.9


async def test_time_of_the_cache_stands_while_all_is_listed_PLEG_302(world: World) -> None:
    end_s = world.cache.stamp_s()
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    world.runtime.takes_s = 30.0
    world.generic.hurry()
    await world.cache.get_newer_than("nobody", end_s + 1.0)
    assert world.loop.clock.monotonic_s() - end_s > 29.9


async def test_a_worker_waits_six_seconds_at_most_for_lost_news_PLEG_302(world: World) -> None:
    asked_s = world.loop.clock.monotonic_s()
    async with asyncio.timeout(6.1):
        await world.cache.get_newer_than("nobody", world.cache.stamp_s())
    assert world.loop.clock.monotonic_s() - asked_s > 1  # not before late news could be here


async def test_a_list_settles_a_failed_step_of_a_pod_that_has_nothing_PLEG_302(
    world: World,
) -> None:
    world.runtime.truth = RuntimePodStatus("u", "web", sandboxes=(box("b1"),))
    world.runtime.takes_s = 4.0
    world.generic.hurry()
    await world.loop.clock.sleep(1)
    rest_s = world.generic.after_failure("nothing")
    failed_s = world.cache.stamp_s()
    world.generic.hurry()  # the stream broke: all is listed again, before the pod is read by itself
    async with asyncio.timeout(10):
        await world.cache.get_newer_than("nothing", failed_s + rest_s)


async def test_it_lists_at_the_start_and_every_five_minutes_PLEG_301(world: World) -> None:
    await world.loop.clock.sleep(298)
    assert world.runtime.lists == 2  # at once, and a second after the stream was opened
    await world.loop.clock.sleep(2)
    assert world.runtime.lists == 3
    assert world.generic.healthy() is None


@pytest.mark.parametrize("broken", [None, CriCallError("GetContainerEvents", "UNKNOWN", "boom")])
async def test_a_broken_stream_is_opened_again_after_a_relist_PLEG_301(
    broken: Exception | None, world: World
) -> None:
    world.script.put_nowait(broken)
    await world.loop.clock.sleep(0.1)
    assert (world.streams, world.runtime.lists, world.pleg.in_use) == (2, 3, True)
    world.event(PodEventKind.STARTED)
    await world.loop.clock.sleep(0.1)
    assert world.told() == [S]


async def test_after_five_broken_streams_it_lists_every_second_PLEG_301(world: World) -> None:
    assert MAX_STREAM_ERRORS == 5
    for number in range(MAX_STREAM_ERRORS):
        assert world.pleg.in_use
        world.script.put_nowait(None)
        await world.loop.clock.sleep(20)
        assert world.pleg.errors == number + 1  # success in between changes nothing
    lists = world.runtime.lists
    await world.loop.clock.sleep(10)
    assert (world.pleg.in_use, world.streams) == (False, MAX_STREAM_ERRORS)
    assert world.runtime.lists == lists + 10


async def test_a_full_queue_is_unhealthy_and_drops_PLEG_303(
    caplog: pytest.LogCaptureFixture, world: World
) -> None:
    assert world.pleg.healthy() is None
    with caplog.at_level(logging.CRITICAL):
        for _ in range(RARELY.events_capacity + 1):  # one container, over and over
            world.event(PodEventKind.STARTED)
            await world.loop.clock.sleep(0.001)
    text = "EventedPLEG: pleg event channel capacity is full with 1000 events"
    assert (world.pleg.healthy(), world.generic.metrics.discarded.values[()]) == (text, 1)


async def test_an_event_nobody_expected_ends_nothing(
    caplog: pytest.LogCaptureFixture, world: World
) -> None:
    world.script.put_nowait(PodEvent(PodEventKind.STARTED, "c", 0, None))  # type: ignore[arg-type]
    world.event(PodEventKind.STARTED)
    await world.loop.clock.sleep(0.1)
    assert (world.told(), world.pleg.errors) == ([S], 0)
    assert "an event of the runtime is ignored" in caplog.text


def test_an_event_without_its_sandbox_is_ignored_PLEG_302() -> None:
    message = cri.ContainerEventResponse(container_event_type=cri.CONTAINER_STARTED_EVENT)
    assert pod_event(message) is None
    message.pod_sandbox_status.metadata.name = "web"
    with pytest.raises(ValueError, match="the answer has no id"):
        pod_event(message)


async def listen(reader: PodEventReader, heard: list[PodEvent]) -> None:
    async for event in reader.events():
        heard.append(event)


async def test_the_events_of_a_runtime_as_values_CRI_141() -> None:
    fake = FakeCRI()
    fake.behaves(exits(3, after_s=2))
    heard: list[PodEvent] = []
    task = asyncio.create_task(listen(PodEventReader(CriClient(fake)), heard))
    await asyncio.sleep(0)
    made = await started(fake)
    await asyncio.sleep(3)
    kinds = [e.kind.value for e in heard]
    assert kinds == ["created", "started", "created", "started", "stopped"]
    last = heard[-1]
    assert (last.container_id, last.status.uid) == (made, "uid-web")
    (container,) = last.status.containers
    assert (container.state, container.exit_code) == (ContainerState.EXITED, 3)
    assert container.sandbox_id == last.status.sandboxes[0].id == fake.sandboxes()[0].id
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_event_as_old_as_the_end_of_a_step_is_no_news_for_the_next_PLEG_302(
    world: World,
) -> None:
    """It may have been made in the middle of the step: the next would do the rest once more."""

    waiting = asyncio.ensure_future(world.cache.get_newer_than("u", world.loop.clock.monotonic_s()))
    world.event(PodEventKind.STARTED)
    await world.loop.clock.sleep(0.1)
    assert not waiting.done()
    world.event(PodEventKind.STOPPED)
    await waiting
