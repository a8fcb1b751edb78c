"""Remembers answers of the API server for a while. Pure: the time is an argument."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

V = TypeVar("V")
MOST: Final = 8192
"""So many answers are kept; the oldest goes first."""


class ReviewCache(Generic[V]):
    """Answers by key, each with its own time to live in seconds; 0: it is not kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def get(self, key: str, now_s: float) -> V | None:
        """The answer; None: there is none, or it is too old."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        until_s, value = entry
        if now_s < until_s:
            return value
        del self._kept[key]
        return None

    def put(self, key: str, value: V, *, now_s: float, ttl_s: float) -> None:
        """Keep an answer for `ttl_s` seconds."""
        self._kept.pop(key, None)
        if ttl_s <= 0:
            return
        while len(self._kept) >= self._most:
            self._kept.popitem(last=False)
        self._kept[key] = (now_s + ttl_s, value)
