"""How far a run is, in one line: how many cases are done and failed, how long it still takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubelet_conformance.summary import duration

LEAST_DONE: Final = 5
"""Before so many cases have ended, nothing is said of the time that is left."""


class Progress:
    """The cases that are still to end. `times_s`: case ID -> how long it took in an earlier run;
    where it is not known, cases count as equal."""

    def __init__(self, case_ids: Iterable[str], times_s: Mapping[str, float]) -> None:
        self._waiting = list(case_ids)
        known_s = [times_s[case_id] for case_id in self._waiting if case_id in times_s]
        usual = sum(known_s) / len(known_s) if known_s else 1.0
        self._weights = {case_id: times_s.get(case_id, usual) for case_id in self._waiting}
        self._left = self._whole = sum(self._weights[case_id] for case_id in self._waiting)
        self._count = len(self._waiting)
        self.done = 0
        self.bad = 0

    def ended(self, case_id: str, *, bad: bool) -> None:
        """A case has ended; `bad`: failed, or with an error."""
        self.done += 1
        self.bad += bad
        self._left -= self._weights.get(case_id, 0.0)

    def left_s(self, elapsed_s: float) -> float | None:
        """The seconds that are left, if it goes on as it went so far; None as long as nobody can
        tell."""
        passed_s = self._whole - self._left
        if self.done < min(LEAST_DONE, self._count) or passed_s <= 0:
            return None
        return max(elapsed_s / passed_s * self._left, 0.0)

    def line(self, elapsed_s: float) -> str:
        """The line. `elapsed_s`: since the first case began."""
        bad = f", {self.bad} failed" if self.bad else ""
        left_s = self.left_s(elapsed_s)
        remaining = f", about {_whole(left_s)} left" if left_s is not None else ""
        share = 100 * self.done // self._count if self._count else 100
        return f"{self.done} of {self._count} cases ({share} %){bad}{remaining}"


def _whole(seconds: float) -> str:
    """The duration without parts of a second: nobody can tell them.

    >>> _whole(42.2), _whole(130.0)
    ('42 s', '2 min 10 s')
    """
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)
