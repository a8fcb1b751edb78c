"""GetContainerEvents: every change of state, told to all subscribers (CRI-140..144).

What must never happen here: events are made that are never read (each costs the status of a
whole pod), or two subscribers share a message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, TypeAlias

from kubecri.v1 import api_pb2 as pb

from fakecri.core.messages import container_status, sandbox_status
from fakecri.core.runtime import Core, News
from fakecri.errors import CriError

_Item: TypeAlias = pb.ContainerEventResponse | CriError
_MOST_KEPT: Final = 10_000


class EventStreams:
    """Turns the core's news into events, taken when the change happens, and broadcasts them.

    `keep_s`: so long an event without a subscriber waits for the next subscriber; containerd 2
    keeps them for 300 s, earlier ones not at all (CRI-143).
    """

    def __init__(self, core: Core, *, keep_s: float = 0.0) -> None:
        self._core = core
        self._keep_ns = round(keep_s * 1e9)
        self._kept: deque[pb.ContainerEventResponse] = deque(maxlen=_MOST_KEPT)
        self._subscribers: list[asyncio.Queue[_Item]] = []

    def _drop_old(self) -> None:
        oldest_ns = self._core.now_ns() - self._keep_ns
        while self._kept and self._kept[0].created_at < oldest_ns:
            self._kept.popleft()

    async def subscribe(self) -> AsyncIterator[pb.ContainerEventResponse]:
        """The events from now on; ends when the caller stops, or with an error."""
        queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._drop_old()
        while self._kept:
            queue.put_nowait(self._kept.popleft())
        self._subscribers.append(queue)
        try:
            while True:
                item = await queue.get()
                if isinstance(item, CriError):
                    raise item
                yield item
        finally:
            self._subscribers.remove(queue)

    def end(self, error: CriError) -> None:
        """All streams end with `error`; what was kept is lost."""
        self._kept.clear()
        for queue in self._subscribers:
            queue.put_nowait(error)

    def publish(self, news: News) -> None:
        """Tell all subscribers, with the state of the pod at this moment."""
        if not self._subscribers and not self._keep_ns:
            return
        containers = self._core.containers_of(news.sandbox)
        event = pb.ContainerEventResponse(
            container_id=news.object_id,
            container_event_type=news.kind,
            created_at=news.time_ns,
            pod_sandbox_status=sandbox_status(news.sandbox).status,
            containers_statuses=[
                container_status(container, self._core.images).status for container in containers
            ],
        )
        if not self._subscribers:
            self._drop_old()
            self._kept.append(event)
        for queue in self._subscribers:
            copy = pb.ContainerEventResponse()
            copy.CopyFrom(event)
            queue.put_nowait(copy)
