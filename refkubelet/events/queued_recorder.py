"""The kubelet's event recorder: keeps, counts, thins out and sends events; never blocks.

Recording an event correlates it with earlier ones at once (`event_correlator`) and leaves the
sending to `run`. Without an API client events are only kept. What must never happen here: a
component waiting for the API because it said something.
Upstream: client-go tools/record/event.go: recordToSink, recordEvent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.events.correlator import EventCorrelator, InvolvedObject, RecordedEvent
from refkubelet.events.recorder import EventType
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.token_bucket import TokenBucket
from simtime import Clock, Ids

log = logging.getLogger(__name__)

KEPT_EVENTS: Final = 1000
SEND_TRIES: Final = 12
SEND_RETRY_S: Final = 10.0
NO_ROOM: Final = "events are dropped, 1000 wait to be sent"


class QueuedEventRecorder:
    """The `EventRecorder` of a running kubelet.

    `qps` and `burst` limit the sending (eventRecordQPS 50, eventBurst 100; qps 0 = no limit).
    `events` lists what was recorded lately, oldest first, each repetition as an entry of its own;
    `dropped` counts those that were never sent because a thousand others waited.
    `random` draws from [0, 1): the first retry of a sending comes at a random time, so that the
    nodes of a cluster do not all come at once.
    """

    def __init__(
        self,
        api: ApiClient | None,
        clock: Clock,
        ids: Ids,
        node_name: str,
        *,
        qps: int = 50,
        burst: int = 100,
        random: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.events: deque[RecordedEvent] = deque(maxlen=KEPT_EVENTS)
        self._api = api
        self._clock = clock
        self._node_name = node_name
        self._correlator = EventCorrelator(ids)
        self._queue: asyncio.Queue[RecordedEvent] = asyncio.Queue(maxsize=KEPT_EVENTS)
        self._limit = TokenBucket(burst, qps) if qps else None
        self._random = random
        self._complaints = Complaints(log, clock)
        self.dropped = 0

    def pod_event(
        self,
        pod: Pod,
        event_type: EventType,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        meta = pod.metadata
        involved = InvolvedObject(
            kind="Pod",
            name=meta.name or "",
            namespace=meta.namespace or "default",
            uid=uid(pod),
            resource_version=meta.resourceVersion or "",
            field_path=field_path,
        )
        self._record(involved, event_type, reason, message, annotations)

    def node_event(self, event_type: EventType, reason: str, message: str) -> None:
        """An event about this node: kind Node, no UID, namespace default (NODE-070)."""
        involved = InvolvedObject("Node", self._node_name)
        self._record(involved, event_type, reason, message, None)

    def _record(
        self,
        involved: InvolvedObject,
        event_type: EventType,
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None,
    ) -> None:
        now_ns = self._clock.wall_ns()
        marks = tuple(sorted((annotations or {}).items()))
        event = RecordedEvent(
            "", involved, event_type, reason, message, now_ns, now_ns, annotations=marks
        )
        written = self._correlator.correlate(event, self._clock.monotonic_s())
        log.debug("event %s %s %s: %s", involved.name, event_type, reason, message)
        if written is None:
            return
        self.events.append(written)
        if self._api is None:
            return
        try:
            self._queue.put_nowait(written)
        except asyncio.QueueFull:
            self._drop(written)

    def _drop(self, event: RecordedEvent) -> None:
        """BACK-012: who makes events never waits for the server."""
        self.dropped += 1
        times = self._complaints.again(NO_ROOM)
        if times is not None:
            log.warning("%s%s: %s of %s", NO_ROOM, times, event.reason, event.involved.name)

    async def run(self) -> None:
        """Send what is queued until cancelled; wait for ever when there is no API client."""
        if self._api is None:
            await asyncio.Event().wait()
            return
        while True:
            event = await self._queue.get()
            self._complaints.over(NO_ROOM)
            if self._limit is not None:
                await asyncio.sleep(self._limit.wait_s(self._clock.monotonic_s()))
                self._limit.take(self._clock.monotonic_s())
            await self._send(self._api, event)

    async def _send(self, api: ApiClient, event: RecordedEvent) -> None:
        """Post or patch; try again while the server cannot be reached, give up on its no."""
        for tries in range(1, SEND_TRIES + 1):
            try:
                await self._write(api, event)
                return
            except ApiError as error:
                if error.status:
                    log.warning("event %s was refused: %s", event.name, error)
                    return
                level = logging.WARNING if tries in (1, SEND_TRIES) else logging.DEBUG
                log.log(level, "event %s not sent, try %d: %s", event.name, tries, error)
            if tries < SEND_TRIES:
                await asyncio.sleep(SEND_RETRY_S * (self._random() if tries == 1 else 1.0))

    async def _write(self, api: ApiClient, event: RecordedEvent) -> None:
        """An event that was seen before is patched; if the server does not know it (it forgot, or
        the first one was dropped), it is posted as it is now."""
        if event.count > 1:
            try:
                await api.patch_event(event.namespace, event.name, event.to_patch())
                return
            except ApiError as error:
                if not error.not_found:
                    raise  # the event is gone at the server only when it says so
        await api.create_event(event.namespace, event.to_json(self._node_name))
