"""The clock of whatever loop runs: a virtual or manual loop's own, the machine's elsewhere.

It is chosen when time is first read inside a running loop, so a fixture may make the fake before
the loop exists. What must never happen: the choice changes afterwards.
"""

from __future__ import annotations

import asyncio

from simtime import Clock, ManualLoop, RealClock, VirtualLoop


class LoopClock(Clock):
    """Reads the clock of the first running loop that asks."""

    def __init__(self) -> None:
        self._chosen: Clock | None = None

    def monotonic_s(self) -> float:
        return (self._chosen or self._clock()).monotonic_s()

    def wall_ns(self) -> int:
        return (self._chosen or self._clock()).wall_ns()

    def _clock(self) -> Clock:
        if self._chosen is not None:
            return self._chosen
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return RealClock()  # no choice yet: nothing runs
        self._chosen = loop.clock if isinstance(loop, VirtualLoop | ManualLoop) else RealClock()
        return self._chosen
