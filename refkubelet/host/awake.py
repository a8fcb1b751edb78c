"""The time in which this process could work: what the age of an answer is measured by.

A host that stands still (a virtual machine that is paused or moved, a process that is stopped) ages
everything at once: the runtime's last answer is a minute old, and nobody had a chance to ask again.
Whether something has been silent for too long is therefore counted in time in which the kubelet was
awake. How it works: a task wakes up every 5 s; what it comes later than that was lost.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

from simclock import Clock

BEAT_S: Final = 5.0
LATE_S: Final = 2.0
"""So much later a beat may come on a busy machine."""


class Seconds(Protocol):
    """Something that counts seconds: a clock, or `AwakeTime`."""

    def monotonic_s(self) -> float: ...


class AwakeTime:
    """Counts the seconds in which the process was awake (NODE-054); before `run` runs, all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lost_s = 0.0
        self._on_time_s = math.inf  # a beat after that moment is late

    def monotonic_s(self) -> float:
        """Seconds since some moment, without those that were lost; also right when the process has
        just woken up and `run` has not had its turn yet."""
        now_s = self._clock.monotonic_s()
        if now_s <= self._on_time_s:
            return now_s - self._lost_s
        return self._on_time_s - self._lost_s

    async def run(self) -> None:
        """Beat until cancelled."""
        try:
            while True:
                self._on_time_s = self._clock.monotonic_s() + BEAT_S + LATE_S
                await self._clock.sleep(BEAT_S)
                self._lost_s += max(0.0, self._clock.monotonic_s() - self._on_time_s)
        finally:
            self._on_time_s = math.inf
