"""How long calls take: a seeded random duration for each, and when in it the call has its effect.

A duration is log-normal: most are a little shorter than the mean, a few are several times as long,
and none is 0. Every kind of call has a stream of numbers of its own, so one more call of one kind
changes nothing for the others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Final, NamedTuple

from simclock.dice import Rng

SPREAD: Final = 0.4
"""The standard deviation of a duration's logarithm: one in a thousand takes over three means."""
SHORT_S: Final = 0.002
"""A call with a mean below this waits once, before its effect or after it: it is frequent, and
nobody could tell."""


class Delay(NamedTuple):
    """The duration of one call, in seconds."""

    before_s: float
    """From its arrival to its effect."""
    after_s: float
    """From its effect to its answer."""


NO_DELAY: Final = Delay(0.0, 0.0)


class Latency:
    """Draws the delays of calls.

    `means_s`: kind of call -> mean duration in seconds at factor 1; a kind that is not there takes
    no time. `factor` makes all of them longer or shorter; with 0 nothing takes time. `purpose`
    tells the numbers of two users of one `rng` apart. Raises ValueError for a negative or infinite
    factor.
    """

    def __init__(
        self, rng: Rng, means_s: Mapping[str, float], *, factor: float = 1.0, purpose: str
    ) -> None:
        if not 0 <= factor < math.inf:
            raise ValueError(f"factor: wanted a number from 0, got {factor!r}")
        self._rng = rng
        self._logs = {
            kind: math.log(mean_s * factor) - SPREAD**2 / 2
            for kind, mean_s in means_s.items()
            if mean_s * factor > 0
        }
        self._numbers: dict[str, random.Random] = {}
        self._short = frozenset(kind for kind, mean_s in means_s.items() if mean_s < SHORT_S)
        self._purpose = purpose
        self.none = factor == 0
        """Whether no call takes time."""

    def of(self, kind: str) -> Delay:
        """The delay of the next call of that kind."""
        log = self._logs.get(kind)
        if log is None:
            return NO_DELAY
        numbers = self._numbers.get(kind)
        if numbers is None:
            numbers = self._numbers[kind] = self._rng.stream(f"{self._purpose} {kind}")
        whole_s = numbers.lognormvariate(log, SPREAD)
        share = numbers.random()
        if kind in self._short:
            share = round(share)
        return Delay(share * whole_s, (1 - share) * whole_s)
