"""What the threads of a process do, read from the files that the kernel has for each.

The files stay open: reading one then takes a few microseconds. Two of them are read: `syscall`, in
which system call the thread waits, if it does; `schedstat`, for how long and how often it has run.
"""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from timewarp.architectures import SystemCalls
from timewarp.members import born
from timewarp.refusal import CannotWarp

LONGEST: Final = 200
CHILDREN_LONGEST: Final = 4000
OTHER_LINKS: Final = 2
"""The links of the directory `task` beside those of the threads."""
GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass(slots=True)
class Thread:
    """The open files of a thread, and what was seen last."""

    tid: int
    syscall_fd: int
    schedstat_fd: int
    ran: bytes = b""
    call: bytes = b""
    known_to_wait: bytes = b""

    def close(self) -> None:
        os.close(self.syscall_fd)
        os.close(self.schedstat_fd)


@dataclass(frozen=True, slots=True)
class Sleep:
    """A thread that waits in epoll with a time-out. `which`: the same for the same wait only."""

    pid: int
    tid: int
    which: bytes
    milliseconds: int


class Threads:
    """The threads of one process, but for the thread `but`. `child_waits`: whether a thread that
    waits for a child process counts as waiting.

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
        self._epoll_waits = frozenset(b"%d" % number for number in calls.epoll_waits)
        self._with_children = child_waits
        self._children: dict[int, int] = {}
        self._threads: list[Thread] = []
        self._count = -1
        try:
            self._task = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_CLOEXEC)
        except GONE:
            self._task = -1

    def close(self) -> None:
        """Close all files."""
        for thread in self._threads:
            thread.close()
        self._threads.clear()
        for fd in self._children.values():
            os.close(fd)
        self._children.clear()
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

    def note_times(self) -> bool:
        """Note for how long each thread has run, of all threads that are there now. False when
        threads come and go."""
        if self._task < 0:
            return False
        try:
            count = os.stat(self._task).st_nlink - OTHER_LINKS
            if count != self._count:
                self._list()
            for thread in self._threads:
                thread.ran = os.pread(thread.schedstat_fd, LONGEST, 0)
        except GONE:
            self._count = -1
            return False
        return True

    def all_wait(self) -> bool:
        """Whether every thread waits for others."""
        for place, thread in enumerate(self._threads):
            if not self._waits_now(thread):
                self._threads.insert(0, self._threads.pop(place))
                return False
        return True

    def same_times(self) -> bool:
        """Whether no thread has run since `note_times`."""
        try:
            return all(
                os.pread(thread.schedstat_fd, LONGEST, 0) == thread.ran for thread in self._threads
            )
        except GONE:
            return False

    def look(self) -> None:
        """Note what every thread does; whether it waits does not matter."""
        for thread in self._threads:
            self._waits_now(thread)

    def sleeps(self) -> list[Sleep]:
        """Those that wait in epoll with a time-out, of the threads as `all_wait` or `look` saw
        them."""
        found = []
        for thread in self._threads:
            words = thread.call.split()
            if words and words[0] in self._epoll_waits:
                milliseconds = int(words[4], 16) & 0xFFFFFFFF
                if milliseconds < 1 << 31:  # else -1: without end
                    found.append(
                        Sleep(self.pid, thread.tid, thread.call + thread.ran, milliseconds)
                    )
        return found

    def children(self) -> AbstractSet[int]:
        """The processes that threads of this one have started and not yet waited for; none unless
        `child_waits`."""
        found: set[int] = set()
        for fd in self._children.values():
            with suppress(*GONE):
                found.update(map(int, os.pread(fd, CHILDREN_LONGEST, 0).split()))
        return found

    def _waits_now(self, thread: Thread) -> bool:
        try:
            call = os.pread(thread.syscall_fd, LONGEST, 0)
        except GONE:
            self._count = -1
            return False
        except PermissionError as error:
            raise self._hidden(error) from None
        number = call.split(b" ", 1)[0]
        thread.call = call
        return number in self._waits and self._sleeps_for_others(thread)

    def _sleeps_for_others(self, thread: Thread) -> bool:
        """Whether a thread in such a call waits for others, and not for a disk, nor for the kernel
        while its process is being ended."""
        same = thread.call + thread.ran
        if thread.known_to_wait == same:
            return True
        with suppress(*GONE), open(f"/proc/{self.pid}/task/{thread.tid}/stat", "rb") as file:
            if file.read().rsplit(b")", 1)[1].split()[0] == b"S":
                thread.known_to_wait = same
                return True
        return False

    def _list(self) -> None:
        """Open the files of new threads, close those of ended ones."""
        tids = {int(name) for name in os.listdir(self._task)}
        self._count = len(tids)
        if self._with_children:
            self._list_children(tids)
        tids.discard(self._but)
        for thread in [t for t in self._threads if t.tid not in tids]:
            thread.close()
            self._threads.remove(thread)
        for tid in tids - {thread.tid for thread in self._threads}:
            base = f"/proc/{self.pid}/task/{tid}"
            try:
                syscall = os.open(f"{base}/syscall", os.O_RDONLY | os.O_CLOEXEC)
            except PermissionError as error:
                raise self._hidden(error) from None
            try:
                schedstat = os.open(f"{base}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                os.close(syscall)
                raise
            self._threads.append(Thread(tid, syscall, schedstat))

    def _list_children(self, tids: AbstractSet[int]) -> None:
        for tid in self._children.keys() - tids:
            os.close(self._children.pop(tid))
        for tid in tids - self._children.keys():
            with suppress(*GONE):  # also where the kernel does not have the file
                path = f"/proc/{self.pid}/task/{tid}/children"
                self._children[tid] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _hidden(self, error: OSError) -> CannotWarp:
        return CannotWarp(
            f"what process {self.pid} does cannot be seen ({error.strerror}): wanted the rights to "
            "trace it, as root or its ancestor"
        )
