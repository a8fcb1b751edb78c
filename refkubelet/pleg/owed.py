"""Pods that the PLEG must read from the runtime, and when.

What must never happen: a pod is dropped before it was read, however often that fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class _Due:
    first_s: float
    last_s: float


class Owed:
    """The UIDs of these pods; times are monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[str, _Due] = {}

    def add(self, uid: str, due_s: float) -> None:
        """Ask for a reading of the pod at `due_s`, in addition to those asked for already."""
        due = self._due.setdefault(uid, _Due(due_s, due_s))
        due.first_s, due.last_s = min(due.first_s, due_s), max(due.last_s, due_s)

    def next_s(self) -> float:
        """The earliest time at which a pod is due; infinity: none is."""
        if not self._due:
            return math.inf
        return min(due.first_s for due in self._due.values())

    def take(self, now_s: float) -> str | None:
        """Remove and return a pod that is due, or None. Its later due time, if any, remains."""
        for uid, due in self._due.items():
            if due.first_s <= now_s:
                if due.last_s > now_s:
                    due.first_s = due.last_s
                else:
                    del self._due[uid]
                return uid
        return None

    def settled(self, now_s: float) -> list[str]:
        """All pods were read by a relist that began at `now_s`: drop all earlier due times. Returns
        the UIDs of pods that are due no more."""
        if not self._due:
            return []
        settled = [uid for uid, due in self._due.items() if due.last_s < now_s]
        for uid in settled:
            del self._due[uid]
        return settled
