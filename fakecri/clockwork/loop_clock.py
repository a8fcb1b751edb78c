"""The clock of whatever loop runs: a virtual or manual loop's own, the machine's elsewhere.

It is chosen when time is first read inside a running loop, so a fixture may make the fake before
the loop exists. A fake that is used on one loop after another (a `run_virtual` for each step of a
test) goes on at the time where the last one ended. What must never happen: time goes back, or
stands still because it is that of a loop that has ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import ModuleType

from simclock import Clock, RealClock, VirtualLoop, clock_of
from simclock.clock import NANOSECONDS


def _none_runs() -> bool:
    return False


def _in_run_of(trio: ModuleType) -> bool:
    """Whether trio runs what runs now; in a way that its old versions know, too."""
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


def _refuse_trio() -> None:
    """Raises: RuntimeError inside a run of trio, whose tasks cannot wait for a fake."""
    trio = sys.modules.get("trio")
    if trio is not None and _in_run_of(trio):
        raise RuntimeError(
            "fakecri runs on asyncio, and this task runs on trio: run it with asyncio (anyio: "
            "backend asyncio), or reach the fake over a socket, see fakecri.serve()"
        )


class LoopClock(Clock):
    """Reads the clock of the loop that runs; between two loops, of the last one.

    As long as its loop runs, nothing else is asked: also not which loop runs in the thread of the
    reader, which costs a system call.
    """

    def __init__(self) -> None:
        self._chosen: Clock = RealClock()
        self._runs: Callable[[], bool] = _none_runs
        self._shift_s = 0.0
        self._shift_ns = 0

    def monotonic_s(self) -> float:
        if not self._runs():
            self._choose()
        return self._chosen.monotonic_s() + self._shift_s

    def wall_ns(self) -> int:
        if not self._runs():
            self._choose()
        return self._chosen.wall_ns() + self._shift_ns

    def _choose(self) -> None:
        """Take the clock of the loop that runs, if any. One that is not the machine's own begins
        where the last one ended."""
        loop = asyncio._get_running_loop()
        if loop is None:
            _refuse_trio()
            return
        before, first = self._chosen, self._runs is _none_runs
        after = clock_of(loop)
        both_real = isinstance(before, RealClock) and isinstance(after, RealClock)
        if not first and not both_real:
            # A virtual loop begins at 0 s; what passed there before the first question has passed.
            gone_s = after.monotonic_s() if isinstance(loop, VirtualLoop) else 0.0
            self._shift_s += before.monotonic_s() + gone_s - after.monotonic_s()
            self._shift_ns += before.wall_ns() + round(gone_s * NANOSECONDS) - after.wall_ns()
        self._chosen, self._runs = after, loop.is_running
