"""An asyncio loop with real sockets whose time stands still until it is advanced.

It is for a process that talks to others over sockets, but decides itself when time passes:
`await loop.advance(10)` fires what falls due within ten seconds, in order, each at its own time.
Time moves only during an advance, and only when no callback is runnable and no descriptor readable;
else the loop waits for its sockets.

The loop cannot see other processes and threads and does not wait for them between two timers. A
test that wants them to react in between advances in smaller steps.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from datetime import datetime
from typing import Any, Final

from simclock.clock import RealClock, VirtualClock

# While time stands still, time stamps that must differ are made to differ by nanoseconds. So what
# begins now and lasts 10 s may fall due a little later than 10 s from now; an advance by 10 s is to
# include it. Seconds.
LATE_S: Final = 1e-4


class _StandingSelector(selectors.BaseSelector):
    """Polls a real selector. Where the loop would wait for its next timer, it lets the loop make a
    `step`; if there is none to make, it waits for sockets."""

    def __init__(self, loop: ManualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.get_key(fileobj)

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or (timeout is not None and timeout <= 0) or self._loop.step():
            return ready
        return self._real.select(None)


class ManualLoop(asyncio.SelectorEventLoop):
    """The loop. Its time starts at 0 s. Its `clock` starts at `start`, an aware datetime (None: the
    machine's time when the loop is made)."""

    def __init__(self, *, start: datetime | None = None) -> None:
        self._manual_s = 0.0
        self._horizon_s = 0.0
        self._advances: list[asyncio.Future[None]] = []
        super().__init__(_StandingSelector(self))
        self.clock = VirtualClock(self, start or RealClock().now())
        self._clock_resolution = math.ulp(0.0)  # see VirtualLoop

    def time(self) -> float:
        return self._manual_s

    async def advance(self, duration_s: float) -> float:
        """Let `duration_s` seconds pass; returns the loop's time after them, in seconds.

        Returns when all timers up to then (and 0.1 ms more) have run and nothing else is runnable.
        Advances that overlap add up. Raises: ValueError for a negative, infinite or undefined
        duration.
        """
        if not 0 <= duration_s < math.inf:
            raise ValueError(f"cannot advance by {duration_s} s: wanted a number of seconds from 0")
        self._horizon_s += duration_s
        arrived: asyncio.Future[None] = self.create_future()
        self._advances.append(arrived)
        await arrived
        return self._manual_s

    def step(self) -> bool:
        """Move to the next timer before the horizon, then to the horizon, then end the advances.

        Returns False if there was nothing to do. Called by the selector, when the loop is idle.
        """
        scheduled: list[asyncio.TimerHandle] = getattr(self, "_scheduled")
        # To the timer's own time, even if that is after the horizon: a callback that reads an
        # earlier time would set its timer again, for ever.
        if scheduled and scheduled[0].when() <= self._horizon_s + LATE_S:
            self._move(scheduled[0].when())
            return True
        if self._manual_s < self._horizon_s:
            self._move(self._horizon_s)
            return True
        ended, self._advances = self._advances, []
        for arrived in ended:
            if not arrived.done():
                arrived.set_result(None)
        return bool(ended)

    def _move(self, when_s: float) -> None:
        self._manual_s = max(self._manual_s, when_s)
        self._clock_resolution = math.ulp(self._manual_s)
