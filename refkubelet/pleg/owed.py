"""Pods that must be read from the runtime, and by when.

What must never happen: one of them is forgotten. It stays until it was read, however often that
fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class _Due:
    first_s: float
    last_s: float


class Owed:
    """Times are monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[str, _Due] = {}

    def add(self, uid: str, due_s: float) -> None:
        """Read it then, beside what is owed already."""
        due = self._due.setdefault(uid, _Due(due_s, due_s))
        due.first_s, due.last_s = min(due.first_s, due_s), max(due.last_s, due_s)

    def next_s(self) -> float:
        """When the next one is due; infinity when none is."""
        return min((due.first_s for due in self._due.values()), default=math.inf)

    def take(self, now_s: float) -> str | None:
        """One that is due, or None. What is due later remains."""
        for uid, due in self._due.items():
            if due.first_s <= now_s:
                if due.last_s > now_s:
                    due.first_s = due.last_s
                else:
                    del self._due[uid]
                return uid
        return None

    def settled(self, now_s: float) -> None:
        """All pods were read, beginning then: nothing that was due before is owed any more."""
        for uid in [uid for uid, due in self._due.items() if due.last_s < now_s]:
            del self._due[uid]
