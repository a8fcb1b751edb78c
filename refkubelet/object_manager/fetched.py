"""Objects that are fetched when they are read and the last answer is too old (NODE-207, strategies
Cache and Get).

Upstream: pkg/kubelet/util/manager/cache_based_manager.go: objectStore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import Kind
from refkubelet.model.objects import Node
from refkubelet.object_manager.manager import Key, not_registered
from simclock import Clock

T = TypeVar("T")

DEFAULT_TTL_S: Final = 60.0
TTL_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


def ttl_of(node: Node | None) -> float:
    """How long an object counts as fresh: what the node's annotation says in seconds, else a
    minute.

    >>> ttl_of(None)
    60.0
    """
    annotations = (node.metadata.annotations if node and node.metadata else None) or {}
    text = annotations.get(TTL_ANNOTATION, "")
    digits = text[1:] if text[:1] in ("-", "+") else text
    return float(text) if digits.isascii() and digits.isdigit() else DEFAULT_TTL_S


@dataclass(slots=True, eq=False)
class _Fetched(Generic[T]):
    """The last answer: an object, or that there is none."""

    found: T | None = None
    missing: ApiError | None = None
    fetched_s: float | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one request at a time


class FetchedObjects(Generic[T]):
    """Implements `manager.ObjectStore`. `ttl_s`: asked at each read; 0 or less: always fetch."""

    def __init__(
        self, api: ObjectReader, kind: Kind[T], clock: Clock, ttl_s: Callable[[], float]
    ) -> None:
        self._api = api
        self._kind = kind
        self._clock = clock
        self._ttl_s = ttl_s
        self._known: dict[Key, _Fetched[T]] = {}

    def add(self, key: Key) -> None:
        """Know the object; one that is known already is fetched anew."""
        self._known[key] = _Fetched[T]()  # also for a known one: a new pod sees the newest

    def remove(self, key: Key) -> None:
        del self._known[key]

    async def get(self, key: Key) -> T:
        """The object. While the server does not answer, the last one that it had. Raises
        `ApiError`."""
        item = self._known.get(key)
        if item is None:
            raise not_registered(key)
        async with item.lock:
            if item.missing is not None or not self._is_fresh(item):
                await self._refresh(key, item)
        if item.found is None:
            raise item.missing or not_registered(key)
        return item.found

    def _is_fresh(self, item: _Fetched[T]) -> bool:
        if item.fetched_s is None:
            return False
        return self._clock.monotonic_s() < item.fetched_s + self._ttl_s()

    async def _refresh(self, key: Key, item: _Fetched[T]) -> None:
        try:
            namespace, name = key
            fetched = await self._api.get(self._kind, name, namespace)
        except ApiError as error:
            if error.not_found:
                item.found, item.missing = None, error
                item.fetched_s = self._clock.monotonic_s()
            elif item.found is None and item.missing is None:
                raise
            return
        if item.found is None or _version(fetched) >= _version(item.found):
            item.found, item.missing = fetched, None
            item.fetched_s = self._clock.monotonic_s()


def _version(value: Any) -> int:
    text = (value.metadata.resourceVersion if value.metadata else None) or ""
    return int(text) if text.isdecimal() else 0
