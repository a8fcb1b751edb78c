"""The last changes, found by place without a look at the changes of others. No I/O.

A watch that goes on where another has ended asks for what has happened at its place since. For each
kind there is a row of its changes, for each field by which somebody has asked one for each value,
made at the first question and kept from then on; what the history forgets leaves all of them. What
must never happen here: a change that is missing in a row where it belongs, or the order of two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from fakekubeapi.errors import expired
from fakekubeapi.storage.changes import Change
from fakekubeapi.storage.places import EVERYTHING, Place, values_of

_Row = deque[Change]


class History:
    """The last `limit` changes; of older ones it knows only up to which revision, `compacted`, they
    are forgotten."""

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
