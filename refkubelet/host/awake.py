"""The time in which this process could work: what the age of an answer is measured by.

A host that stands still (a virtual machine that is paused or moved, a process that is stopped) ages
everything at once: the runtime's last answer is a minute old, and nobody had a chance to ask again.
Whether something has been silent for too long is therefore counted in time in which the kubelet was
awake. How it works: a task wakes up every 5 s; what it comes later than that was lost.
"""

from __future__ import annotations

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
        self._beat_due_s: float | None = None

    def monotonic_s(self) -> float:
        """Seconds since some moment, without those that were lost; also right when the process has
        just woken up and `run` has not had its turn yet."""
        return self._clock.monotonic_s() - self._lost_s - self._late_s()

    def _late_s(self) -> float:
        if self._beat_due_s is None:
            return 0.0
        return max(0.0, self._clock.monotonic_s() - self._beat_due_s - LATE_S)

    async def run(self) -> None:
        """Beat until cancelled."""
        try:
            while True:
                self._beat_due_s = self._clock.monotonic_s() + BEAT_S
                await self._clock.sleep(BEAT_S)
                self._lost_s += self._late_s()
        finally:
            self._beat_due_s = None
