"""GetContainerEvents: every change of state, told to all subscribers (CRI-140..144)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

from criapi.v1 import api_pb2 as pb

from fakecri.errors import CriError
from fakecri.messages import container_status, sandbox_status
from fakecri.runtime import Core, News

_Item: TypeAlias = pb.ContainerEventResponse | CriError


class EventStreams:
    """Turns the core's news into events, taken when the change happens, and broadcasts them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._subscribers: list[asyncio.Queue[_Item]] = []

    async def subscribe(self) -> AsyncIterator[pb.ContainerEventResponse]:
        """The events from now on; ends when the caller stops, or with an error."""
        queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._subscribers.append(queue)
        self._core.watch = self._publish
        try:
            while True:
                item = await queue.get()
                if isinstance(item, CriError):
                    raise item
                yield item
        finally:
            self._subscribers.remove(queue)
            if not self._subscribers:
                self._core.watch = None  # an event costs something, so make none for nobody

    def end(self, error: CriError) -> None:
        """All streams end with `error`."""
        for queue in self._subscribers:
            queue.put_nowait(error)

    def _publish(self, news: News) -> None:
        """Tell all subscribers, with the state of the pod at this moment."""
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
