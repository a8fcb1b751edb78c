"""Follows objects of the API server: lists them, then watches, and keeps a local copy.

A failed list or watch is repeated after 0.8 s, doubling to 30 s, times a random factor of 1 to 2. A
watch that ended is continued from the last version seen. After one that failed all objects are
listed anew, because the server may refuse that version for ever: it has forgotten it (410), or does
not know it after a restore (504). Only after 429, too many requests, the watch is tried again.
Upstream: client-go tools/cache/reflector.go (the LIST+WATCH form, SRC-051).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from refkubelet.api.client import ApiError, ObjectList, ObjectLister, WatchEvent
from refkubelet.api.kinds import Kind
from refkubelet.failures import Complaints
from simclock import Clock, Rng

log = logging.getLogger(__name__)

T = TypeVar("T")

LOST: Final = "following the API server"
TOO_MANY: Final = 429
BACKOFF_S: Final = 0.8
BACKOFF_MAX_S: Final = 30.0
SHORT_WATCH_S: Final = 1.0  # a watch that ends sooner without an event counts as a failure


class Follower(Generic[T]):
    """Follows those objects of a kind: `on_list` gets all of them when they were listed, `on_event`
    what a watch tells after that; bookmarks are left out."""

    def __init__(
        self,
        api: ObjectLister,
        kind: Kind[T],
        on_list: Callable[[ObjectList[T]], Awaitable[None]],
        on_event: Callable[[WatchEvent[T]], Awaitable[None]],
        *,
        clock: Clock,
        rng: Rng,
        namespace: str = "",
        fields: str = "",
    ) -> None:
        self._list = partial(api.list, kind, namespace, fields=fields)
        self._watch = partial(api.watch, kind, namespace=namespace, fields=fields)
        self._on_list, self._on_event = on_list, on_event
        self._clock = clock
        self._random = rng.stream("reflector")
        self._version = ""
        self._failures = 0
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        listed = False
        while True:
            try:
                if not listed:
                    await self._list_once()
                    listed = True
                if await self._watch_once():
                    self._failures = 0
                    continue
            except Exception as e:  # of the server or of who is told
                too_many = isinstance(e, ApiError) and e.status == TOO_MANY
                listed = listed and too_many  # after any other error changes may be missing
                self._complaints.failed(LOST, e, ApiError)
            await self._clock.sleep(self._backoff_s())

    async def _list_once(self) -> None:
        objects = await self._list()
        self._version = objects.resource_version
        self._failures = 0
        self._complaints.over(LOST)
        await self._on_list(objects)

    async def _watch_once(self) -> bool:
        """Follow one watch to its end; False when it ended at once without an event."""
        started_s = self._clock.monotonic_s()
        has_event = False
        async for event in self._watch(self._version):
            has_event = True
            self._complaints.over(LOST)
            self._version = version_of(event.object) or self._version
            if event.type != "BOOKMARK":
                await self._on_event(event)
        return has_event or self._clock.monotonic_s() - started_s >= SHORT_WATCH_S

    def _backoff_s(self) -> float:
        delay_s = min(BACKOFF_S * 2.0 ** min(self._failures, 10), BACKOFF_MAX_S)
        self._failures += 1
        return delay_s * (1.0 + self._random.random())


class Reflector(Generic[T]):
    """Follows those objects of a kind; `on_change` gets all of them at each change."""

    def __init__(
        self,
        api: ObjectLister,
        kind: Kind[T],
        on_change: Callable[[tuple[T, ...]], Awaitable[None]],
        clock: Clock,
        rng: Rng,
        *,
        namespace: str = "",
        fields: str = "",
    ) -> None:
        self._on_change = on_change
        self._objects: dict[str, T] = {}
        self._follower = Follower(
            api,
            kind,
            self._take_all,
            self._take,
            clock=clock,
            rng=rng,
            namespace=namespace,
            fields=fields,
        )

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await self._follower.run()

    async def _take_all(self, objects: ObjectList[T]) -> None:
        self._objects = {uid_of(item): item for item in objects.items}
        await self._on_change(tuple(self._objects.values()))

    async def _take(self, event: WatchEvent[T]) -> None:
        if event.type == "DELETED":
            self._objects.pop(uid_of(event.object), None)
        else:
            self._objects[uid_of(event.object)] = event.object
        await self._on_change(tuple(self._objects.values()))


def uid_of(item: Any) -> str:
    """The UID of an object of any kind."""
    return str(item.metadata.uid)


def version_of(item: Any) -> str:
    """Its resource version; "": it has none."""
    return str(item.metadata.resourceVersion or "")
