"""Python's own clocks, made to show another one: for code under test that reads `time.time()`.

time-machine replaces what the `time` and `datetime` modules do, also where a client has imported
the functions by name, and asks the other clock at each reading; `time.monotonic` is replaced in the
module `time` alone. Only the thread of the block is shown it: what runs beside it in real time (a
server of another test, a plug-in) keeps its time. What measures work (`time.perf_counter`,
`time.process_time`), pauses (`time.sleep`) and other processes stay as they are.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeVar

from simclock.clock import EPOCH, NANOSECONDS, Clock, RealClock
from simclock.virtual_loop import DEFAULT_START, VirtualLoop

T = TypeVar("T")
WANTED: Final = (
    "time-machine, which lets time.time() and datetime.now() show virtual time; "
    "pip install time-machine (the extra [pytest] brings it)"
)


@contextmanager
def python_clocks(clock: Clock) -> Iterator[None]:
    """Until the block ends, `time.time`, `time_ns`, `localtime`, ..., `datetime.now`, `date.today`
    and `time.monotonic` show the time of `clock` in this thread.

    Local times are in the machine's time zone. Raises ModuleNotFoundError without time-machine,
    which a plain install does not bring (the extra `pytest` does).
    """
    from unittest.mock import patch

    try:
        import time_machine
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"simclock.python_clocks needs {WANTED}") from None
    shows = _ShownHere()
    real_monotonic, real_monotonic_ns = time.monotonic, time.monotonic_ns

    def wall_ns() -> int:
        return shows.one_of(clock.wall_ns, time_machine.escape_hatch.time.time_ns)

    def monotonic() -> float:
        return shows.one_of(clock.monotonic_s, real_monotonic)

    def monotonic_ns() -> int:
        return shows.one_of(lambda: round(clock.monotonic_s() * NANOSECONDS), real_monotonic_ns)

    with (
        time_machine.travel(0, tick=False) as traveller,
        patch.multiple(time, monotonic=monotonic, monotonic_ns=monotonic_ns),
        patch.object(traveller, "time_ns", wall_ns),
    ):
        yield


class _ShownHere:
    """Where the other clock is shown: in the thread in which this was made, but not to that clock
    itself, which may be the machine's."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._reads = False

    def one_of(self, shown: Callable[[], T], real: Callable[[], T]) -> T:
        if self._reads or threading.get_ident() != self._thread:
            return real()
        self._reads = True
        try:
            return shown()
        finally:
            self._reads = False


class LoopsClock(Clock):
    """The time of a test's virtual loops: of the one that runs, else of the one made last; before
    there is one, the time at which they start. Where another loop runs (that of a fixture in real
    time), the machine's."""

    def __init__(self) -> None:
        self._last: VirtualLoop | None = None
        self.factory: Callable[[], VirtualLoop] = self._new_loop
        """Makes the loops; always this object, as pytest takes another one for another loop."""

    def begin(self) -> None:
        """A test begins. A loop of the one before that has ended is forgotten."""
        if self._last is not None and self._last.is_closed():
            self._last = None

    def monotonic_s(self) -> float:
        return self._clock().monotonic_s()

    def wall_ns(self) -> int:
        return self._clock().wall_ns()

    def _clock(self) -> Clock:
        running = asyncio._get_running_loop()
        if running is not None and not isinstance(running, VirtualLoop):
            return RealClock()
        loop = running or self._last
        return _StartOfLoops() if loop is None else loop.clock

    def _new_loop(self) -> VirtualLoop:
        self._last = VirtualLoop()
        return self._last


class _StartOfLoops(Clock):
    """What a virtual loop shows that was just made."""

    def monotonic_s(self) -> float:
        return 0.0

    def wall_ns(self) -> int:
        return (DEFAULT_START - EPOCH) // timedelta(microseconds=1) * 1000
