"""The kubelet's event recorder: keeps, counts, thins out and sends events; never blocks.

Recording an event correlates it with earlier ones at once (identical ones count up, floods
collapse or are dropped, BACK-012) and leaves the sending to `run`. Without an API client events are
only kept. What must never happen here: a component waiting for the API because it said something.
Upstream: client-go tools/record/events_cache.go, event.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from refkubelet.apiclient import ApiClient, ApiError
from refkubelet.events import EventType
from refkubelet.model.objects import Pod, uid
from simtime import Clock, Ids, format_rfc3339

log = logging.getLogger(__name__)

COMPONENT: Final = "kubelet"
KEPT_EVENTS: Final = 1000
CACHE_SIZE: Final = 4096  # keys remembered for counting, least recently used first out
SIMILAR_LIMIT: Final = 10  # BACK-012
SIMILAR_WINDOW_S: Final = 600.0
SPAM_BURST: Final = 25
SPAM_REFILL_S: Final = 300.0
COMBINED_PREFIX: Final = "(combined from similar events): "
SEND_TRIES: Final = 12
SEND_RETRY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """What an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event as last written; `count` grows with repetition. Times: wall clock, ns."""

    name: str
    involved: InvolvedObject
    type: EventType
    reason: str
    message: str
    first_ns: int
    last_ns: int
    count: int = 1
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def namespace(self) -> str:
        return self.involved.namespace or "default"

    def to_json(self, host: str) -> dict[str, Any]:
        """The v1 Event to post."""
        involved = {
            "apiVersion": "v1",
            "kind": self.involved.kind,
            "name": self.involved.name,
            "namespace": self.involved.namespace,
            "uid": self.involved.uid,
            "resourceVersion": self.involved.resource_version,
            "fieldPath": self.involved.field_path,
        }
        metadata: dict[str, Any] = {"name": self.name, "namespace": self.namespace}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": {k: v for k, v in involved.items() if v},
            "reason": self.reason,
            "message": self.message,
            "source": {"component": COMPONENT, "host": host},
            "firstTimestamp": format_rfc3339(self.first_ns),
            "lastTimestamp": format_rfc3339(self.last_ns),
            "count": self.count,
            "type": self.type,
            "reportingComponent": COMPONENT,
            "reportingInstance": host,
        }

    def to_patch(self) -> dict[str, Any]:
        """What changed since the event was posted."""
        return {
            "count": self.count,
            "lastTimestamp": format_rfc3339(self.last_ns),
            "message": self.message,
        }


@dataclass(slots=True)
class TokenBucket:
    """`burst` tokens, one more every `refill_s` seconds, never more than `burst`."""

    burst: int
    refill_s: float
    tokens: float = field(init=False)
    filled_at_s: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = float(self.burst)

    def wait_s(self, now_s: float) -> float:
        """Seconds until a token is there; 0 when one can be taken now."""
        self.tokens = min(self.burst, self.tokens + (now_s - self.filled_at_s) / self.refill_s)
        self.filled_at_s = now_s
        return max(0.0, (1.0 - self.tokens) * self.refill_s)

    def take(self, now_s: float) -> bool:
        if self.wait_s(now_s) > 0:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class _Similar:
    """Messages seen of events that differ in nothing else."""

    since_s: float
    messages: dict[str, None] = field(default_factory=dict)


class _Cache(OrderedDict[Any, Any]):
    """A dictionary that forgets its least recently used key above `CACHE_SIZE`."""

    def touch(self, key: Any, value: Any) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > CACHE_SIZE:
            self.popitem(last=False)


class EventCorrelator:
    """Decides what becomes of each event (BACK-012); no I/O, time comes with the event."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._similar = _Cache()
        self._written = _Cache()
        self._buckets = _Cache()

    def correlate(self, event: RecordedEvent, now_s: float) -> RecordedEvent | None:
        """The event to write (a new one with a name, or an old one counted up), None = drop."""
        group = (event.involved, event.type, event.reason)
        collapsed = self._collapse(group, event, now_s)
        key = (group, None) if collapsed else (group, event.message)
        message = COMBINED_PREFIX + event.message if collapsed else event.message
        old: RecordedEvent | None = self._written.get(key)
        if old is None:
            name = f"{event.involved.name}.{self._ids.hex(16)}"
            new = replace(event, name=name, message=message)
        else:
            new = replace(old, message=message, last_ns=event.last_ns, count=old.count + 1)
        self._written.touch(key, new)
        return new if self._bucket(event).take(now_s) else None

    def _collapse(self, group: Any, event: RecordedEvent, now_s: float) -> bool:
        similar: _Similar | None = self._similar.get(group)
        if similar is None or now_s - similar.since_s > SIMILAR_WINDOW_S:
            similar = _Similar(now_s)
        similar.since_s = now_s
        similar.messages[event.message] = None
        self._similar.touch(group, similar)
        if len(similar.messages) <= SIMILAR_LIMIT:
            return False
        similar.messages.pop(next(iter(similar.messages)))
        return True

    def _bucket(self, event: RecordedEvent) -> TokenBucket:
        key = (replace(event.involved, field_path=""), event.type)
        bucket: TokenBucket | None = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(SPAM_BURST, SPAM_REFILL_S)
        self._buckets.touch(key, bucket)
        return bucket


class QueuedEventRecorder:
    """The `EventRecorder` of a running kubelet.

    `qps` and `burst` limit the sending (eventRecordQPS 50, eventBurst 100; qps 0 = no limit).
    `events` lists what was recorded lately, oldest first, each repetition as an entry of its own.
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
    ) -> None:
        self.events: deque[RecordedEvent] = deque(maxlen=KEPT_EVENTS)
        self._api = api
        self._clock = clock
        self._node_name = node_name
        self._correlator = EventCorrelator(ids)
        self._queue: asyncio.Queue[RecordedEvent] = asyncio.Queue(maxsize=KEPT_EVENTS)
        self._limit = TokenBucket(burst, 1 / qps) if qps else None
        self._posted = _Cache()

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
        assert meta is not None
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
        if self._api is not None and not self._queue.full():
            self._queue.put_nowait(written)

    async def run(self) -> None:
        """Send what is queued until cancelled; wait for ever when there is no API client."""
        if self._api is None:
            await asyncio.Event().wait()
            return
        while True:
            event = await self._queue.get()
            if self._limit is not None:
                await asyncio.sleep(self._limit.wait_s(self._clock.monotonic_s()))
                self._limit.take(self._clock.monotonic_s())
            await self._send(self._api, event)

    async def _send(self, api: ApiClient, event: RecordedEvent) -> None:
        """Post or patch; try again while the server cannot be reached, give up on its no."""
        for _ in range(SEND_TRIES):
            try:
                await self._write(api, event)
                return
            except ApiError as e:
                if e.status:
                    log.warning("event %s was refused: %s", event.name, e)
                    return
                log.warning("event %s could not be sent: %s", event.name, e)
            await asyncio.sleep(SEND_RETRY_S)

    async def _write(self, api: ApiClient, event: RecordedEvent) -> None:
        if event.name in self._posted:
            try:
                await api.patch_event(event.namespace, event.name, event.to_patch())
                return
            except ApiError as e:
                if not e.not_found:
                    raise  # the event is gone at the server only when it says so
        await api.create_event(event.namespace, event.to_json(self._node_name))
        self._posted.touch(event.name, True)
