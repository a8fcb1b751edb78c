"""PLEG: the table of events, the pod cache, relists (PLEG-001..012, PLEG-101..105, PLEG-201)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from loops import virtual_loop

from refkubelet.cri.records import (
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePod,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.cri.target import CriCallError
from refkubelet.pleg import GenericPLEG, PlegOptions, PodCache, compute_events
from refkubelet.pleg.cache import PodStatusError
from refkubelet.pleg.compute import EVENTS, PlegState, PodLifecycleEventType, transition
from simclock import VirtualLoop

pytestmark = pytest.mark.virtual_time

S, D, R, C, SYNC = PodLifecycleEventType
RUNNING, EXITED, UNKNOWN, ABSENT = PlegState


def pod(uid: str = "u", box: str | None = "ready", **containers: str) -> RuntimePod:
    boxes = (ListedSandbox("box", SandboxState(box)),) if box else ()
    listed = tuple(
        ListedContainer(f"{uid}-{name}", name, ContainerState(state))
        for name, state in containers.items()
    )
    return RuntimePod(uid=uid, name=uid, namespace="default", sandboxes=boxes, containers=listed)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        (ABSENT, RUNNING, (S,)),
        (ABSENT, EXITED, (D,)),
        (ABSENT, UNKNOWN, (C,)),
        (RUNNING, EXITED, (D,)),
        (RUNNING, UNKNOWN, (C,)),
        (RUNNING, ABSENT, (D, R)),
        (EXITED, RUNNING, (S,)),
        (EXITED, UNKNOWN, (C,)),
        (EXITED, ABSENT, (R,)),
        (UNKNOWN, RUNNING, (S,)),
        (UNKNOWN, EXITED, (D,)),
        (UNKNOWN, ABSENT, (D, R)),
    ],
)
def test_table_PLEG_003(old: PlegState, new: PlegState, events: tuple[Any, ...]) -> None:
    assert transition(old, new) == events


def test_every_pair_of_states_has_a_row_PLEG_003() -> None:
    pairs = {(a, b) for a in PlegState for b in PlegState if a is not b}
    assert set(EVENTS) == pairs


def test_order_inside_a_pod_PLEG_004() -> None:
    old = pod(box=None, gone="running", stays="running")
    new = pod(box="ready", stays="exited", fresh="running")
    events = [(e.type, e.data) for e in compute_events(old, new)]
    assert events == [(D, "u-gone"), (R, "u-gone"), (D, "u-stays"), (S, "u-fresh"), (S, "box")]


def test_created_counts_as_unknown_and_labels_do_not_count_PLEG_002() -> None:
    assert [e.type for e in compute_events(None, pod(box=None, a="created"))] == [C]
    assert compute_events(pod(a="running"), pod(a="running")) == []


class FakeRuntime:
    """Pods to list; errors to raise; a record of the calls."""

    def __init__(self) -> None:
        self.pods: dict[str, RuntimePod] = {}
        self.list_error: Exception | None = None
        self.status_error: Exception | None = None
        self.pod_error: Exception | None = None
        self.ips: tuple[str, ...] = ()
        self.calls: list[str] = []

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]:
        self.calls.append("list")
        if self.list_error is not None:
            raise self.list_error
        return tuple(self.pods.values())

    async def get_pod(self, uid: str) -> RuntimePod | None:
        self.calls.append(f"list {uid}")
        if self.pod_error is not None:
            raise self.pod_error
        return self.pods.get(uid)

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus:
        self.calls.append(f"status {pod.uid}")
        if self.status_error is not None:
            raise self.status_error
        boxes = tuple(SandboxRecord(s.id, s.state) for s in pod.sandboxes)
        return RuntimePodStatus(pod.uid, pod.name, ips=self.ips, sandboxes=boxes)


class Setup:
    def __init__(self, loop: VirtualLoop, **options: Any) -> None:
        self.runtime = FakeRuntime()
        self.cache = PodCache(loop.clock)
        self.pleg = GenericPLEG(self.runtime, self.cache, loop.clock, PlegOptions(**options))

    def events(self) -> list[PodLifecycleEventType]:
        found = []
        while not self.pleg.events.empty():
            found.append(self.pleg.events.get_nowait().type)
        return found


def boom() -> CriCallError:
    return CriCallError("ListContainers", "UNKNOWN", "boom")


async def test_relist_fetches_only_changed_pods_PLEG_001_PLEG_005() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running"), "b": pod("b", box=None, y="created")}
    await s.pleg.relist()
    assert s.events() == [S, S]  # ContainerChanged is not sent
    assert s.runtime.calls == ["list", "status a", "status b"]
    await s.pleg.relist()
    assert s.runtime.calls[3:] == ["list"]
    assert s.cache.get("b").name == "b"


async def test_cache_is_written_before_the_event_PLEG_005() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    relist = asyncio.ensure_future(s.pleg.relist())
    await s.pleg.events.get()
    assert s.cache.get("a").name == "a"
    await relist


async def test_failed_fetch_is_retried_and_then_sends_the_events_PLEG_006() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    s.runtime.status_error = boom()
    await s.pleg.relist()
    assert s.events() == []
    with pytest.raises(PodStatusError):
        s.cache.get("a")
    s.runtime.status_error = None
    await s.pleg.relist()
    assert s.events() == [S, S]


async def test_an_unexpected_error_does_not_end_the_pleg(caplog: pytest.LogCaptureFixture) -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    s.runtime.list_error = s.runtime.status_error = ValueError("surprise")
    task = asyncio.ensure_future(s.pleg.run())
    await loop.clock.sleep(1.5)
    assert s.runtime.calls == ["list", "list"]
    assert s.pleg.healthy() == "pleg has yet to be successful"
    s.runtime.list_error = None
    await loop.clock.sleep(1)
    with pytest.raises(PodStatusError, match="surprise"):
        s.cache.get("a")  # the pod's own trouble: the PLEG itself is well
    assert s.pleg.healthy() is None
    s.runtime.status_error = None
    await s.pleg.events.get()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.text.count("Traceback") == 2
    assert "relist: unexpected error" in caplog.text


async def test_an_unexpected_error_of_a_requested_relist_does_not_end_the_pleg() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    task = asyncio.ensure_future(s.pleg.run())
    await loop.clock.sleep(0.5)
    s.runtime.pod_error = ValueError("surprise")
    s.pleg.request_relist("a")
    await loop.clock.sleep(1)
    task.cancel()
    assert s.runtime.calls == ["list", "list a", "list"]


async def test_a_pod_that_vanishes_before_its_first_good_fetch_leaves_no_error_PLEG_006() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    s.runtime.status_error = boom()
    await s.pleg.relist()
    s.runtime.pods = {}
    await s.pleg.relist()
    assert s.events() == [SYNC]  # PLEG-007
    assert s.cache.get("a").containers == ()  # else its worker would fail for ever
    calls = len(s.runtime.calls)
    await s.pleg.relist()
    assert s.runtime.calls[calls:] == ["list"]


async def test_reinspection_sends_pod_sync_PLEG_007() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    await s.pleg.relist()
    s.events()
    s.pleg.request_reinspection("a")
    await s.pleg.relist()
    assert s.events() == [SYNC]
    await s.pleg.relist()
    assert s.events() == []


async def test_reinspection_of_a_pod_that_was_never_seen_is_nothing_PLEG_007() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.pleg.request_reinspection("a")
    await s.pleg.relist()
    await s.pleg.relist()
    assert (s.events(), s.runtime.calls) == ([], ["list", "list"])


async def test_full_queue_drops_and_never_blocks_PLEG_008() -> None:
    loop = virtual_loop()
    s = Setup(loop, events_capacity=1)
    s.runtime.pods = {"a": pod("a", x="running", y="running")}
    await s.pleg.relist()
    assert (len(s.events()), s.pleg.metrics.discarded.values[()]) == (1, 2)
    await s.pleg.relist()
    assert s.events() == []


async def test_failed_list_changes_nothing_PLEG_009() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    await s.pleg.relist()
    s.events()
    waiter = asyncio.ensure_future(s.cache.get_newer_than("a", s.cache.stamp_s()))
    s.runtime.list_error = boom()
    await asyncio.sleep(1)
    with pytest.raises(CriCallError, match="boom"):
        await s.pleg.relist()
    await asyncio.sleep(1)
    assert not waiter.done()
    s.runtime.list_error = None
    await s.pleg.relist()
    assert (await waiter).uid == "a"
    assert s.events() == []


async def test_ips_are_kept_once_no_sandbox_is_ready_PLEG_010() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods, s.runtime.ips = {"a": pod("a", x="running")}, ("10.0.0.1",)
    await s.pleg.relist()
    s.runtime.pods, s.runtime.ips = {"a": pod("a", box="notready", x="exited")}, ()
    await s.pleg.relist()
    assert s.cache.get("a").ips == ("10.0.0.1",)


async def test_vanished_pod_leaves_the_cache_PLEG_007() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    await s.pleg.relist()
    s.events()
    s.runtime.pods = {}
    await s.pleg.relist()
    assert s.events() == [D, R, D, R]
    assert s.cache.get("a") == RuntimePodStatus("a")


async def test_periodic_and_on_demand_relists_PLEG_001_PLEG_011() -> None:
    """Global relists at 0, 1, 2 s; a request in between is served at once, for one pod only."""

    loop = virtual_loop()
    s = Setup(loop)
    s.runtime.pods = {"a": pod("a", x="running")}
    task = asyncio.ensure_future(s.pleg.run())
    await asyncio.sleep(0.5)
    assert s.runtime.calls == ["list", "status a"]
    end = s.cache.stamp_s()
    waiter = asyncio.ensure_future(s.cache.get_newer_than("a", end))
    s.pleg.request_relist("a")
    await waiter
    assert loop.time() == 0.5
    assert s.runtime.calls[2:] == ["list a"]
    s.pleg.request_relist("nobody")
    await asyncio.sleep(2)
    assert s.runtime.calls[3:] == ["list nobody", "list", "list"]
    task.cancel()


async def test_requests_older_than_the_relist_are_dropped_PLEG_011() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    s.pleg.request_relist("a")
    task = asyncio.ensure_future(s.pleg.run())
    await asyncio.sleep(0.5)
    assert s.runtime.calls == ["list"]
    task.cancel()


async def test_health_PLEG_201() -> None:
    loop = virtual_loop()
    s = Setup(loop)
    assert s.pleg.healthy() == "pleg has yet to be successful"
    await s.pleg.relist()
    assert s.pleg.healthy() is None
    await asyncio.sleep(180)
    assert s.pleg.healthy() is None
    await asyncio.sleep(1)
    assert s.pleg.healthy() == "pleg was last seen active 3m1s ago; threshold is 3m0s"


async def test_dropped_events_are_told_once_a_minute_PLEG_008(
    caplog: pytest.LogCaptureFixture,
) -> None:
    s = Setup(virtual_loop(), events_capacity=1)
    s.runtime.pods = {f"p{n}": pod(f"p{n}", x="running") for n in range(500)}
    await s.pleg.relist()
    assert s.pleg.metrics.discarded.values[()] == 999  # of each pod a sandbox and a container
    assert len([r for r in caplog.records if "the event queue is full" in r.message]) == 1
