"""The kubelet's event recorder: keeps, counts, combines and sends events; recording never blocks.

Recording an event compares it with earlier ones at once (`correlator`); `run` sends it later.
Without an API client events are only kept. What must never happen here: a component waits for the
API server because it recorded an event.
Upstream: client-go tools/record/event.go: recordToSink, recordEvent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from lightkube.models.core_v1 import PersistentVolumeClaim
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import Struct

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import EVENTS
from refkubelet.events.correlator import EventCorrelator, InvolvedObject, RecordedEvent
from refkubelet.events.recorder import EventType
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.token_bucket import TokenBucket
from simclock import Clock

log = logging.getLogger(__name__)

KEPT_EVENTS: Final = 1000
SEND_TRIES: Final = 12
SEND_RETRY_S: Final = 10.0
NO_ROOM: Final = "events are dropped, 1000 wait to be sent"


class SendLimits(Struct, frozen=True):
    """How fast events are sent."""

    qps: int = 50
    """Events per second (eventRecordQPS); 0: no limit."""
    burst: int = 100
    """Events that can be sent at once (eventBurst)."""


DEFAULT_LIMITS: Final = SendLimits()


class QueuedEventRecorder:
    """The `EventRecorder` of a running kubelet.

    `events` holds the last `KEPT_EVENTS`, oldest first; a repetition is an entry of its own.
    `dropped` counts those that were not sent because the queue was full.
    """

    def __init__(
        self,
        api: ApiClient | None,
        clock: Clock,
        node_name: str,
        *,
        limits: SendLimits = DEFAULT_LIMITS,
        random: Callable[[], float] = lambda: 1.0,
    ) -> None:
        """`random` draws from [0, 1): the first retry comes after a random part of `SEND_RETRY_S`,
        so that the nodes of a cluster do not send all at once."""
        self.events: deque[RecordedEvent] = deque(maxlen=KEPT_EVENTS)
        self._api = api
        self._clock = clock
        self._node_name = node_name
        self._correlator = EventCorrelator()
        self._queue: asyncio.Queue[RecordedEvent] = asyncio.Queue(maxsize=KEPT_EVENTS)
        self._limit = TokenBucket(limits.burst, limits.qps) if limits.qps else None
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
        """An event about a pod, or about a container of it (`field_path`)."""
        meta = pod.metadata
        involved = InvolvedObject(
            kind="Pod",
            name=meta.name or "",
            namespace=meta.namespace or "default",
            uid=uid(pod),
            resource_version=meta.resourceVersion or "",
            field_path=field_path,
        )
        self._record(involved, event_type, reason=reason, message=message, annotations=annotations)

    def node_event(self, event_type: EventType, reason: str, message: str) -> None:
        """An event about this node: kind Node, no UID, namespace default (NODE-070)."""
        involved = InvolvedObject("Node", self._node_name)
        self._record(involved, event_type, reason=reason, message=message)

    def claim_event(
        self, claim: PersistentVolumeClaim, event_type: EventType, reason: str, message: str
    ) -> None:
        """An event about a claim (NODE-222)."""
        meta = claim.metadata or ObjectMeta()
        involved = InvolvedObject(
            kind="PersistentVolumeClaim",
            name=meta.name or "",
            namespace=meta.namespace or "default",
            uid=meta.uid or "",
            resource_version=meta.resourceVersion or "",
        )
        self._record(involved, event_type, reason=reason, message=message)

    def _record(
        self,
        involved: InvolvedObject,
        event_type: EventType,
        *,
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Correlate the event with earlier ones, and queue what is to be sent."""
        now_ns = self._clock.wall_ns()
        marks = tuple(sorted((annotations or {}).items()))
        event = RecordedEvent(
            name="",
            involved=involved,
            type=event_type,
            reason=reason,
            message=message,
            first_ns=now_ns,
            last_ns=now_ns,
            annotations=marks,
        )
        counted_event = self._correlator.correlate(event, self._clock.monotonic_s())
        log.debug("event %s %s %s: %s", involved.name, event_type, reason, message)
        if counted_event is None:
            return
        self.events.append(counted_event)
        if self._api is None:
            return
        try:
            self._queue.put_nowait(counted_event)
        except asyncio.QueueFull:
            self._drop(counted_event)

    def _drop(self, event: RecordedEvent) -> None:
        """The queue is full: recording never waits for the server (BACK-012)."""
        self.dropped += 1
        times = self._complaints.again(NO_ROOM)
        if times is not None:
            log.warning("%s%s: %s of %s", NO_ROOM, times, event.reason, event.involved.name)

    async def run(self) -> None:
        """Send what is queued until cancelled; without an API client, wait."""
        if self._api is None:
            await asyncio.Event().wait()
            return
        while True:
            event = await self._queue.get()
            self._complaints.over(NO_ROOM)
            if self._limit is not None:
                await asyncio.sleep(self._limit.reserve(self._clock.monotonic_s()))
            await self._send(self._api, event)

    async def _send(self, api: ApiClient, event: RecordedEvent) -> None:
        """Post or patch; try again while the server cannot be reached, give up when it refuses."""
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
        """Patch an event that was sent before, post a new one. If the server does not know the
        event (it expired there, or its first form was dropped), it is posted as it is now."""
        if event.count > 1:
            try:
                await api.patch(EVENTS, event.name, event.to_patch(), event.namespace)
                return
            except ApiError as error:
                if not error.not_found:
                    raise
        await api.create(EVENTS, event.to_json(self._node_name))
