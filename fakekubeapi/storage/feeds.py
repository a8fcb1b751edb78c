"""Who hears of a change: the feeds of watches, found by what the change is about.

A kubelet watches each ConfigMap and Secret of its pods by name and its pods by node, so a server
has thousands of watches, and a change is for a few of them. What must never happen here: a change
misses a feed that it is for, or a feed that nobody reads grows without end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fakekubeapi.errors import expired
from fakekubeapi.storage.changes import EVERYTHING, Change, Place, values_of


@dataclass(eq=False, slots=True)
class Feed:
    """The changes that one watch has still to see, all later than `revision`. `is_forgotten`:
    whether the store still knows a revision."""

    number: int
    place: Place
    revision: int
    compacted: Callable[[], int]
    _changes: list[Change]
    _is_late: bool = False  # what it has to see was forgotten
    _waiting: asyncio.Future[None] | None = None

    def put(self, change: Change) -> None:
        """Take a change, unless it is one that was seen. A feed whose first change is forgotten by
        now takes no more: it will be told so."""
        if change.revision <= self.revision or self._is_late:
            return
        self._changes.append(change)
        if self._lags:
            self._changes.clear()
            self._is_late = True

    @property
    def _lags(self) -> bool:
        return bool(self._changes) and self._changes[0].revision <= self.compacted()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see."""
        return not self._changes and not self._is_late

    def take(self) -> list[Change]:
        """All that is to be seen, the oldest first. Raises: StatusError 410 (Expired) when some of
        it is forgotten."""
        if self._is_late or self._lags:
            raise expired(self.revision, self.compacted())
        changes, self._changes = self._changes, []
        if changes:
            self.revision = changes[-1].revision
        return changes

    async def wait(self) -> None:
        """Wait for the next change, or for `wake`."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def wake(self) -> None:
        """Let who waits go on, as a change would."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Feeds:
    """All that are open. They hear of a change in the order in which they were opened."""

    def __init__(self) -> None:
        self._number = 0
        self._by_place: dict[Place, dict[int, Feed]] = {}
        self._paths: dict[str, dict[str, int]] = {}  # resource -> path -> how many feeds

    def open(self, place: Place, revision: int, compacted: Callable[[], int]) -> Feed:
        """A feed that hears of every change from now on."""
        self._number += 1
        feed = Feed(self._number, place, revision, compacted, [])
        self._by_place.setdefault(place, {})[feed.number] = feed
        paths = self._paths.setdefault(place.resource, {})
        paths[place.path] = paths.get(place.path, 0) + 1
        return feed

    def close(self, feed: Feed) -> None:
        """It hears of nothing any more."""
        place = feed.place
        same = self._by_place[place]
        del same[feed.number]
        if not same:
            del self._by_place[place]
        paths = self._paths[place.resource]
        paths[place.path] -= 1
        if not paths[place.path]:
            del paths[place.path]
        if not paths:
            del self._paths[place.resource]

    def tell(self, change: Change) -> None:
        """Tell those that the change is for."""
        feeds = [f for place in self._places_of(change) for f in self._by_place[place].values()]
        for feed in sorted(feeds, key=_number):
            feed.put(change)
            feed.wake()

    def wake(self) -> None:
        """Let all that wait go on."""
        feeds = [feed for same in self._by_place.values() for feed in same.values()]
        for feed in sorted(feeds, key=_number):
            feed.wake()

    def _places_of(self, change: Change) -> Iterator[Place]:
        """The places of feeds that the change is for: where its object was and is."""
        if EVERYTHING in self._by_place:
            yield EVERYTHING
        resource = change.key.resource
        for path in self._paths.get(resource, ()):
            for value in values_of(change, path) if path else ("",):
                for namespace in (None, change.key.namespace):
                    place = Place(resource, namespace, path, value)
                    if place in self._by_place:
                        yield place


def _number(feed: Feed) -> int:
    return feed.number
