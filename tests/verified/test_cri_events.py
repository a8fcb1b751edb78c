"""Clauses about container events and streaming lists, on the fake and on a real containerd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from contract_runtime import RUNS, Program, Runtime, containerd_since
from kubecri.v1 import api_pb2 as cri

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CREATED, STARTED = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
STOPPED, DELETED = cri.CONTAINER_STOPPED_EVENT, cri.CONTAINER_DELETED_EVENT


class Events:
    """What the runtime has told since the beginning."""

    def __init__(self) -> None:
        self.all = list[cri.ContainerEventResponse]()

    async def take(self, count: int) -> list[cri.ContainerEventResponse]:
        """All events so far, which must be `count`; then they are forgotten."""
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                while len(self.all) < count:  # noqa: ASYNC110 - a real runtime tells them
                    await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        taken, self.all = self.all, []
        assert len(taken) == count, taken
        return taken


@asynccontextmanager
async def watched(runtime: Runtime) -> AsyncIterator[Events]:
    """The events from now on."""
    containerd_since(runtime, "1.7", "container events")
    events = Events()

    async def read() -> None:
        stream = runtime.target.stream("GetContainerEvents", cri.GetEventsRequest())
        async for event in stream:
            events.all.append(event)

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.2)
    events.all.clear()  # what nobody has listened to, which a runtime may tell now (CRI-143)
    try:
        yield events
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def told(events: list[cri.ContainerEventResponse]) -> list[tuple[int, str]]:
    return [(event.container_event_type, event.container_id) for event in events]


async def test_events_of_a_pod_CRI_140_CRI_141(runtime: Runtime) -> None:
    config = runtime.pod()
    async with watched(runtime) as events:
        sandbox = await runtime.run_sandbox(config)
        assert told(await events.take(2)) == [(CREATED, sandbox), (STARTED, sandbox)]
        first = await runtime.create(sandbox, config)
        (event,) = await events.take(1)
        assert told([event]) == [(CREATED, first)]
        assert event.created_at > 0
        assert event.pod_sandbox_status == await runtime.sandbox_status(sandbox)
        assert list(event.containers_statuses) == [await runtime.status(first)]
        await runtime.start(first)
        second = await runtime.create(sandbox, config, attempt=1)
        both = await events.take(2)
        assert told(both) == [(STARTED, first), (CREATED, second)]
        states = {one.id: one.state for one in both[0].containers_statuses}
        assert states == {first: cri.CONTAINER_RUNNING}
        assert {one.id for one in both[1].containers_statuses} == {first, second}
        await runtime.stop(first)
        (event,) = await events.take(1)
        assert told([event]) == [(STOPPED, first)]
        states = {one.id: one.state for one in event.containers_statuses}
        assert states == {first: cri.CONTAINER_EXITED, second: cri.CONTAINER_CREATED}
        await runtime.call("RemoveContainer", cri.RemoveContainerRequest(container_id=first))
        assert told(await events.take(1)) == [(DELETED, first)]
        await runtime.start(second)
        assert told(await events.take(1)) == [(STARTED, second)]
        await runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
        assert told(await events.take(2)) == [(STOPPED, second), (STOPPED, sandbox)]
        await runtime.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
        assert told(await events.take(2)) == [(DELETED, second), (DELETED, sandbox)]


async def test_a_failed_start_is_no_event_CRI_142(runtime: Runtime) -> None:
    """The next event of the pod shows it."""
    config = runtime.pod()
    sandbox = await runtime.run_sandbox(config)
    program = Program("", lambda fake: (fake.start_fails("exec: /no/such: not found"),))
    container = await runtime.create(sandbox, config, program, command=["/no/such"])
    async with watched(runtime) as events:
        request = cri.StartContainerRequest(container_id=container)
        await runtime.refused("StartContainer", request)
        await events.take(0)
        other = await runtime.create(sandbox, config, attempt=1)
        (event,) = await events.take(1)
        states = {one.id: one.state for one in event.containers_statuses}
        assert states == {container: cri.CONTAINER_EXITED, other: cri.CONTAINER_CREATED}


async def test_a_process_killed_for_memory_is_no_event_CRI_142(runtime: Runtime) -> None:
    if runtime.fake is None:
        pytest.skip("busybox has nothing that fills a limit beside its main process")
    program = Program("", lambda fake: (fake.oom_kills_child(at_s=0.2),))
    async with watched(runtime) as events:
        _, container = await runtime.running(program)
        await events.take(4)
        async with asyncio.timeout(5):
            while (await runtime.status(container)).reason != "OOMKilled":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await events.take(0)


STREAMED = {
    "StreamPodSandboxes": "ListPodSandbox",
    "StreamContainers": "ListContainers",
    "StreamContainerStats": "ListContainerStats",
    "StreamPodSandboxStats": "ListPodSandboxStats",
    "StreamPodSandboxMetrics": "ListPodSandboxMetrics",
    "StreamImages": "ListImages",
}


async def batches(runtime: Runtime, method: str, **wanted: Any) -> list[list[Any]]:
    """The items of each message."""
    kind = getattr(cri, f"{method}Request")
    messages = [one async for one in runtime.target.stream(method, kind(**wanted))]
    return [
        list(message.ListFields()[0][1]) if message.ListFields() else [] for message in messages
    ]


@pytest.mark.parametrize("method", STREAMED)
async def test_a_streaming_list_has_what_the_list_has_CRI_150(
    runtime: Runtime, method: str
) -> None:
    containerd_since(runtime, "2.4", "streaming lists")
    unary = STREAMED[method]
    for _ in range(2):
        await runtime.running(RUNS)
    if runtime.fake is not None:
        runtime.fake.limit_list_batches(1)
    found = await batches(runtime, method)
    assert all(found)
    answer = await runtime.call(unary, getattr(cri, f"{unary}Request")())
    items = list(answer.ListFields()[0][1])
    names = [str(getattr(item, "attributes", item)).partition("\n")[0] for item in items]
    streamed = [item for batch in found for item in batch]
    again = [str(getattr(item, "attributes", item)).partition("\n")[0] for item in streamed]
    assert sorted(again) == sorted(names)


async def test_a_streaming_list_has_the_same_filter_CRI_150(runtime: Runtime) -> None:
    containerd_since(runtime, "2.4", "streaming lists")
    _, container = await runtime.running(RUNS)
    (batch,) = await batches(runtime, "StreamContainers", filter={"id": container})
    assert [item.id for item in batch] == [container]
    assert await batches(runtime, "StreamContainers", filter={"id": "f" * 64}) == []
