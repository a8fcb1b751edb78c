"""The table of members on a time page: which programs and loops live in that time.

A row is one program or one loop of a process. It is written by the member itself; rows of processes
that have ended are freed by the process that moves the time. Every change of membership is counted
(`WORD_CHANGES`), so that a reader sees cheaply that nothing has changed.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final, NamedTuple

from simclock.timewarp.pages import MEMBERS_SIZE, NUMBERS_SIZE, WORD_CHANGES, TimePage
from simclock.timewarp.refusal import CannotWarp

ROW_WORDS: Final = 8
ROWS: Final = MEMBERS_SIZE // 8 // ROW_WORDS
FIRST_WORD: Final = NUMBERS_SIZE // 8
WORD_KIND, WORD_PID, WORD_BORN, WORD_UNTIL, WORD_WAKE, WORD_TID = range(6)
WORKS: Final = 0
"""In WORD_UNTIL: the loop does not wait."""
NEVER: Final = (1 << 64) - 1
"""In WORD_UNTIL: the loop waits for no instant."""

_claiming = threading.Lock()


class Kind(IntEnum):
    """What a row stands for."""

    FREE = 0
    STARTING = 1
    """A process that is about to become a program; it works."""
    PROGRAM = 2
    """A Go program."""
    LOOP = 3
    """An asyncio loop; it says itself until when it waits."""


class Row(NamedTuple):
    """One row as it was read. `born`: when the process started, in ticks since the machine did."""

    number: int
    kind: Kind
    pid: int
    born: int
    wake_fd: int
    tid: int


def born(pid: int) -> int:
    """When the process started, in clock ticks since the machine did; 0: it has ended, or there is
    none. With the PID this names a process for ever. One whose first thread has ended before others
    has not ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rsplit(b")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    ended = words[0] in (b"Z", b"X") and int(words[17]) <= 1
    return 0 if ended else int(words[19])


class Members:
    """The table of one page."""

    def __init__(self, page: TimePage) -> None:
        self._page = page
        self._words = page.words

    def changes(self) -> int:
        """How often membership has changed."""
        return self._words[WORD_CHANGES]

    def rows(self) -> list[Row]:
        """All members."""
        rows = []
        for number in range(ROWS):
            at = FIRST_WORD + number * ROW_WORDS
            if self._words[at + WORD_KIND] != Kind.FREE:
                kind, pid, since, _, wake, tid, *_ = self._words[at : at + ROW_WORDS].tolist()
                rows.append(Row(number, Kind(kind), pid, since, wake, tid))
        return rows

    def join(self, kind: Kind, *, pid: int, wake_fd: int = 0, tid: int = 0) -> int:
        """Add a member; returns the number of its row. Raises: CannotWarp: the table is full."""
        with self._claimed():
            for number in range(ROWS):
                at = FIRST_WORD + number * ROW_WORDS
                if self._words[at + WORD_KIND] == Kind.FREE:
                    values = (pid, born(pid), WORKS, wake_fd, tid)
                    for place, value in enumerate(values, start=WORD_PID):
                        self._words[at + place] = value
                    self._words[at + WORD_KIND] = kind
                    self._words[WORD_CHANGES] += 1
                    return number
        raise CannotWarp(f"the clock page has {ROWS} members already, more have no room")

    def become(self, number: int, kind: Kind) -> None:
        """Change what a row stands for; FREE: the member leaves."""
        with self._claimed():
            self._words[FIRST_WORD + number * ROW_WORDS + WORD_KIND] = kind
            self._words[WORD_CHANGES] += 1

    def until(self, number: int) -> int:
        """Until when that loop waits: nanoseconds of the monotonic clock, WORKS or NEVER."""
        return self._words[FIRST_WORD + number * ROW_WORDS + WORD_UNTIL]

    def wait_until(self, number: int, instant_ns: int) -> None:
        """Say until when that loop waits."""
        self._words[FIRST_WORD + number * ROW_WORDS + WORD_UNTIL] = instant_ns

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """Only one thread of one process changes membership at a time."""
        with _claiming:
            fcntl.lockf(self._page.fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._page.fd, fcntl.LOCK_UN)
