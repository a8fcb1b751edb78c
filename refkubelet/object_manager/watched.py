"""Objects that are followed by a watch each, while a pod refers to them (NODE-207, strategy Watch).

A watch begins with the first reference and ends with the last one, when nobody has read the object
for five times the sync frequency, or when it was read and is immutable. A later read begins a new
watch. What must never happen here: a reader waits longer than a second.
Upstream: pkg/kubelet/util/manager/watch_based_manager.go.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from refkubelet.api.client import ApiError, ObjectLister
from refkubelet.api.kinds import Kind
from refkubelet.api.paths import named
from refkubelet.api.reflector import Reflector
from refkubelet.object_manager.manager import Key, not_registered
from simclock import Clock, Rng

SYNC_TIMEOUT_S: Final = 1.0
RECYCLE_PERIOD_S: Final = 60.0
MIN_IDLE_S: Final = 60.0
IDLE_SYNCS: Final = 5  # that many sync frequencies


class _Object(Protocol):
    @property
    def immutable(self) -> bool | None: ...


T = TypeVar("T", bound=_Object)


@dataclass(slots=True, eq=False)
class _Followed(Generic[T]):
    """One object. `synced` is set while `found` is what the server has, as far as is known."""

    read_s: float
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    found: T | None = None
    immutable: bool = False
    task: asyncio.Task[None] | None = None


class WatchedObjects(Generic[T]):
    """Implements `manager.ObjectStore` for one kind of object. `name`: the kind's, in the
    singular."""

    def __init__(
        self,
        api: ObjectLister,
        kind: Kind[T],
        name: str,
        *,
        clock: Clock,
        rng: Rng,
        sync_frequency_s: float,
    ) -> None:
        self._api = api
        self._kind = kind
        self._name = name
        self._clock = clock
        self._rng = rng
        self._idle_s = max(IDLE_SYNCS * sync_frequency_s, MIN_IDLE_S)
        self._followed: dict[Key, _Followed[T]] = {}

    async def run(self) -> None:
        """End watches that nobody needs, until cancelled; then end all."""
        try:
            while True:
                await self._clock.sleep(RECYCLE_PERIOD_S)
                self._stop_idle()
        finally:
            for item in self._followed.values():
                _stop(item)

    def add(self, key: Key) -> None:
        """Follow the object from now on; one that is followed already goes on."""
        if key not in self._followed:
            item = self._followed[key] = _Followed[T](self._clock.monotonic_s())
            self._start(key, item)

    def remove(self, key: Key) -> None:
        _stop(self._followed.pop(key))

    async def get(self, key: Key) -> T:
        """The object; waits for it for up to a second. Raises `ApiError`."""
        item = self._followed.get(key)
        if item is None:
            raise not_registered(key)
        item.read_s = self._clock.monotonic_s()
        if item.task is None and not item.immutable:
            self._start(key, item)
        try:
            async with asyncio.timeout(SYNC_TIMEOUT_S):
                await item.synced.wait()
        except TimeoutError:
            text = f"failed to sync {self._name} cache: timed out waiting for the condition"
            raise ApiError(0, "Timeout", text) from None
        if item.found is None:
            raise ApiError(404, "NotFound", f'{self._name} "{key[1]}" not found')
        if item.found.immutable:
            item.immutable = True
            _stop(item)
        return item.found

    def _start(self, key: Key, item: _Followed[T]) -> None:
        namespace, name = key

        async def take(objects: tuple[T, ...]) -> None:
            item.found = next(iter(objects), None)
            item.synced.set()

        reflector = Reflector(
            self._api,
            self._kind,
            take,
            clock=self._clock,
            rng=self._rng,
            namespace=namespace,
            fields=named(name),
        )
        task_name = f"{self._name} {namespace}/{name}"
        item.task = asyncio.create_task(reflector.run(), name=task_name)

    def _stop_idle(self) -> None:
        idle_since_s = self._clock.monotonic_s() - self._idle_s
        for item in self._followed.values():
            if item.synced.is_set() and item.read_s < idle_since_s:
                _stop(item)


def _stop(item: _Followed[Any]) -> None:
    """End the watch. What may change from now on is no longer known."""
    if item.task is None:
        return
    item.task.cancel()
    item.task = None
    if not item.immutable:
        item.synced.clear()
