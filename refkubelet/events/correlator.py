"""Decides what becomes of an event: it is new, counted up, combined with others or dropped. No I/O.

The time comes with each event (BACK-012). How it works, in this order: the tenth different message
of one object, type and reason within ten minutes, and all that follow, become one combined event;
an event that was seen before is counted up; at last a token bucket for each object and type drops a
flood. A dropped event is still counted, so that the next one that passes shows the true count.
What must never happen: unbounded memory (all three caches forget the least recently used entry).
Upstream: client-go tools/record/events_cache.go: EventAggregate, eventObserve, Filter.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.events.recorder import EventType
from refkubelet.model.token_bucket import TokenBucket
from simclock import format_rfc3339

COMPONENT: Final = "kubelet"
CACHE_SIZE: Final = 4096
SIMILAR_LIMIT: Final = 10  # from this number of different messages on they are combined
SIMILAR_WINDOW_S: Final = 600.0  # after such a pause they are separate again
SPAM_BURST: Final = 25
SPAM_REFILL_S: Final = 300.0
COMBINED_PREFIX: Final = "(combined from similar events): "


class InvolvedObject(Struct, frozen=True):
    """What an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""

    def to_json(self) -> dict[str, str]:
        """The v1 ObjectReference, without empty fields."""
        reference = {
            "apiVersion": "v1",
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
            "fieldPath": self.field_path,
        }
        return {name: value for name, value in reference.items() if value}


class RecordedEvent(Struct, frozen=True):
    """One event as it was last written."""

    name: str
    """metadata.name; "" before the event was correlated."""
    involved: InvolvedObject  # what it is about
    type: EventType  # Normal or Warning
    reason: str  # one word
    message: str  # a sentence; of a combined event with `COMBINED_PREFIX`
    first_ns: int
    """The first time it happened: wall clock, ns since 1970."""
    last_ns: int
    """The last time it happened, likewise."""
    count: int = 1
    """How often it happened."""
    annotations: tuple[tuple[str, str], ...] = ()  # (name, value), sorted
    combined: bool = False
    """It stands for several events that differ in their message."""

    @property
    def namespace(self) -> str:
        """Where the event is stored: `default` for objects without a namespace, such as the
        Node."""
        return self.involved.namespace or "default"

    def to_json(self, host: str) -> dict[str, Any]:
        """The v1 Event to post. A combined one names no reporting component."""
        metadata: dict[str, Any] = {"name": self.name, "namespace": self.namespace}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": self.involved.to_json(),
            "reason": self.reason,
            "message": self.message,
            "source": {"component": COMPONENT, "host": host},
            "firstTimestamp": format_rfc3339(self.first_ns),
            "lastTimestamp": format_rfc3339(self.last_ns),
            "count": self.count,
            "type": self.type,
        }
        if not self.combined:
            event |= {"reportingComponent": COMPONENT, "reportingInstance": host}
        return event

    def to_patch(self) -> dict[str, Any]:
        """What changed since the event was posted."""
        return {
            "count": self.count,
            "lastTimestamp": format_rfc3339(self.last_ns),
            "message": self.message,
        }


@dataclass(slots=True)
class _Similar:
    """The messages of events that differ in nothing else, and when the last one came."""

    last_s: float
    messages: dict[str, None] = field(default_factory=dict)


class _Cache(OrderedDict[Any, Any]):
    """A dictionary that forgets its least recently used key above `CACHE_SIZE`."""

    def touch(self, key: Any, value: Any) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > CACHE_SIZE:
            self.popitem(last=False)


_Whole: TypeAlias = tuple[str, str, str, str]
"""The object of an event: kind, namespace, name, UID. Events of different versions of an object
count as equal; the field path counts for repetition, not for similarity."""
_Kind: TypeAlias = tuple[_Whole, str, str]


class EventCorrelator:
    """Decides what becomes of each event (BACK-012)."""

    def __init__(self) -> None:
        self._named_ns = 0
        self._similar = _Cache()
        self._written = _Cache()
        self._buckets = _Cache()

    def correlate(self, event: RecordedEvent, now_s: float) -> RecordedEvent | None:
        """The event to write: a new one with a name, or an old one counted up; None: drop it.

        `now_s`: monotonic time.
        """
        involved = event.involved
        whole: _Whole = (involved.kind, involved.namespace, involved.name, involved.uid)
        kind: _Kind = (whole, event.type, event.reason)
        key: Any = (kind, involved.field_path, event.message)
        if self._is_one_of_many(kind, event.message, now_s):
            key = kind
            message = COMBINED_PREFIX + event.message
            event = replace(event, message=message, annotations=(), combined=True)
        counted = self._counted(key, event)
        return counted if self._bucket(whole, event.type).take(now_s) else None

    def _is_one_of_many(self, kind: _Kind, message: str, now_s: float) -> bool:
        """Whether there were so many similar events lately that this one is combined with them."""
        similar: _Similar | None = self._similar.get(kind)
        if similar is None or now_s - similar.last_s > SIMILAR_WINDOW_S:
            similar = _Similar(now_s)
        similar.last_s = now_s
        similar.messages[message] = None
        self._similar.touch(kind, similar)
        if len(similar.messages) < SIMILAR_LIMIT:
            return False
        del similar.messages[next(iter(similar.messages))]  # upstream forgets any; here the oldest
        return True

    def _counted(self, key: Any, event: RecordedEvent) -> RecordedEvent:
        """With the name, first time and count of its earlier form, if there is one."""
        old: RecordedEvent | None = self._written.get(key)
        if old is None:
            name, first_ns, count = self._name(event), event.first_ns, 1
        else:
            name, first_ns, count = old.name, old.first_ns, old.count + 1
        new = replace(event, name=name, first_ns=first_ns, count=count)
        self._written.touch(key, new)
        return new

    def _name(self, event: RecordedEvent) -> str:
        """The object's name and the time, so that lists of events are in the order of time; of two
        at one moment the second is a nanosecond later."""
        self._named_ns = max(event.first_ns, self._named_ns + 1)
        return f"{event.involved.name}.{self._named_ns:x}"

    def _bucket(self, whole: _Whole, event_type: EventType) -> TokenBucket:
        key = (whole, event_type)
        bucket: TokenBucket | None = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(SPAM_BURST, 1 / SPAM_REFILL_S)
        self._buckets.touch(key, bucket)
        return bucket
