"""Moves a time on when all of its members wait, and wakes the members whose instant has come.

One process does all of it: the one that leads the page.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.members import NEVER, Row
from simclock.timewarp.pages import TimePage
from simclock.timewarp.threads import GONE, Sleep
from simclock.timewarp.watch import Due, Watch

ONE: Final = struct.pack("=Q", 1)

_libc = ctypes.CDLL(None, use_errno=True)


class Jumper:
    """The one that moves the time of `page`. `own_row`: the row of the loop that calls it; None: it
    is called by no loop. It belongs to the thread that makes it. `timer_slack_ns`: how much later
    than due the timers of programs may come, so that several of them share one jump.

    `looks`, `jumps`: how often it has looked and moved the time on. Raises: CannotWarp when this
    machine's system calls are not known.
    """

    def __init__(
        self, page: TimePage, own_row: int | None = None, *, timer_slack_ns: int = 0
    ) -> None:
        self._page = page
        self._calls = this_architecture().calls
        self._watch = Watch(page, self._calls, own_row)
        self._timer_slack_ns = timer_slack_ns
        self._wakers: dict[Row, int] = {}
        self.looks = 0
        self.jumps = 0

    @property
    def busy(self) -> Counter[str]:
        """What kept looks from a jump -> how often."""
        return self._watch.busy

    def close(self) -> None:
        """Close all files."""
        self._watch.close()
        for fd in self._wakers.values():
            os.close(fd)
        self._wakers.clear()

    def move(self, until_ns: int = NEVER, nothing_came: Callable[[], bool] | None = None) -> bool:
        """Jump, if nobody works, to the next instant that a member waits for, at most to
        `until_ns`; for programs alone, by the slack further.

        `nothing_came`: called after the look; whether the calling loop still has nothing to do.
        (Another member may have sent it something just before it began to wait.) Returns whether
        nobody worked and there was such an instant. Raises: CannotWarp.
        """
        self.looks += 1
        due = self._watch.all_due()
        if due is None:
            return False
        target = min(until_ns, min(map(self._latest_ns, due), default=NEVER))
        if target == NEVER:
            self.busy["no instant to go to"] += 1
            return False
        if nothing_came is not None and not nothing_came():
            self.busy["what was sent to the loop"] += 1
            return False
        ahead = target - self._page.monotonic_ns()
        if ahead > 0:
            self._page.jump(ahead)
            self.jumps += 1
        self._wake([waiter for waiter in due if waiter.instant_ns <= target])
        return True

    def _latest_ns(self, waiter: Due) -> int:
        """Until when it may wait."""
        return waiter.instant_ns + (self._timer_slack_ns if waiter.sleep is not None else 0)

    def wake_due(self) -> int:
        """For a time that only passes faster: wake the programs whose instant has come. Returns the
        next instant that a program waits for, NEVER if none does. Raises: CannotWarp."""
        self.looks += 1
        due = self._watch.programs_due()
        now_ns = self._page.monotonic_ns()
        self._wake([d for d in due if d.instant_ns <= now_ns])
        return min((d.instant_ns for d in due if d.instant_ns > now_ns), default=NEVER)

    def _wake(self, due: list[Due]) -> None:
        for waiter in due:
            with suppress(*GONE):
                if waiter.sleep is not None:
                    self._interrupt(waiter.sleep)
                if waiter.row is not None:
                    os.write(self._waker(waiter.row), ONE)

    def _interrupt(self, sleep: Sleep) -> None:
        """End the sleep of a Go program's thread: it does what is due, and sleeps again. The signal
        is one that Go's runtime sends to its own threads all the time."""
        _libc.syscall(self._calls.tgkill, sleep.pid, sleep.tid, int(signal.SIGURG))

    def _waker(self, row: Row) -> int:
        """A descriptor; what is written to it wakes the loop of that row."""
        if row not in self._wakers:
            pidfd = os.pidfd_open(row.pid)
            try:
                got = _libc.syscall(self._calls.pidfd_getfd, pidfd, row.wake_fd, 0)
            finally:
                os.close(pidfd)
            if got < 0:
                raise ProcessLookupError(ctypes.get_errno(), "pidfd_getfd")
            self._wakers[row] = got
        return self._wakers[row]
