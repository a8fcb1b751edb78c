"""Images by id, found by one of their names without looking at all of them.

What must never happen here: the names and the table disagree. So images never change; a changed one
takes the place of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Protocol, TypeVar

from fakecri.core.lookups.prefix_table import PrefixTable


class Named(Protocol):
    """Something with names."""

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def digests(self) -> tuple[str, ...]: ...


V = TypeVar("V", bound=Named)


class NamedTable(PrefixTable[V]):
    """A `PrefixTable` that also answers by tag and digest."""

    def __init__(self, items: Iterable[tuple[str, V]] = ()) -> None:
        super().__init__()
        self._by_name: dict[str, set[str]] = {}
        self._places: dict[str, int] = {}  # id -> its place in the order of insertion
        self._last = 0
        for key, value in items:
            self[key] = value

    def __setitem__(self, key: str, value: V) -> None:
        if key in self:
            self._forget_names(key)
        else:
            self._last += 1
            self._places[key] = self._last
        super().__setitem__(key, value)
        for name in chain(value.tags, value.digests):
            self._by_name.setdefault(name, set()).add(key)

    def __delitem__(self, key: str) -> None:
        self._forget_names(key)
        super().__delitem__(key)
        del self._places[key]

    def clear(self) -> None:
        super().clear()
        self._by_name.clear()
        self._places.clear()

    def _forget_names(self, key: str) -> None:
        old = self[key]
        for name in {*old.tags, *old.digests}:
            self._by_name[name].discard(key)
            if not self._by_name[name]:
                del self._by_name[name]

    def named(self, name: str) -> list[V]:
        """Those with that tag or digest, in order of insertion."""
        keys = sorted(self._by_name.get(name, ()), key=self._places.__getitem__)
        return [self[key] for key in keys]
