"""What the threads of a process do, read from the files that the kernel has for each.

The files stay open: reading one then takes a few microseconds. Two of them are read: `syscall`, in
which system call the thread waits, if it does; `schedstat`, for how long and how often it has run.
Whether any thread of another process has run, the CPU clock of that process tells in one call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from simclock.timewarp.architectures import SystemCalls
from simclock.timewarp.members import born
from simclock.timewarp.refusal import CannotWarp

LONGEST: Final = 200
STAT_LONGEST: Final = 1000
CHILDREN_LONGEST: Final = 4000
OVER: Final = b"-1 "
"""What a thread that has ended is shown to do."""
OTHER_LINKS: Final = 2
"""The links of the directory `task` beside those of the threads."""
CPU_CLOCK: Final = 2
"""The clock `~pid << 3 | CPU_CLOCK` is the one that clock_getcpuclockid(3) finds: for how long the
threads of a process have run, of each as soon as it stops."""
GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass(slots=True)
class Thread:
    """The open files of a thread, and what was seen last."""

    tid: int
    syscall_fd: int = -1
    schedstat_fd: int = -1
    children_fd: int = -1
    stat_fd: int = -1
    ran: bytes = b""
    """For how long it has run, and how often."""
    ran_since: bool = True
    """Whether it has run since its children were read."""
    call: bytes = b""
    """The system call that it is in, with its arguments, or `running`."""
    waits: bool = False
    """Whether threads wait for others in that call."""
    known_to_sleep: bytes = b""
    """`ran` at the time when it was seen to sleep."""
    children_told: bytes = b""
    """The processes that it has started and that have not been waited for."""

    def close(self) -> None:
        for fd in (self.syscall_fd, self.schedstat_fd, self.children_fd, self.stat_fd):
            if fd >= 0:
                os.close(fd)


@dataclass(frozen=True, slots=True)
class Sleep:
    """A thread that waits in epoll with a time-out. `which`: the same for the same wait only."""

    pid: int
    tid: int
    which: bytes
    milliseconds: int


class Threads:
    """The threads of one process, but for the thread `but`, which is the caller's, if it is one of
    them. `child_waits`: whether a thread that waits for a child process counts as waiting.

    Raises, in every method: CannotWarp when the kernel does not let us look.
    """

    def __init__(
        self, pid: int, calls: SystemCalls, *, but: int = 0, child_waits: bool = False
    ) -> None:
        self.pid = pid
        self._but = but
        self._calls = calls
        allowed = calls.waits | calls.child_waits if child_waits else calls.waits
        self._waits = frozenset(b"%d" % number for number in allowed)
        self._epoll_waits = tuple(b"%d " % number for number in calls.epoll_waits)
        self._with_children = child_waits
        self._threads: list[Thread] = []
        self._looking: list[Thread] = []
        self._count = -1
        self._children: AbstractSet[int] = frozenset()
        self._children_changed = False
        self._cpu_clock = 0 if but else ~pid << 3 | CPU_CLOCK
        self._ran_ns = -1
        try:
            self._task = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_CLOEXEC)
        except GONE:
            self._task = -1

    def close(self) -> None:
        """Close all files."""
        for thread in (*self._threads, *self._looking):
            thread.close()
        self._threads.clear()
        self._looking.clear()
        if self._task >= 0:
            os.close(self._task)
            self._task = -1

    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._task >= 0 and born(self.pid) != 0

    def surely_busy(self) -> bool:
        """Whether the thread that worked when last looked at still does: a cheap first look."""
        if not self._threads or self._waits_now(self._threads[0]):
            return False
        return self._count >= 0  # else it has ended, and the threads are to be listed again

    def seems_over(self) -> bool:
        """Whether the thread that worked when last looked at is in no state that living ones have:
        perhaps its process has ended."""
        return not self._threads or self._threads[0].call.startswith(OVER)

    def note_times(self) -> bool:
        """Note for how long each thread has run, of all threads that are there now. False when
        threads come and go."""
        if self._task < 0:
            return False
        pread = os.pread
        try:
            ran_ns = self._process_ran_ns()
            if os.stat(self._task).st_nlink - OTHER_LINKS != self._count:
                self._list()
            elif ran_ns == self._ran_ns >= 0:
                return True  # as noted before
            self._ran_ns = ran_ns
            for thread in self._threads:
                ran = pread(thread.schedstat_fd, LONGEST, 0)
                if ran != thread.ran:
                    thread.ran, thread.ran_since = ran, True
        except GONE:
            self._count = -1
            return False
        return True

    def all_wait(self) -> bool:
        """Whether every thread is in a call in which threads wait for others."""
        for place, thread in enumerate(self._threads):
            if not self._waits_now(thread):
                self._threads.insert(0, self._threads.pop(place))
                return False
        return True

    def same_times(self) -> bool:
        """Whether no thread has run since `note_times`, of those that waited meanwhile: the clock
        of a process does not count the time of a thread that still runs."""
        pread = os.pread
        try:
            if self._cpu_clock:
                return self._process_ran_ns() == self._ran_ns
            for thread in self._threads:
                if pread(thread.schedstat_fd, LONGEST, 0) != thread.ran:
                    return False
        except GONE:
            return False
        return True

    def all_sleep(self) -> bool:
        """Whether the threads for which that was not found before sleep until others wake them, and
        do not wait for a disk, nor for the kernel while their process is being ended: then the call
        that is shown is the last one they made."""
        try:
            for thread in self._threads:
                if thread.known_to_sleep != thread.ran:
                    if thread.stat_fd < 0:
                        thread.stat_fd = self._open(thread.tid, "stat")
                    content = os.pread(thread.stat_fd, STAT_LONGEST, 0)
                    if content.rsplit(b")", 1)[1].split(None, 1)[0] != b"S":
                        return False
                    thread.known_to_sleep = thread.ran
        except GONE:
            return False
        return True

    def look(self) -> None:
        """Note what every thread does; whether it waits does not matter."""
        for thread in self._threads:
            self._waits_now(thread)

    def sleeps(self) -> list[Sleep]:
        """Those that wait in epoll with a time-out, of the threads as `all_wait` or `look` saw
        them."""
        sleeps = []
        for thread in self._threads:
            if thread.call.startswith(self._epoll_waits):
                milliseconds = int(thread.call.split()[4], 16) & 0xFFFFFFFF
                if milliseconds < 1 << 31:  # else -1: without end
                    which = thread.call + thread.ran
                    sleeps.append(Sleep(self.pid, thread.tid, which, milliseconds))
        return sleeps

    def children(self) -> AbstractSet[int]:
        """The processes that threads of this one have started and not yet waited for; none unless
        `child_waits`. Threads that have not run since have started none."""
        if not self._with_children:
            return self._children
        threads = (*self._threads, *self._looking)
        for thread in threads:
            if thread.ran_since and thread.children_fd >= 0:
                with suppress(*GONE):
                    content = os.pread(thread.children_fd, CHILDREN_LONGEST, 0)
                    if content != thread.children_told:
                        thread.children_told = content
                        self._children_changed = True
            thread.ran_since = False
        for thread in self._looking:
            thread.ran_since = True
        if self._children_changed:
            told_by_all = b" ".join(thread.children_told for thread in threads)
            self._children = frozenset(map(int, told_by_all.split()))
            self._children_changed = False
        return self._children

    def _process_ran_ns(self) -> int:
        """For how long all threads have run; -1 where the caller is one of them: it always runs.
        Raises: ProcessLookupError when the process has ended."""
        if not self._cpu_clock:
            return -1
        try:
            return time.clock_gettime_ns(self._cpu_clock)
        except OSError:
            raise ProcessLookupError(f"process {self.pid} has ended") from None

    def _waits_now(self, thread: Thread) -> bool:
        try:
            call = os.pread(thread.syscall_fd, LONGEST, 0)
        except GONE:
            self._count = -1
            return False
        except PermissionError as error:
            raise self._hidden(error) from None
        if call != thread.call:
            thread.call = call
            thread.waits = call.split(b" ", 1)[0] in self._waits
        return thread.waits

    def _list(self) -> None:
        """Open the files of new threads, close those of ended ones."""
        tids = {int(name) for name in os.listdir(self._task)}
        self._count = len(tids)
        for listed in (self._threads, self._looking):
            for thread in [t for t in listed if t.tid not in tids]:
                listed.remove(thread)
                thread.close()
                self._children_changed = True
        for tid in tids - {t.tid for t in (*self._threads, *self._looking)}:
            listed = self._looking if tid == self._but else self._threads
            listed.append(self._opened(tid))

    def _opened(self, tid: int) -> Thread:
        """That thread, with its files open. Raises: FileNotFoundError, ProcessLookupError when it
        has ended."""
        thread = Thread(tid)
        try:
            thread.syscall_fd = self._open(tid, "syscall")
            thread.schedstat_fd = self._open(tid, "schedstat")
            if self._with_children:
                with suppress(FileNotFoundError):  # a kernel without CONFIG_PROC_CHILDREN
                    thread.children_fd = self._open(tid, "children")
        except OSError as error:
            thread.close()
            if isinstance(error, PermissionError):
                raise self._hidden(error) from None
            raise
        return thread

    def _open(self, tid: int, name: str) -> int:
        return os.open(f"/proc/{self.pid}/task/{tid}/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def _hidden(self, error: OSError) -> CannotWarp:
        return CannotWarp(
            f"what process {self.pid} does cannot be seen ({error.strerror}): wanted the rights to "
            "trace it, as root or its ancestor"
        )
