"""Which calls a test asks for, and how their times should lie. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fakecri.behaviors.matching import Match
from fakecri.cri.services import require_method
from fakecri.recording.call import Call

Slack: TypeAlias = float | Callable[[float], tuple[float, float]]
"""How much later than expected is allowed: seconds, or a function from the expected gap to the
smallest and largest allowed one."""
ANYTHING: Final = Match()


class Query(Struct, frozen=True):
    """Which calls are meant. The defaults fit every call."""

    method: str | None = None
    match: Match = ANYTHING
    since_s: float = float("-inf")
    where: Callable[[Call], bool] | None = None
    until_s: float = float("inf")

    @property
    def of_any(self) -> bool:
        """Whether all calls of the method fit."""
        of_all_times = self.since_s == float("-inf") and self.until_s == float("inf")
        return of_all_times and self.where is None and self.match == ANYTHING

    def differences(self, call: Call) -> list[str]:
        """What keeps `call` from fitting, as texts; an empty list: it fits."""
        differences = self.match.differences(call.subject)
        if self.method is not None and call.method != self.method:
            differences.insert(0, f"method: wanted {self.method}, got {call.method}")
        if not self.since_s <= call.started_s <= self.until_s:
            differences.append(self._other_time(call))
        if not differences and self.where is not None and not self.where(call):
            differences.append("the predicate `where` said no")
        return differences

    def _other_time(self, call: Call) -> str:
        """All in seconds as texts have them."""
        early = call.started_s < self.since_s
        bound_s = (self.since_s if early else self.until_s) - call.started_s + call.shown_s
        side = "later" if early else "before"
        return f"time: wanted {bound_s:.3f} s or {side}, got {call.shown_s:.3f} s"

    def __str__(self) -> str:
        return f"{self.method or 'any call'} ({self.match})"


def query(
    method: str | None = None,
    *,
    pod: str | None = None,
    container: str | None = None,
    image: str | None = None,
    attempt: int | None = None,
    since_s: float = float("-inf"),
    until_s: float = float("inf"),
    where: Callable[[Call], bool] | None = None,
) -> Query:
    """A `Query` from the arguments that all questions take.

    Raises ValueError for a method that CRI does not have: that there is no such call would say
    nothing.
    """
    if method is not None:
        require_method(method)
    return Query(
        method=method,
        match=Match(pod, container, image, attempt),
        since_s=since_s,
        where=where,
        until_s=until_s,
    )


ASKED: Final = tuple(query.__kwdefaults__ or ())
"""The names of those arguments."""


def check_series(times_s: Sequence[float], expected_s: Sequence[float], slack: Slack) -> None:
    """The times have the spacing of `expected_s` (both count from their first entry).

    Each gap must lie in [expected, expected + slack], or in what `slack(expected gap)` gives.
    Raises AssertionError with all gaps.

    >>> check_series([5.0, 5.2, 16.0], [0, 0, 10], slack=1.0)
    """
    __tracebackhide__ = True
    gaps = [b - a for a, b in pairwise(times_s)]
    expected_gaps = [b - a for a, b in pairwise(expected_s)]
    lines, wrong = [], len(times_s) != len(expected_s)
    for number, (gap, expected) in enumerate(zip(gaps, expected_gaps, strict=False), start=1):
        low, high = slack(expected) if callable(slack) else (expected, expected + slack)
        fits = low - 1e-6 <= gap <= high + 1e-6
        wrong = wrong or not fits
        mark = " " if fits else "X"
        lines.append(f"{mark} gap {number}: {gap:.3f} s, wanted {low:.3f} to {high:.3f} s")
    if wrong:
        numbers = f"expected {len(expected_s)} times, got {len(times_s)}"
        raise AssertionError("\n".join([numbers, *lines]))


def query_of_step(step: str | Sequence[str] | Mapping[str, Any]) -> Query:
    """The query of a step of `assert_order`: a method, `(method, container)`, or a mapping with the
    arguments of `query`."""
    if isinstance(step, str):
        return query(step)
    if isinstance(step, Mapping):
        return query(**step)
    if len(step) != 2:
        raise ValueError(f"a step is a method or (method, container), got {step!r}")
    method, container = step
    return query(method, container=container)


def distance(wanted: Query, call: Call, differences: list[str]) -> int:
    """How far a call is from the wanted one; another method counts more than all other
    differences."""
    other_method = wanted.method is not None and call.method != wanted.method
    return len(differences) + (len(Match.__struct_fields__) if other_method else 0)
