"""Keys of stored objects, found by place without a look at the objects of others. No I/O.

The keys of a kind are sorted, so those of a namespace are a part of them. For each field by which
somebody has asked there are lists by value, made at the first question and kept from then on. What
must never happen here: a key that is not found where its object is, or is found where it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping

from fakekubeapi.storage.changes import Key, Object
from fakekubeapi.storage.places import Place
from fakekubeapi.storage.selectors import field_value

_ByValue = dict[str, list[Key]]


class KeyIndex:
    """The keys of `objects`, which may grow and shrink if each change is told with `note`."""

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
        found = keys[end - 1] if end else None
        return found if found and namespace in (None, found.namespace) else None

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


def _take_out(keys: list[Key], key: Key) -> None:
    del keys[bisect_left(keys, key)]
