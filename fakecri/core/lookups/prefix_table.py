"""Objects by id, found by a prefix of it without looking at all of them.

What must never happen here: the sorted ids and the table disagree.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TypeVar

V = TypeVar("V")


class PrefixTable(dict[str, V]):
    """A dict in order of insertion that also answers by prefix. Items come and go one by one or
    all at once; the other ways to change a dict are not for it."""

    def __init__(self, items: Iterable[tuple[str, V]] = ()) -> None:
        super().__init__(items)
        self._sorted = sorted(self)

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self:
            insort(self._sorted, key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        dict.__delitem__(self, key)
        del self._sorted[bisect_left(self._sorted, key)]

    def clear(self) -> None:
        super().clear()
        self._sorted.clear()

    def at_most_two(self, prefix: str) -> list[str]:
        """The first two keys that begin with `prefix`: none, the one that is meant, or too many.

        >>> PrefixTable([("aa1", 1), ("ab2", 2), ("ab3", 3)]).at_most_two("ab")
        ['ab2', 'ab3']
        """
        start = bisect_left(self._sorted, prefix)
        return [key for key in self._sorted[start : start + 2] if key.startswith(prefix)]
