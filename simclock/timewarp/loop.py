"""asyncio in the time of a page, beside simclock's VirtualLoop and ManualLoop.

It has real sockets, processes and threads. Where the loop would wait, it waits for its descriptors;
meanwhile, if it leads the page, it moves the time on whenever all members of the page wait.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, TypeVar

from simclock.clock import NANOSECONDS, Clock
from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.jumper import Jumper
from simclock.timewarp.members import NEVER, WORKS, Kind, Members
from simclock.timewarp.pages import TimePage

T = TypeVar("T")
Ready = list[tuple[selectors.SelectorKey, int]]

FIRST_PAUSE_S: Final = 0.0001
LONGEST_PAUSE_S: Final = 0.005
SLOWER: Final = 1.6
"""The factor by which pauses between two looks grow while other members work."""
LEAD_AGAIN_S: Final = 0.1
"""How often a loop that does not lead asks whether it does now, in real seconds."""
MOST_FOR_SELECT: Final = 1024
"""`select.select` takes descriptors below this."""


class WarpedClock(Clock):
    """The clock of a page's time."""

    def __init__(self, page: TimePage) -> None:
        self.page = page
        self.wall_ns = page.wall_ns  # type: ignore[method-assign]

    def monotonic_s(self) -> float:
        return self.page.monotonic_ns() / NANOSECONDS

    def wall_ns(self) -> int:
        return self.page.wall_ns()

    def local(self) -> datetime:
        return self.now().astimezone()

    async def sleep(self, duration_s: float, *, slack_s: float = 0.0) -> None:
        """See `Clock.sleep`. If the loop leads the page, the sleep ends at the first instant after
        `duration_s` to which the time jumps for another member."""
        loop = asyncio.get_running_loop()
        if slack_s > 0 and isinstance(loop, WarpedLoop):
            await loop.sleep(duration_s, slack_s)
        else:
            await super().sleep(duration_s)


class _WarpedSelector(selectors.EpollSelector):
    """Waits for descriptors in real time, where the loop asks for durations in the time of the
    page."""

    def __init__(self, page: TimePage, timer_slack_s: float) -> None:
        super().__init__()
        self._page = page
        self._timer_slack_ns = round(timer_slack_s * NANOSECONDS)
        self._members = Members(page)
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.row = self._members.join(
            Kind.LOOP, pid=os.getpid(), wake_fd=self._wake_fd, tid=threading.get_native_id()
        )
        self.jumper: Jumper | None = None
        self.sleeps: dict[asyncio.Future[None], int] = {}
        """Sleeps with slack -> the earliest end of each."""
        super().register(self._wake_fd, selectors.EVENT_READ, self)

    def close(self) -> None:
        if self.jumper is not None:
            self.jumper.close()
        self._members.become(self.row, Kind.FREE)
        os.close(self._wake_fd)
        super().close()

    def select(self, timeout: float | None = None) -> Ready:
        ready = self._ready()
        if ready or (timeout is not None and timeout <= 0):
            return ready
        until = NEVER
        if timeout is not None:
            until = self._page.monotonic_ns() + round(timeout * NANOSECONDS)
        self._members.wait_until(self.row, until)
        try:
            if not self._leads():
                return self._follow(until)
            return self._jump(until) if self._page.jumps else self._hurry(until)
        finally:
            self._members.wait_until(self.row, WORKS)

    def _ready(self, real_s: float = 0) -> Ready:
        """The descriptors that become readable within that many real seconds; wake-ups are left
        out."""
        if real_s > 0 and self.fileno() < MOST_FOR_SELECT:
            # epoll itself waits milliseconds
            if not select.select([self.fileno()], [], [], real_s)[0]:
                return []
            real_s = 0
        events = super().select(real_s)
        if any(key.data is self for key, _ in events):
            os.read(self._wake_fd, 8)
            events = [item for item in events if item[0].data is not self]
        return events

    def _leads(self) -> bool:
        """Whether this loop moves the time."""
        if self.jumper is None and self._page.lead():
            slack_ns = self._timer_slack_ns
            self.jumper = Jumper(self._page, self.row, timer_slack_ns=slack_ns)
        return self.jumper is not None

    def _follow(self, until: int) -> Ready:
        """Wait; the leader wakes this loop when its time has come."""
        left_s = LEAD_AGAIN_S
        if until != NEVER:
            left_s = min(left_s, self._page.real_s(until - self._page.monotonic_ns()))
        return self._ready(left_s)

    def _jump(self, until: int) -> Ready:
        """Wait, and jump when all others wait, too."""
        assert self.jumper is not None
        pause_s = FIRST_PAUSE_S
        came: Ready = []

        def nothing_came() -> bool:
            came.extend(self._ready())
            return not came

        while True:
            if self.jumper.move(until, nothing_came):
                pause_s = FIRST_PAUSE_S
                if self.end_sleeps():
                    return self._ready()
            if came:
                return came
            left_ns = until - self._page.monotonic_ns()
            if left_ns <= 0:
                return self._ready()
            ready = self._ready(min(pause_s, self._page.real_s(left_ns)))
            if ready:
                return ready
            pause_s = min(pause_s * SLOWER, LONGEST_PAUSE_S)

    def end_sleeps(self) -> bool:
        """End the sleeps whose earliest end has come; returns whether there were any."""
        now_ns = self._page.monotonic_ns()
        over = [future for future, instant in self.sleeps.items() if instant <= now_ns]
        for future in over:
            del self.sleeps[future]
            if not future.done():  # it may have been cancelled
                future.set_result(None)
        return bool(over)

    def _hurry(self, until: int) -> Ready:
        """Wait, and wake the programs whose time has come, in a time that only passes faster."""
        assert self.jumper is not None
        while True:
            self.jumper.wake_due()
            left_ns = until - self._page.monotonic_ns()
            if left_ns <= 0:
                return self._ready()
            ready = self._ready(min(LONGEST_PAUSE_S, self._page.real_s(left_ns)))
            if ready:
                return ready


class WarpedLoop(asyncio.SelectorEventLoop):
    """The loop. `page`: the time it lives in, None for one of its own, which jumps. Raises:
    CannotWarp on a machine that has no warped time.

    `timer_slack_s`: how much later than due the timers of programs may come while this loop leads
    the page: those that are due within it share a jump, as with PR_SET_TIMERSLACK of the kernel.
    Loops are never late. `clock` is the clock of that time. A page of its own is closed with the
    loop.
    """

    def __init__(self, page: TimePage | None = None, *, timer_slack_s: float = 0.0) -> None:
        this_architecture()
        self._own_page = page is None
        self.page = TimePage.create() if page is None else page
        self.clock = WarpedClock(self.page)
        self._warped = _WarpedSelector(self.page, timer_slack_s)
        super().__init__(self._warped)

    def time(self) -> float:
        return self.page.monotonic_ns() / NANOSECONDS

    async def sleep(self, duration_s: float, slack_s: float) -> None:
        """See `WarpedClock.sleep`."""
        over = self.create_future()
        earliest = self.page.monotonic_ns() + round(duration_s * NANOSECONDS)
        self._warped.sleeps[over] = earliest
        latest = self.call_later(duration_s + slack_s, self._warped.end_sleeps)
        try:
            await over
        finally:
            latest.cancel()
            self._warped.sleeps.pop(over, None)

    @property
    def jumper(self) -> Jumper | None:
        """The object that moves the time; None as long as another loop or process does."""
        return self._warped.jumper

    def close(self) -> None:
        if not self.is_closed():
            super().close()
            if self._own_page:
                self.page.close()


def loops_at(path: str) -> Callable[[], WarpedLoop]:
    """A factory of loops in the time of the clock page at that path; it is made if there is none.
    Raises: CannotWarp, also on machines whose programs cannot be warped."""
    this_architecture()
    page = TimePage.open_or_create(path)
    return lambda: WarpedLoop(page)


def run(main: Callable[[], Awaitable[T]], page: TimePage | None = None) -> T:
    """Run the coroutine function `main` on a new WarpedLoop to its end; returns its result.

    >>> async def main() -> float:
    ...     loop = asyncio.get_running_loop()
    ...     before_s = loop.time()
    ...     await asyncio.sleep(3600)
    ...     return loop.time() - before_s
    >>> 3600 <= run(main) < 3601
    True
    """

    async def body() -> T:
        return await main()

    def new_loop() -> asyncio.AbstractEventLoop:
        return WarpedLoop(page)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(body())
