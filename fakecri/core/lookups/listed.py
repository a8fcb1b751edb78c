"""Objects of which lists are asked for all the time, with the answers that were given.

A kubelet lists everything every second, and nearly every time nothing has changed. What must never
happen here: an answer outlives a change of what it tells. So every way to change the table forgets
the answers, and code that changes an object in a way that lists show calls `changed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from fakecri.core.lookups.prefix_table import PrefixTable

V = TypeVar("V")
_MOST_ANSWERS: Final = 8


class ListedTable(PrefixTable[V]):
    """A `PrefixTable` with whole lists as bytes, by the bytes of their requests."""

    def __init__(self, items: Iterable[tuple[str, V]] = ()) -> None:
        super().__init__(items)
        self._answers: dict[bytes, bytes] = {}

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.changed()

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.changed()

    def clear(self) -> None:
        super().clear()
        self.changed()

    def changed(self) -> None:
        """What lists tell of an object is not what it was."""
        self._answers.clear()

    def answer(self, request: bytes) -> bytes | None:
        """The answer of last time, if nothing has changed since."""
        return self._answers.get(request)

    def keep(self, request: bytes, answer: bytes) -> bytes:
        """Remember the answer, one of a few, and return it."""
        if len(self._answers) < _MOST_ANSWERS:
            self._answers[request] = answer
        return answer
