"""Amounts over time, as steps. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

from fakecri.words.kinds import WordError
from kubeobjects.arguments import tells_arguments

Curve: TypeAlias = tuple[tuple[float, int], ...]
"""A step function: (seconds after start, value), in rising order of time."""


MOST_STEPS: Final = 100_000


def curve(value: int | Sequence[tuple[float, int]]) -> Curve:
    """A constant, or points in any order, as a curve. Raises WordError."""
    try:
        points_given = [(0.0, value)] if isinstance(value, int) else value
        points = [(float(at_s), int(amount)) for at_s, amount in points_given]
    except (TypeError, ValueError):
        expected_form = "a whole number or a list of [seconds, number]"
        raise WordError(f"uses: wanted {expected_form}, got {value!r}") from None
    if any(not 0 <= at_s < math.inf or amount < 0 for at_s, amount in points):
        raise WordError(f"uses: wanted seconds and numbers from 0, got {value!r}")
    return tuple(sorted((whole_ns(at_s), amount) for at_s, amount in points))


def whole_ns(at_s: float) -> float:
    """The moment as clocks tell it, in whole nanoseconds: what is woken then finds it reached."""
    return round(at_s * 1e9) / 1e9 if math.isfinite(at_s) else at_s


@tells_arguments()
def ramp(start: int, end: int, over_s: float, *, from_s: float = 0.0, steps: int = 20) -> Curve:
    """From `start` to `end` in equal steps, during `over_s` seconds from `from_s` on.

    >>> ramp(0, 100, 60, steps=2)
    ((0.0, 0), (30.0, 50), (60.0, 100))
    """
    if not 1 <= steps <= MOST_STEPS or over_s < 0 or from_s < 0:
        raise ValueError(
            f"ramp: wanted times from 0 and steps from 1 to {MOST_STEPS}, got {over_s!r}, "
            f"{from_s!r} and {steps!r}"
        )
    points = (
        (from_s + over_s * n / steps, start + (end - start) * n // steps) for n in range(steps + 1)
    )
    return tuple((float(at_s), amount) for at_s, amount in points)


def area(curve: Curve, until_s: float) -> int:
    """What thousandths of a CPU make, in nanoseconds, from the start to then.

    >>> area(((0.0, 1000), (2.0, 500)), 4.0)
    3000000000
    """
    ends = [*(point[0] for point in curve[1:]), until_s]
    total = (
        sum(
            max(0.0, min(end_s, until_s) - start_s) * amount
            for (start_s, amount), end_s in zip(curve, ends, strict=True)
        )
        if curve
        else 0.0
    )
    return round(total * 1_000_000)


def at(curve: Curve, age_s: float) -> int:
    """The value of a curve `age_s` seconds after the start.

    >>> at(((0.0, 1), (5.0, 7)), 4.9), at(((0.0, 1), (5.0, 7)), 5.0)
    (1, 7)
    """
    value = 0
    for at_s, amount in curve:
        if at_s > age_s:
            break
        value = amount
    return value
