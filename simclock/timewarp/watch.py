"""Finds out whether all members of a time wait, and until when.

A look goes through the threads of all members three times: how long has each thread run so far,
does each thread wait, and has any thread run since the first pass. Only if every thread waits and
none has run meanwhile does nobody work at that instant.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from simclock.timewarp.architectures import SystemCalls
from simclock.timewarp.members import NEVER, WORKS, Kind, Members, Row, born
from simclock.timewarp.pages import TimePage
from simclock.timewarp.threads import Sleep, Threads

ROUNDING_NS: Final = 1_000_000
"""A Go program sleeps whole milliseconds, rounded down, and the rest in a sleep of one more."""
MILLISECOND: Final = 1_000_000
ASKED_WITHIN_S: Final = 0.1
"""Real seconds in which a parent asks for the exit code of a child that has ended."""


@dataclass(frozen=True, slots=True)
class Due:
    """A member that waits until an instant: a thread of a program in epoll, or the loop of a
    row."""

    instant_ns: int
    sleep: Sleep | None = None
    row: Row | None = None


class Watch:
    """The members of the time of `page` and their threads. `own_row`: the row of the loop that
    looks, which waits by definition; None: no loop looks. It belongs to the thread that makes it.

    `busy`: what kept looks from finding that everybody waits -> how often.
    """

    def __init__(self, page: TimePage, calls: SystemCalls, own_row: int | None) -> None:
        self._page = page
        self._members = Members(page)
        self._calls = calls
        self._own_row = own_row
        self._own_tid = threading.get_native_id()
        self._changes = -1
        self.rows: list[Row] = []
        self._threads: dict[int, Threads] = {}
        self._children: dict[int, Threads] = {}
        self._ended: dict[int, float] = {}
        self._worked: Threads | None = None
        """The threads of the member that kept the last look from finding that everybody waits."""
        self._begun: dict[bytes, int] = {}
        self.busy: Counter[str] = Counter()

    def close(self) -> None:
        """Close all files."""
        for threads in (*self._threads.values(), *self._children.values()):
            threads.close()
        self._threads.clear()
        self._children.clear()

    def all_due(self) -> list[Due] | None:
        """All members that wait, each with the instant that it waits for; None if any member works.
        Raises: CannotWarp."""
        if self._worked is not None and self._worked.surely_busy():
            self._keeps(self._worked)  # whatever else has changed
            return None
        self._worked = None
        self._refresh()
        if any(row.kind is Kind.STARTING for row in self.rows):
            self._changes = -1  # it may have ended
            self.busy["a program that starts"] += 1
            return None
        loops = self._waiting_loops()
        if loops is None:
            self.busy["a loop"] += 1
            return None
        if not self._nobody_runs():
            return None
        if self._waiting_loops() != loops:
            self.busy["a loop"] += 1  # it has worked meanwhile, and waits for something else
            return None
        return [*loops, *self._programs()]

    def programs_due(self) -> list[Due]:
        """The programs that wait, each with the instant that it waits for, whether or not other
        members work. Raises: CannotWarp."""
        self._refresh()
        for row in self.rows:
            if row.kind is Kind.PROGRAM:
                if self._threads[row.pid].note_times():
                    self._threads[row.pid].look()
                else:
                    self._changes = -1
        return self._programs()

    def _waiting_loops(self) -> list[Due] | None:
        """The other loops, each with the instant until which it waits by its own entry in the page;
        None if one of them works."""
        due = []
        for row in self.rows:
            if row.kind is not Kind.LOOP or row.number == self._own_row:
                continue
            until = self._members.until(row.number)
            if until == WORKS:
                return None
            if until != NEVER:
                due.append(Due(until, row=row))
        return due

    def _programs(self) -> list[Due]:
        """The threads of programs that slept at the last look, each with the end of its sleep."""
        now_ns = self._page.monotonic_ns()
        begun, due = {}, []
        for row in self.rows:
            if row.kind is not Kind.PROGRAM:
                continue
            for sleep in self._threads[row.pid].sleeps():
                since = begun[sleep.which] = self._begun.get(sleep.which, now_ns)
                instant = since + sleep.milliseconds * MILLISECOND + ROUNDING_NS
                due.append(Due(instant, sleep=sleep))
        self._begun = begun
        return due

    # -- threads -----------------------------------------------------------------------------------

    def _nobody_runs(self) -> bool:
        """Whether no thread of any member runs: the look that the head of this module describes."""
        for threads in self._threads.values():
            if threads.surely_busy():
                return self._keeps(threads)
        for threads in self._threads.values():
            if not threads.note_times():
                self._changes = -1  # threads have ended, perhaps their whole process
                return self._keeps(threads)
        children = self._real_children()
        for threads in children:
            if not threads.note_times():
                return self._keeps(threads)
        watched = [*self._threads.values(), *children]
        for threads in watched:
            if not threads.all_wait():
                return self._keeps(threads)
        if not all(threads.same_times() for threads in watched):
            self.busy["what ran during the look"] += 1
            return False
        for threads in watched:
            if not threads.all_sleep():
                return self._keeps(threads)
        return True

    def _keeps(self, threads: Threads) -> bool:
        self.busy[f"process {threads.pid}"] += 1
        self._worked = threads if self._threads.get(threads.pid) is threads else None
        if threads.seems_over() and not threads.alive():
            self._changes = -1
            self._worked = None
        return False

    def _real_children(self) -> list[Threads]:
        """The children of loops' processes that are no members: they live in real time, and while
        they work, so do the loops."""
        pids = {pid for threads in self._threads.values() for pid in threads.children()}
        pids -= self._threads.keys()
        for pid in self._children.keys() - pids:
            self._children.pop(pid).close()
            self._ended.pop(pid, None)
        for pid in pids - self._children.keys():
            self._children[pid] = Threads(pid, self._calls)
        return [child for child in self._children.values() if not self._is_over(child)]

    def _is_over(self, child: Threads) -> bool:
        """Whether a child process has ended and its parent has had time to collect its exit
        code."""
        if child.alive():
            return False
        now_s = time.monotonic()
        return now_s - self._ended.setdefault(child.pid, now_s) > ASKED_WITHIN_S

    # -- members -----------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Read the table again if it has changed; free the rows of processes that have ended."""
        changes = self._members.changes()
        if changes == self._changes:
            return
        self.rows = []
        for row in self._members.rows():
            if row.born and born(row.pid) == row.born:
                self.rows.append(row)
            else:
                self._members.become(row.number, Kind.FREE)
        self._changes = changes  # if rows were freed, the table is read once more
        loops = {row.pid for row in self.rows if row.kind is Kind.LOOP}
        pids = loops | {row.pid for row in self.rows if row.kind is Kind.PROGRAM}
        for pid in self._threads.keys() - pids:
            self._threads.pop(pid).close()
        for pid in pids - self._threads.keys():
            own_tid = self._own_tid if pid == os.getpid() else 0
            self._threads[pid] = Threads(pid, self._calls, but=own_tid, child_waits=pid in loops)
