"""The event recorder: shape, counting, floods, sending (BACK-012, NODE-070)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fakeapi import FakeApi
from fakeapi.httpx_transport import InProcessTransport
from refkubelet.apiclient import LightkubeApiClient
from refkubelet.event_recorder import SPAM_BURST, QueuedEventRecorder
from refkubelet.model.objects import Pod, decode_pod
from simtime import Ids, Rng, VirtualLoop, run_virtual


def pod(name: str = "web") -> Pod:
    return decode_pod({"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}})


class World:
    def __init__(self, api: FakeApi | None, loop: VirtualLoop) -> None:
        self.client = LightkubeApiClient.in_process(InProcessTransport(api)) if api else None
        self.recorder = QueuedEventRecorder(self.client, loop.clock, Ids(Rng(1)), "n1")


def with_api(body: Callable[[QueuedEventRecorder, FakeApi], Awaitable[None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        api = FakeApi(clock=loop.clock)
        world = World(api, loop)
        task = asyncio.create_task(world.recorder.run())
        await body(world.recorder, api)
        task.cancel()
        assert world.client is not None
        await world.client.aclose()

    run_virtual(main)


def standalone(body: Callable[[QueuedEventRecorder], Awaitable[None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await body(World(None, loop).recorder)

    run_virtual(main)


def test_an_event_is_posted_as_a_kubelet_posts_it() -> None:
    async def body(recorder: QueuedEventRecorder, api: FakeApi) -> None:
        recorder.pod_event(
            pod(), "Normal", "Started", "Container started", field_path="spec.containers{main}"
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

    with_api(body)


def test_identical_events_become_one_with_a_rising_count_BACK_012() -> None:
    async def body(recorder: QueuedEventRecorder, api: FakeApi) -> None:
        for _ in range(3):
            recorder.pod_event(pod(), "Warning", "BackOff", "Back-off restarting")
            await asyncio.sleep(10)
        assert len(api.requests("POST")) == 1
        patch = api.requests("PATCH")[-1].body
        assert (patch["count"], patch["lastTimestamp"]) == (3, "2026-01-01T00:00:20Z")

    with_api(body)


def test_more_than_ten_similar_events_are_combined_BACK_012() -> None:
    async def body(recorder: QueuedEventRecorder) -> None:
        for i in range(15):
            recorder.pod_event(pod(), "Warning", "Failed", f"message {i}")
        messages = [e.message for e in recorder.events]
        assert messages[9] == "message 9"
        assert messages[10] == "(combined from similar events): message 10"
        combined = [e for e in recorder.events if e.message.startswith("(combined")]
        assert [e.count for e in combined] == [1, 2, 3, 4, 5]
        assert len({e.name for e in combined}) == 1

    standalone(body)


def test_a_flood_of_one_object_is_cut_off_BACK_012() -> None:
    async def body(recorder: QueuedEventRecorder) -> None:
        for _ in range(100):
            recorder.pod_event(pod(), "Warning", "Unhealthy", "no")
        recorder.pod_event(pod("other"), "Warning", "Unhealthy", "no")
        assert len(recorder.events) == SPAM_BURST + 1
        await asyncio.sleep(301)
        for _ in range(5):
            recorder.pod_event(pod(), "Warning", "Unhealthy", "no")
        assert len(recorder.events) == SPAM_BURST + 2
        assert recorder.events[-1].count == 101

    standalone(body)


def test_node_events_go_to_the_default_namespace_NODE_070() -> None:
    async def body(recorder: QueuedEventRecorder, api: FakeApi) -> None:
        recorder.node_event("Normal", "Starting", "Starting kubelet.")
        await asyncio.sleep(1)
        event = api.requests("POST", "/api/v1/namespaces/default/events")[0].body
        assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}

    with_api(body)


def test_events_wait_for_a_server_that_is_away() -> None:
    async def body(recorder: QueuedEventRecorder, api: FakeApi) -> None:
        with api.down():
            recorder.pod_event(pod(), "Normal", "Killing", "Stopping container main")
            await asyncio.sleep(25)
        await asyncio.sleep(10)
        assert [r.status for r in api.requests("POST")] == [0, 0, 0, 201]

    with_api(body)


def test_a_refused_event_is_given_up_and_blocks_no_other() -> None:
    async def body(recorder: QueuedEventRecorder, api: FakeApi) -> None:
        api.fails("POST", "/events", status=403, times=1)
        recorder.pod_event(pod("a"), "Normal", "Killing", "x")
        recorder.pod_event(pod("b"), "Normal", "Killing", "x")
        await asyncio.sleep(1)
        assert [r.status for r in api.requests("POST")] == [403, 201]

    with_api(body)
