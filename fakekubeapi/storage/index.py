"""Keys and changes, found by place without a look at those of others. No I/O.

For each field by which somebody has asked there are rows by value, made at the first question and
kept from then on. What must never happen here: a key or a change that is missing where it belongs,
a key that is found where its object was, two changes in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator, Mapping

from fakekubeapi.errors import expired
from fakekubeapi.storage.changes import EVERYTHING, Change, Key, Object, Place, values_of
from fakekubeapi.storage.selectors import field_value

_ByValue = dict[str, list[Key]]
_Row = deque[Change]


class KeyIndex:
    """The keys of `objects`, which may grow and shrink if each change is told with `note`. Those of
    a kind are sorted, so those of a namespace are a part of them."""

    def __init__(self, objects: Mapping[Key, Object]) -> None:
        self._objects = objects
        self._all: dict[str, list[Key]] = {}  # by resource; sorted, as all lists here
        self._by_field: dict[str, dict[str, _ByValue]] = {}  # by resource and path

    def resources(self) -> list[str]:
        """The kinds of which there are or were objects, sorted."""
        return sorted(self._all)

    def find(self, place: Place, after: tuple[str, str] | None = None) -> list[Key]:
        """The keys at a place by namespace and name; `after`: only those behind this namespace and
        name."""
        resource, namespace = place.resource, place.namespace
        keys = self._at_value(place) if place.path else self._all.get(resource, [])
        start, end = 0, len(keys)
        if namespace is not None:
            start = bisect_left(keys, Key(resource, namespace, ""))
            end = bisect_left(keys, Key(resource, f"{namespace}\0", ""))
        if after is not None:
            start = max(start, bisect_right(keys, Key(resource, *after)))
        return keys[start:end]

    def last(self, resource: str, namespace: str | None) -> Key | None:
        """The last of the keys that a list of them all would have; None: there is none."""
        keys = self._all.get(resource, [])
        end = len(keys)
        if namespace is not None:
            end = bisect_left(keys, Key(resource, f"{namespace}\0", ""))
        candidate = keys[end - 1] if end else None
        return candidate if candidate and namespace in (None, candidate.namespace) else None

    def note(self, key: Key, before: Object | None, after: Object | None) -> None:
        """An object has changed. `before` None: it is new; `after` None: it is gone."""
        if before is None:
            insort(self._all.setdefault(key.resource, []), key)
        if after is None:
            _take_out(self._all[key.resource], key)
        for path, by_value in self._by_field.get(key.resource, {}).items():
            was = None if before is None else field_value(before, path)
            now = None if after is None else field_value(after, path)
            if was == now:
                continue
            if was is not None:
                _take_out(by_value[was], key)
                if not by_value[was]:
                    del by_value[was]
            if now is not None:
                insort(by_value.setdefault(now, []), key)

    def _at_value(self, place: Place) -> list[Key]:
        """The keys of all namespaces whose objects have the place's value in its field."""
        by_field = self._by_field.setdefault(place.resource, {})
        by_value = by_field.get(place.path)
        if by_value is None:
            by_value = by_field[place.path] = {}
            for key in self._all.get(place.resource, []):
                by_value.setdefault(field_value(self._objects[key], place.path), []).append(key)
        return by_value.get(place.value, [])


class History:
    """The last `limit` changes; of older ones it knows only up to which revision, `compacted`, they
    are forgotten. There is a row for each kind, too; what is forgotten leaves all of its rows."""

    def __init__(self, limit: int) -> None:
        self.compacted = 0
        self._limit = limit
        self._all: _Row = deque()
        self._by_resource: dict[str, _Row] = {}
        self._by_field: dict[str, dict[str, dict[str, _Row]]] = {}  # resource, path, value

    def add(self, change: Change) -> None:
        """The newest change."""
        self._all.append(change)
        self._by_resource.setdefault(change.key.resource, deque()).append(change)
        for rows, value in self._fields_of(change):
            rows.setdefault(value, deque()).append(change)
        while len(self._all) > self._limit:
            self._forget_oldest()

    def since(self, revision: int, place: Place = EVERYTHING) -> list[Change]:
        """All changes at the place after `revision`, the oldest first. Raises: StatusError 410
        (Expired) when changes after it, of whatever place, are forgotten."""
        if revision < self.compacted:
            raise expired(revision, self.compacted)
        newer: list[Change] = []
        for change in reversed(self._row(place)):
            if change.revision <= revision:
                break
            if place.namespace in (None, change.key.namespace):
                newer.append(change)
        newer.reverse()
        return newer

    def forget(self, revision: int) -> None:
        """Forget all of it: the changes up to that revision, the newest there is."""
        self._all.clear()
        self._by_resource.clear()
        self._by_field.clear()
        self.compacted = max(self.compacted, revision)

    def _forget_oldest(self) -> None:
        """The first in each of its rows is the first of all."""
        oldest = self._all.popleft()
        self.compacted = oldest.revision
        self._by_resource[oldest.key.resource].popleft()
        for rows, value in self._fields_of(oldest):
            rows[value].popleft()
            if not rows[value]:
                del rows[value]

    def _fields_of(self, change: Change) -> Iterator[tuple[dict[str, _Row], str]]:
        """The rows by value of each field, with the values whose rows have the change."""
        for path, rows in self._by_field.get(change.key.resource, {}).items():
            for value in values_of(change, path):
                yield rows, value

    def _row(self, place: Place) -> _Row:
        """The changes at a place, and of all namespaces."""
        if place == EVERYTHING:
            return self._all
        of_kind = self._by_resource.get(place.resource, deque())
        if not place.path:
            return of_kind
        by_field = self._by_field.setdefault(place.resource, {})
        rows = by_field.get(place.path)
        if rows is None:
            rows = by_field[place.path] = {}
            for change in of_kind:
                for value in values_of(change, place.path):
                    rows.setdefault(value, deque()).append(change)
        return rows.get(place.value, deque())


def _take_out(keys: list[Key], key: Key) -> None:
    del keys[bisect_left(keys, key)]
