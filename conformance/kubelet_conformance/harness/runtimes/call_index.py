"""The recorded calls, sorted by method as they arrive.

Conditions look at them every tick, and a long run has thousands.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any


class CallIndex:
    """Follows a recorder (`fakecri.recording.recorder`) and keeps every call, even when the
    recorder drops it. Names match exactly; patterns are for fault rules."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._all: list[Any] = []
        self._by_method: dict[str, list[Any]] = {}
        self._last_seq = 0
        self._open: list[Any] = []
        self._counted = self._begun = 0

    def select(self, method: str | None, pod: str | None, container: str | None) -> Sequence[Any]:
        """The calls of that method, pod and container in order of arrival; None selects all."""
        self._follow()
        candidates = self._all if method is None else self._by_method.get(method, [])
        return [
            call
            for call in candidates
            if (pod is None or call.pod == pod)
            and (container is None or call.container == container)
        ]

    def beginnings_and_ends(self, but: Set[str]) -> int:
        """How many calls have begun and ended, added up, without those of the methods `but`, which
        are the same each time."""
        self._follow()
        new = [call for call in self._all[self._counted :] if call.method not in but]
        self._counted = len(self._all)
        self._begun += len(new)
        self._open = [call for call in (*self._open, *new) if call.ended_s is None]
        return 2 * self._begun - len(self._open)

    def _follow(self) -> None:
        """Take in the calls that were recorded since the last time."""
        count = 8
        recent = self._recorder.last(count)
        while recent and recent[0].seq > self._last_seq + 1 and len(recent) == count:
            count *= 4
            recent = self._recorder.last(count)
        for call in recent:
            if call.seq > self._last_seq:
                self._all.append(call)
                self._by_method.setdefault(call.method, []).append(call)
                self._last_seq = call.seq
