"""Amounts over time, as steps. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Curve: TypeAlias = tuple[tuple[float, int], ...]
"""A step function: (seconds after start, value), in rising order of time."""


def curve(value: int | Sequence[tuple[float, int]]) -> Curve:
    """A constant, or points in any order, as a curve. Raises: ValueError."""
    if isinstance(value, int):
        return ((0.0, value),)
    try:
        return tuple(sorted((float(at_s), int(amount)) for at_s, amount in value))
    except (TypeError, ValueError):
        wanted = "a whole number or a list of [seconds, number]"
        raise ValueError(f"uses: wanted {wanted}, got {value!r}") from None


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
