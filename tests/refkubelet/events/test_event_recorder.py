"""The event recorder: shape, counting, floods, sending (BACK-012, NODE-070)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from loops import virtual_loop
from pods import make_pod

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.events.correlator import SPAM_BURST, RecordedEvent
from refkubelet.events.queued_recorder import KEPT_EVENTS, QueuedEventRecorder

pytestmark = pytest.mark.virtual_time


@pytest_asyncio.fixture
async def api() -> FakeApi:
    return FakeApi(clock=virtual_loop().clock)


@pytest_asyncio.fixture
async def recorder(api: FakeApi) -> AsyncIterator[QueuedEventRecorder]:
    """It runs, and sends to `api`."""
    client = LightkubeApiClient.in_process(InProcessTransport(api))
    recorder = QueuedEventRecorder(client, virtual_loop().clock, "n1")
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()
    await client.aclose()


@pytest_asyncio.fixture
async def standalone() -> QueuedEventRecorder:
    return QueuedEventRecorder(None, virtual_loop().clock, "n1")


async def test_an_event_is_posted_as_a_kubelet_posts_it(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    recorder.pod_event(
        make_pod(), "Normal", "Started", "Container started", field_path="spec.containers{main}"
    )
    await asyncio.sleep(1)
    event = api.requests("POST", "/api/v1/namespaces/default/events")[0].body
    assert event["metadata"]["name"].startswith("web.")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "namespace": "default",
        "uid": "uid-web",
        "fieldPath": "spec.containers{main}",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Normal", "Started", 1)
    assert event["source"] == {"component": "kubelet", "host": "n1"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["reportingComponent"] == "kubelet"


async def test_identical_events_become_one_with_a_rising_count_BACK_012(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    for _ in range(3):
        recorder.pod_event(make_pod(), "Warning", "BackOff", "Back-off restarting")
        await asyncio.sleep(10)
    assert len(api.requests("POST")) == 1
    patch = api.requests("PATCH")[-1].body
    assert (patch["count"], patch["lastTimestamp"]) == (3, "2026-01-01T00:00:20Z")


def fail(recorder: QueuedEventRecorder, message: str, *, path: str = "", version: str = "") -> None:
    about = make_pod()
    assert about.metadata is not None
    about.metadata.resourceVersion = version
    recorder.pod_event(about, "Warning", "Failed", message, field_path=path)


def combined(recorder: QueuedEventRecorder) -> list[RecordedEvent]:
    return [e for e in recorder.events if e.message.startswith("(combined from similar events): ")]


async def test_the_tenth_similar_event_and_the_later_ones_are_combined_BACK_012(
    standalone: QueuedEventRecorder,
) -> None:
    for i in range(15):
        fail(standalone, f"message {i}", path=f"spec.containers{{c{i % 3}}}", version=str(i))
    messages = [e.message for e in standalone.events]
    assert messages[8:10] == ["message 8", "(combined from similar events): message 9"]
    assert [e.count for e in combined(standalone)] == [1, 2, 3, 4, 5, 6]
    assert len({e.name for e in combined(standalone)}) == 1
    assert len({e.name for e in standalone.events}) == 10


async def test_what_is_combined_names_no_reporting_component_BACK_012(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    for i in range(11):
        fail(recorder, f"message {i}")
    await asyncio.sleep(1)
    posted = [r.body for r in api.requests("POST")]
    assert len(posted) == 10
    assert posted[0]["reportingComponent"] == "kubelet"
    assert "reportingComponent" not in posted[9]
    patch = api.requests("PATCH")[0].body
    assert patch["message"] == "(combined from similar events): message 10"
    assert patch["count"] == 2


async def test_after_ten_quiet_minutes_similar_events_are_told_one_by_one_BACK_012(
    standalone: QueuedEventRecorder,
) -> None:
    for i in range(10):
        fail(standalone, f"message {i}")
    await asyncio.sleep(600)
    fail(standalone, "ten minutes are not yet too long")
    await asyncio.sleep(601)
    fail(standalone, "new")
    assert [e.count for e in combined(standalone)] == [1, 2]
    assert standalone.events[-1].message == "new"


async def test_a_new_version_of_the_pod_still_counts_up_and_a_new_container_does_not_BACK_012(
    standalone: QueuedEventRecorder,
) -> None:
    fail(standalone, "no", path="spec.containers{a}", version="1")
    fail(standalone, "no", path="spec.containers{a}", version="2")
    fail(standalone, "no", path="spec.containers{b}", version="2")
    assert [e.count for e in standalone.events] == [1, 2, 1]


async def test_an_event_the_server_forgot_is_posted_again_with_its_count(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    fail(recorder, "no")
    await asyncio.sleep(1)
    name = api.requests("POST")[0].body["metadata"]["name"]
    api.fails("PATCH", f"/events/{name}", status=404, times=1)
    fail(recorder, "no")
    await asyncio.sleep(1)
    assert [(r.method, r.status) for r in api.requests()][-2:] == [
        ("PATCH", 404),
        ("POST", 409),
    ]
    assert api.requests("POST")[-1].body["count"] == 2


async def test_a_flood_about_one_object_is_dropped_but_counted_BACK_012(
    standalone: QueuedEventRecorder,
) -> None:
    for _ in range(100):
        standalone.pod_event(make_pod(), "Warning", "Unhealthy", "no")
    standalone.pod_event(make_pod(name="other"), "Warning", "Unhealthy", "no")
    assert len(standalone.events) == SPAM_BURST + 1
    await asyncio.sleep(301)
    for _ in range(5):
        standalone.pod_event(make_pod(), "Warning", "Unhealthy", "no")
    assert len(standalone.events) == SPAM_BURST + 2
    assert standalone.events[-1].count == 101


async def test_node_events_go_to_the_default_namespace_NODE_070(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    recorder.node_event("Normal", "Starting", "Starting kubelet.")
    await asyncio.sleep(1)
    event = api.requests("POST", "/api/v1/namespaces/default/events")[0].body
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


async def test_events_wait_for_a_server_that_is_away(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    with api.down():
        recorder.pod_event(make_pod(), "Normal", "Killing", "Stopping container main")
        await asyncio.sleep(25)
    await asyncio.sleep(10)
    assert [r.status for r in api.requests("POST")] == [0, 0, 0, 201]


async def test_a_refused_event_is_given_up_and_blocks_no_other(
    recorder: QueuedEventRecorder, api: FakeApi
) -> None:
    api.fails("POST", "/events", status=403, times=1)
    recorder.pod_event(make_pod(name="a"), "Normal", "Killing", "x")
    recorder.pod_event(make_pod(name="b"), "Normal", "Killing", "x")
    await asyncio.sleep(1)
    assert [r.status for r in api.requests("POST")] == [403, 201]


async def test_events_that_find_no_room_are_counted_and_told_once_BACK_012(
    recorder: QueuedEventRecorder,
    api: FakeApi,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(KEPT_EVENTS + 10):
        recorder.pod_event(make_pod(name=f"p{number}"), "Normal", "Started", "Container started")
    assert recorder.dropped == 10
    told = [r for r in caplog.records if "events are dropped" in r.getMessage()]
    assert len(told) == 1
