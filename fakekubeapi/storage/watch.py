"""Watches: the changes of some objects as a stream, from a revision on, without gaps.

A watch reads the store's history from its revision on, and hears of each change after that, so it
neither misses nor reorders one. When the history no longer has the changes it needs next, it ends
with an ERROR event (410 Expired).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from fakekubeapi.errors import ApiUnreachable, StatusError, too_large_version
from fakekubeapi.latency import EVENT
from fakekubeapi.resources import Resource
from fakekubeapi.resources.wire import as_written
from fakekubeapi.storage.changes import EVERYTHING, Change, Place
from fakekubeapi.storage.selectors import Predicate
from fakekubeapi.storage.store import Store
from kubeobjects.schema.messages import Message
from simclock import Latency, sleep

Event = dict[str, Any]
FRESH_WITHIN_S: Final = 3.0
"""How long a client waits for a revision that is not there yet."""
BOOKMARK_EVERY_S: Final = 60.0
"""How often a kube-apiserver sends bookmarks, about."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class WatchOptions(Struct, frozen=True):
    """What a client asked for (ListOptions)."""

    resource: Resource
    namespace: str | None
    """None: all namespaces."""
    matches: Predicate
    """The selectors: which objects to watch."""
    place: Place
    """What these objects have in common: where to look for changes."""
    message: Message
    """The type of the objects."""
    resource_version: int | None = None
    """The changes after this revision, which may not be there yet; None or 0: first the current
    objects as ADDED events."""
    timeout_s: float | None = None
    """Seconds after which the watch ends; None: never."""
    bookmarks: bool = False
    """Whether BOOKMARK events are wanted: after initial events, and at the time-out (SRC-051)."""
    bookmark_every_s: float | None = None
    """How often they come in between; None: they do not."""
    initial_events: bool = False
    """First the current objects as ADDED events, once the revision is there (SRC-051)."""
    waits_over_all: bool = False
    """Whether changes elsewhere take its time, too (`ServerOptions.waits_apart`)."""


async def watch_events(
    store: Store,
    options: WatchOptions,
    connected: Callable[[], bool],
    latency: Latency | None = None,
) -> AsyncGenerator[Event, None]:
    """The events of a watch, `{"type": ..., "object": ...}`, with the stored objects themselves.

    Ends at its time-out or after an ERROR event. Raises: ApiUnreachable once `connected()` is
    false; `store.wake()` makes a waiting watch look. `latency`: how long it takes from a change to
    its event.
    """
    loop = asyncio.get_running_loop()
    deadline = None if options.timeout_s is None else loop.time() + options.timeout_s
    revision = options.resource_version or 0
    if options.initial_events and not await reached(store, revision):
        yield {"type": "ERROR", "object": too_large_version(revision, store.revision).body()}
        return
    revision, first = _begin(store, options, revision)
    for event in first:
        yield event
    place = EVERYTHING if options.waits_over_all else options.place
    feed = None
    try:
        feed = store.follow(place, revision)
        while connected():
            for change in feed.take():
                if not connected():
                    break
                change_event = _event_of(change, options)
                if change_event is not None:
                    yield change_event
            if not (feed.is_empty and connected()):
                continue
            mark_at = _mark_at(options, loop.time())
            if await _before(feed.wait(), _earlier(deadline, mark_at)):
                if latency is not None:
                    await sleep(sum(latency.of(EVENT)))
                continue
            if options.bookmarks:
                yield _bookmark(options, max(revision, store.revision))
            if deadline is not None and loop.time() >= deadline:
                return
        raise ApiUnreachable("the API server went down (FakeApi.down)")
    except StatusError as error:  # the history does not reach back so far
        yield {"type": "ERROR", "object": error.body()}
    finally:
        if feed is not None:
            store.unfollow(feed)


def _begin(store: Store, options: WatchOptions, revision: int) -> tuple[int, list[Event]]:
    """After which revision the watch follows, and what it tells first: what there is, if it asks
    for that."""
    if revision and not options.initial_events:
        return revision, []
    events: list[Event] = [{"type": "ADDED", "object": obj} for obj in _selected(store, options)]
    if options.initial_events and options.bookmarks:
        events.append(_bookmark(options, store.revision, {INITIAL_EVENTS_END: "true"}))
    return store.revision, events


async def reached(store: Store, revision: int) -> bool:
    """Wait until the store is at that revision; whether it is, after three seconds at most."""
    deadline = asyncio.get_running_loop().time() + FRESH_WITHIN_S
    while store.revision < revision:
        if not await _before(store.changed(), deadline):
            return False
    return True


def _mark_at(options: WatchOptions, now: float) -> float | None:
    every_s = options.bookmark_every_s
    return now + every_s if options.bookmarks and every_s is not None else None


def _earlier(one: float | None, other: float | None) -> float | None:
    times = [time for time in (one, other) if time is not None]
    return min(times, default=None)


async def _before(change: Awaitable[None], deadline: float | None) -> bool:
    """Wait for a change; whether there was one before the deadline (in the loop's seconds)."""
    try:
        async with asyncio.timeout_at(deadline):
            await change
    except TimeoutError:
        return False
    return True


def _selected(store: Store, options: WatchOptions) -> Iterator[dict[str, Any]]:
    for key in store.keys_at(options.place):
        obj = store.get(key)
        if obj is not None and options.matches(obj):
            yield obj


def _event_of(change: Change, options: WatchOptions) -> Event | None:
    """The event this watch has for a change; None if the change is not for it.

    An object that begins to match is ADDED; one that no longer matches is DELETED, shown as it was
    before, with the resourceVersion of the change.
    """
    if change.key.resource != options.resource.qualified:
        return None
    if options.namespace not in (None, change.key.namespace):
        return None
    before = change.previous is not None and options.matches(change.previous)
    after = change.type != "DELETED" and options.matches(change.object)
    kind = _SEEN_AS[before, after]
    if kind is None:
        return None
    obj = change.object
    if kind == "DELETED" and change.type != "DELETED" and change.previous is not None:
        metadata = {**change.previous["metadata"], "resourceVersion": str(change.revision)}
        obj = {**change.previous, "metadata": metadata}
    return {"type": kind, "object": obj}


# By whether the object matched before and matches after the change.
_SEEN_AS: Final[dict[tuple[bool, bool], str | None]] = {
    (False, False): None,
    (False, True): "ADDED",
    (True, True): "MODIFIED",
    (True, False): "DELETED",
}


def _bookmark(
    options: WatchOptions, revision: int, annotations: dict[str, str] | None = None
) -> Event:
    """Its object has what Go writes of an empty one; a client must not take it for a real one
    (SRC-051)."""
    resource = options.resource
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    obj = {"kind": resource.kind, "apiVersion": resource.api_version}
    obj |= as_written({}, options.message) | {"metadata": metadata}
    return {"type": "BOOKMARK", "object": obj}
