"""GetContainerEvents in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from criapi.v1 import api_pb2 as cri
from runtime_calls import started, stop

from fakecri import (
    FakeCRI,
)


@pytest.mark.virtual_time
async def test_events_tell_every_change_with_the_whole_pod_CRI_140_CRI_141() -> None:
    fake = FakeCRI()
    created, begun = cri.CONTAINER_CREATED_EVENT, cri.CONTAINER_STARTED_EVENT
    expected = [created, begun, created, begun, cri.CONTAINER_STOPPED_EVENT]
    seen: list[Any] = []

    async def listen() -> None:
        async for event in fake.stream("GetContainerEvents", cri.GetEventsRequest()):
            seen.append(event)

    listener = asyncio.create_task(listen())
    await asyncio.sleep(0)
    container = await started(fake)
    await stop(fake, container, 0)
    await asyncio.sleep(1)
    listener.cancel()
    assert seen[-1].containers_statuses[0].exit_code == 137
    assert seen[-1].pod_sandbox_status.metadata.name == "web"
    assert [event.container_event_type for event in seen] == expected
