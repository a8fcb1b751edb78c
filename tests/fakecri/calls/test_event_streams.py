"""Events: the state of that moment, subscribers, how long they wait."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from runtime_calls import hear, pod_config, run_pod, started, stop

from fakecri import FakeCRI


@pytest.mark.virtual_time
async def test_events_tell_every_change_with_the_state_of_that_moment_CRI_140_CRI_141() -> None:
    fake = FakeCRI()
    events: list[Any] = []
    listener = asyncio.create_task(hear(fake, events))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first = await started(fake, "a")
    sandbox = fake.sandboxes()[0].id
    second = await started(fake, "b")
    await fake.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await fake.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
    await asyncio.sleep(1)
    listener.cancel()
    names = {sandbox: "pod", first: "a", second: "b"}
    told = [
        (names[e.container_id], cri.ContainerEventType.Name(e.container_event_type)[10:-6])
        for e in events
    ]
    assert told == [
        ("pod", "CREATED"),
        ("pod", "STARTED"),
        ("a", "CREATED"),
        ("a", "STARTED"),
        ("b", "CREATED"),
        ("b", "STARTED"),
        ("a", "STOPPED"),
        ("b", "STOPPED"),
        ("pod", "STOPPED"),
        ("a", "DELETED"),
        ("b", "DELETED"),
        ("pod", "DELETED"),
    ]
    a_stopped = events[6]
    states = {s.metadata.name: s.state for s in a_stopped.containers_statuses}
    assert states == {"a": cri.CONTAINER_EXITED, "b": cri.CONTAINER_RUNNING}
    assert a_stopped.pod_sandbox_status.state == cri.SANDBOX_READY
    assert events[-1].pod_sandbox_status.id == sandbox


@pytest.mark.virtual_time
@pytest.mark.parametrize(("keep_s", "seen"), [(0.0, []), (5.0, ["two"]), (300.0, ["one", "two"])])
async def test_events_wait_for_a_subscriber_as_long_as_told_CRI_143(
    keep_s: float, seen: list[str]
) -> None:
    fake = FakeCRI(keep_events_s=keep_s)
    await run_pod(fake, pod_config("one"))
    await asyncio.sleep(10)
    await run_pod(fake, pod_config("two"))
    for expected in (seen, []):  # a second subscriber finds nothing left
        names = []
        try:
            request = cri.GetEventsRequest()
            async for event in fake.stream("GetContainerEvents", request, timeout_s=1):
                assert isinstance(event, cri.ContainerEventResponse)
                if event.container_event_type == cri.CONTAINER_CREATED_EVENT:
                    names.append(event.pod_sandbox_status.metadata.name)
        except grpc.RpcError as error:
            assert "context deadline exceeded" in str(error)  # noqa: PT017
        assert names == expected


@pytest.mark.virtual_time
async def test_all_subscribers_hear_everything_in_messages_of_their_own_CRI_143() -> None:
    fake = FakeCRI()
    heard: list[list[Any]] = [[], []]
    listeners = [asyncio.create_task(hear(fake, events)) for events in heard]
    await asyncio.sleep(1)
    await run_pod(fake)
    await asyncio.sleep(1)
    assert len(heard[0]) == 2
    assert heard[0] == heard[1]
    heard[0][0].container_id = "changed"
    assert heard[0] != heard[1]
    for listener in listeners:
        listener.cancel()


@pytest.mark.virtual_time
async def test_events_tell_every_change_with_the_whole_pod_CRI_140_CRI_141() -> None:
    fake = FakeCRI()
    created, begun = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
    seen: list[Any] = []
    listener = asyncio.create_task(hear(fake, seen))
    await asyncio.sleep(0)
    container = await started(fake)
    await stop(fake, container, 0)
    await asyncio.sleep(1)
    listener.cancel()
    assert seen[-1].containers_statuses[0].exit_code == 137
    assert seen[-1].pod_sandbox_status.metadata.name == "web"
    told = [event.container_event_type for event in seen]
    assert told == [created, begun, created, begun, cri.CONTAINER_STOPPED_EVENT]
