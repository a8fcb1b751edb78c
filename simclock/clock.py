"""Where code reads the time: monotonic seconds and the wall clock, real or virtual.

A component is given a `Clock` and never asks the operating system. It waits through the event loop
(`Clock.sleep` is `asyncio.sleep`), so the same code runs in virtual and in real time.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from functools import lru_cache

NANOSECONDS = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(ABC):
    """Reads time. Durations: seconds (float); wall-clock instants: nanoseconds since 1970 (int)."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back. The running loop's own time."""

    @abstractmethod
    def wall_ns(self) -> int:
        """Wall clock: nanoseconds since 1970-01-01 UTC."""

    def now(self) -> datetime:
        """Wall clock as an aware UTC datetime (microsecond resolution)."""
        return EPOCH + timedelta(microseconds=self.wall_ns() // 1000)

    def local(self) -> datetime:
        """Wall clock as an aware datetime in the local time zone: for `RealClock` the machine's,
        for virtual time UTC, so that a run makes the same names on every machine."""
        return self.now()

    async def sleep(self, duration_s: float, *, slack_s: float = 0.0) -> None:
        """Wait `duration_s` seconds, through the running loop; for 0 and less, one pass of it.

        `slack_s`: the sleep may last longer by so much where that saves work (the timer slack of
        Linux); only the clock of `timewarp` makes use of it."""
        await asyncio.sleep(max(0.0, duration_s))

    def wait_alone(self, until_s: float) -> bool:
        """Let the time until monotonic `until_s` pass at once, if nothing else happens up to then.
        False: nothing was done, as always where time is real."""
        return False

    def happened(self) -> int | None:
        """A number that stays the same while nothing runs but the caller, however long it sleeps
        meanwhile. None: this clock cannot tell."""
        return None


class RealClock(Clock):
    """The machine's clocks."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def wall_ns(self) -> int:
        return time.time_ns()

    def local(self) -> datetime:
        return self.now().astimezone()


class VirtualClock(Clock):
    """The clock of one `VirtualLoop` or `ManualLoop`: wall time is `start` plus the loop's time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime) -> None:
        self._loop_time = self.monotonic_s = loop.time  # type: ignore[method-assign]
        self._start_ns = (start - EPOCH) // timedelta(microseconds=1) * 1000
        self._read_at_s = math.nan
        self._read_ns = 0

    def monotonic_s(self) -> float:
        return self._loop_time()

    def wall_ns(self) -> int:
        now_s = self._loop_time()
        if now_s != self._read_at_s:  # most instants are read many times
            self._read_ns = self._start_ns + round(now_s * NANOSECONDS)
            self._read_at_s = now_s
        return self._read_ns


def clock_of(loop: asyncio.AbstractEventLoop) -> Clock:
    """The clock that `loop` has, as a virtual or manual one does; else the machine's."""
    own = getattr(loop, "clock", None)
    return own if isinstance(own, Clock) else RealClock()


def format_rfc3339(wall_ns: int, *, digits: int = 0) -> str:
    """`wall_ns` (nanoseconds since 1970) as an RFC 3339 time in UTC, ending in `Z`. It has `digits`
    fractional digits, 0 to 9; the rest is cut off, not rounded.

    >>> format_rfc3339(1_500_000_000_123_456_789, digits=3)
    '2017-07-14T02:40:00.123Z'
    """
    seconds, nanos = divmod(wall_ns, NANOSECONDS)
    text = _second(seconds)
    fraction = f"{nanos:09d}"[:digits]
    return f"{text}.{fraction}Z" if digits else f"{text}Z"


@lru_cache(maxsize=64)
def _second(since_1970_s: int) -> str:
    """That second as text: many times are of the same few."""
    return (EPOCH + timedelta(seconds=since_1970_s)).strftime("%Y-%m-%dT%H:%M:%S")
