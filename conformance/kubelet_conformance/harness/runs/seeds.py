"""The seeds of a run, as `--seeds` has them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import Final

MOST: Final = 10_000
"""A run of more seeds would last for days: more is taken for a mistake."""


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds of that text, each once, in order. Raises ArgumentTypeError for a text without.

    >>> seeds_of("1:5"), seeds_of("3,7"), seeds_of("8,1:2,8")
    ((1, 2, 3, 4, 5), (3, 7), (8, 1, 2))
    """
    seeds: dict[int, None] = {}
    try:
        for part in text.split(","):
            first, colon, last = part.partition(":")
            low = int(first)
            high = int(last) if colon else low
            if not low <= high < low + MOST:
                raise ValueError
            seeds.update(dict.fromkeys(range(low, high + 1)))
    except ValueError:
        raise ArgumentTypeError(
            f"wanted seeds such as 7, 3,7 or 1:20 (from 1 to 20), got {text!r}"
        ) from None
    return tuple(seeds)


def text_of(seeds: Sequence[int]) -> str:
    """The text that `seeds_of` reads as these.

    >>> text_of([1, 2, 3]), text_of([3, 7]), text_of([5])
    ('1:3', '3,7', '5')
    """
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 1 and list(seeds) == list(range(first, last + 1)):
        return f"{first}:{last}"
    return ",".join(map(str, seeds))
