"""GetContainerEvents: every change of state, told to all subscribers (CRI-140..144)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from criapi.v1 import api_pb2 as pb

from fakecri.messages import container_status, sandbox_status
from fakecri.runtime import Core


class EventStreams:
    """Turns the core's news into events, taken when the change happens, and broadcasts them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._subscribers: list[asyncio.Queue[pb.ContainerEventResponse]] = []

    async def subscribe(self) -> AsyncIterator[pb.ContainerEventResponse]:
        """The events from now on; ends only when the caller stops."""
        queue: asyncio.Queue[pb.ContainerEventResponse] = asyncio.Queue()
        self._subscribers.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._subscribers.remove(queue)

    def publish(self) -> None:
        """Tell the core's news; the caller clears them."""
        if not self._subscribers:
            return
        for news in self._core.news:
            containers = self._core.containers_of(news.sandbox)
            event = pb.ContainerEventResponse(
                container_id=news.object_id,
                container_event_type=news.kind,
                created_at=news.time_ns,
                pod_sandbox_status=sandbox_status(news.sandbox),
                containers_statuses=[container_status(c, self._core.images) for c in containers],
            )
            for queue in self._subscribers:
                queue.put_nowait(event)
