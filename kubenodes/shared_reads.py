"""What all nodes of a pool read of the API server, read once for all of them.

A kubelet lists and watches the pods bound to its node, its Node, all Services and all CSIDrivers,
and each ConfigMap and Secret of its pods. For a thousand nodes that would be thousands of
connections that mostly tell the same. `SharedReads` follows each of these once, and hands every
node what concerns it: of pods and Nodes those of its name, of all else everything. What must never
happen: a node misses a change, or sees an old state after a newer one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from kubenodes.wire import NodeWire
from refkubelet.api.client import ApiError, ObjectList, ObjectLister, WatchEvent
from refkubelet.api.kinds import CONFIG_MAPS, CSI_DRIVERS, NODES, PODS, SECRETS, SERVICES, Kind
from refkubelet.api.lightkube_client import REQUEST_TIMEOUT_S, LightkubeApiClient, no_answer
from refkubelet.api.reflector import Follower, uid_of, version_of
from simclock import Clock, Rng

T = TypeVar("T")

ALL: Final = ""
"""Whom everything concerns."""
REMEMBERED: Final = 10_000
"""So many events of each are kept for nodes that have listed and not watched yet."""
EXPIRED: Final = 410


def _node_of(pod: Any) -> str:
    return str(pod.spec.nodeName or "")


def _name_of(item: Any) -> str:
    return str(item.metadata.name or "")


def _everything(item: Any) -> str:
    return ALL


class _Shared(Struct, frozen=True):
    """How a kind is followed for all nodes: `fields` is the selector of what is followed at all,
    `chosen` the beginning of the selector of one node, `key_of` whom an object concerns."""

    fields: str
    chosen: str
    key_of: Callable[[Any], str]


_BY_KIND: Final[Mapping[str, _Shared]] = {
    PODS.plural: _Shared("spec.nodeName!=", "spec.nodeName=", _node_of),
    NODES.plural: _Shared("", "metadata.name=", _name_of),
    SERVICES.plural: _Shared("", "", _everything),
    CSI_DRIVERS.plural: _Shared("", "", _everything),
}
_ONE_EACH: Final = frozenset((CONFIG_MAPS.plural, SECRETS.plural))
"""Kinds of which each object that somebody asks for is followed, as long as somebody does."""


class _Told(Struct, Generic[T], frozen=True):
    """An event, and whom it concerns."""

    version: int
    key: str
    event: WatchEvent[T]


class Followed(Generic[T]):
    """Objects of one kind as the API server last showed them, and the events since then. `left` is
    called whenever nobody watches any more."""

    def __init__(self, key_of: Callable[[T], str], left: Callable[[], None]) -> None:
        self._key_of, self._left = key_of, left
        self._by_key: dict[str, dict[str, T]] = {}
        self._version = 0
        self._has_listed = asyncio.Event()
        self._history: deque[_Told[T]] = deque(maxlen=REMEMBERED)
        self._forgotten = 0
        self._watching: dict[str, set[asyncio.Queue[WatchEvent[T]]]] = {}

    async def take_all(self, objects: ObjectList[T]) -> None:
        """Take a list: what differs from what is known is told as events."""
        self._version = max(self._version, _number(objects.resource_version))
        before = {uid: one for some in self._by_key.values() for uid, one in some.items()}
        now = {uid_of(one): one for one in objects.items}
        if self._has_listed.is_set():
            for uid, one in before.items():
                if uid not in now:
                    await self.take(WatchEvent("DELETED", one))
            for uid, one in now.items():
                if uid not in before or version_of(before[uid]) != version_of(one):
                    await self.take(WatchEvent("MODIFIED" if uid in before else "ADDED", one))
        else:
            self._forgotten = self._version
            for uid, one in now.items():
                self._by_key.setdefault(self._key_of(one), {})[uid] = one
        self._has_listed.set()

    async def take(self, event: WatchEvent[T]) -> None:
        """Take an event and tell those whom it concerns."""
        # Higher for each, also where the server counts from a lower number again: who listed before
        # an event has to be told of it.
        self._version = max(self._version + 1, _number(version_of(event.object)))
        key, uid = self._key_of(event.object), uid_of(event.object)
        some = self._by_key.setdefault(key, {})
        if event.type == "DELETED":
            some.pop(uid, None)
            if not some:
                del self._by_key[key]
        else:
            some[uid] = event.object
        if len(self._history) == REMEMBERED:
            self._forgotten = self._history[0].version
        self._history.append(_Told(self._version, key, event))
        for queue in self._watching.get(key, ()):
            queue.put_nowait(event)

    async def listed(self, key: str) -> ObjectList[T]:
        """What concerns `key` now; waits for the first list."""
        await self._has_listed.wait()
        return ObjectList(tuple(self._by_key.get(key, {}).values()), str(self._version))

    async def events(self, key: str, version: str) -> AsyncGenerator[WatchEvent[T], None]:
        """The events that concern `key` after that version, for ever. Raises ApiError 410 when some
        of them are forgotten, or were before this was followed."""
        after = _number(version)
        if after < self._forgotten or not self._has_listed.is_set():
            raise ApiError(EXPIRED, "Expired", f"the events after version {version} are forgotten")
        queue: asyncio.Queue[WatchEvent[T]] = asyncio.Queue()
        missed = [one.event for one in self._history if one.version > after and one.key == key]
        watching = self._watching.setdefault(key, set())
        watching.add(queue)
        try:
            for event in missed:
                yield event
            while True:
                yield await queue.get()
        finally:
            watching.discard(queue)
            if not watching:
                self._watching.pop(key, None)
            if not self._watching:
                self._left()


_Place: TypeAlias = tuple[str, str, str]
"""Path, namespace and field selector of what is followed."""


def _stays() -> None:
    """For what is followed for ever."""


class SharedReads:
    """Follows what nodes ask for, from the first question on until `close`. `api`: the client by
    which it reads."""

    def __init__(self, api: ObjectLister, clock: Clock, rng: Rng) -> None:
        self._api, self._clock, self._rng = api, clock, rng
        self._followed: dict[_Place, Followed[Any]] = {}
        self._tasks: dict[_Place, asyncio.Task[None]] = {}

    def of(self, kind: Kind[T], namespace: str, fields: str) -> tuple[Followed[T], str] | None:
        """What is followed for that question, and the key of who asks; None: each has to ask the
        API server itself."""
        shared = _BY_KIND.get(kind.plural)
        if shared is not None and not namespace and fields.startswith(shared.chosen):
            key = fields.removeprefix(shared.chosen)
            return self._follow(kind, "", shared.fields, shared.key_of), key
        if kind.plural in _ONE_EACH:
            return self._follow(kind, namespace, fields, _everything), ALL
        return None

    def _follow(
        self, kind: Kind[T], namespace: str, fields: str, key_of: Callable[[T], str]
    ) -> Followed[T]:
        place = (kind.path(namespace=namespace), namespace, fields)
        if place not in self._followed:
            left = partial(self._forget, place) if kind.plural in _ONE_EACH else _stays
            followed = self._followed[place] = Followed(key_of, left)
            follower = Follower(
                self._api,
                kind,
                followed.take_all,
                followed.take,
                clock=self._clock,
                rng=self._rng,
                namespace=namespace,
                fields=fields,
            )
            name = f"following {place[0]} for all nodes"
            self._tasks[place] = asyncio.create_task(follower.run(), name=name)
        return self._followed[place]

    def _forget(self, place: _Place) -> None:
        """Follow that no more: nobody does."""
        self._followed.pop(place, None)
        if task := self._tasks.pop(place, None):
            task.cancel()

    async def close(self) -> None:
        """Follow nothing any more."""
        tasks, self._tasks = list(self._tasks.values()), {}
        self._followed = {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class PoolClient(LightkubeApiClient):
    """A node's client of the API server, whose reads go to `reads` where they are shared. All of it
    passes `line`, the node's own way, which may be lost."""

    def __init__(self, line: NodeWire, server: str, reads: SharedReads) -> None:
        super().__init__(line, server)
        self._line, self._reads = line, reads

    async def list(self, kind: Kind[T], namespace: str = "", *, fields: str = "") -> ObjectList[T]:
        shared = self._reads.of(kind, namespace, fields)
        if shared is None:
            return await super().list(kind, namespace, fields=fields)
        followed, key = shared
        what = f"GET of {kind.plural}"
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S), self._line.passing():
                return await followed.listed(key)
        except ConnectionError as error:
            raise no_answer(what, error) from None
        except TimeoutError:
            message = f"{what}: no answer within {REQUEST_TIMEOUT_S:g} s"
            raise ApiError(0, "Timeout", message) from None

    async def watch(
        self, kind: Kind[T], resource_version: str, namespace: str = "", *, fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        shared = self._reads.of(kind, namespace, fields)
        if shared is None:
            async for event in super().watch(kind, resource_version, namespace, fields=fields):
                yield event
            return
        followed, key = shared
        async with aclosing(followed.events(key, resource_version)) as events:
            async with aclosing(self._line.until_lost(events)) as passing:
                try:
                    async for event in passing:
                        yield event
                except ConnectionError as error:
                    raise no_answer(f"watch of {kind.plural}", error) from None


def _number(version: str) -> int:
    """A resource version as a number, which it is at every API server since 1.35; 0: it is
    none."""
    return int(version) if version.isdecimal() else 0
