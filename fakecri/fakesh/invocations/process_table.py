"""The processes of one container, as `ps` and `pgrep` see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

_FIRST = 7


class Entry(Struct, frozen=True):
    """One process."""

    pid: int
    uid: int
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The last part of its program's path, as the kernel keeps it."""
        return self.command[0].rpartition("/")[2][:15]


class ProcessTable:
    """`main`: the command of the process with the number 1, which the programs of the fake need not
    know; none before the container has started."""

    def __init__(self, main: Sequence[str] = ()) -> None:
        self._entries: dict[int, Entry] = {}
        self._last = _FIRST - 1
        if main:
            self._entries[1] = Entry(1, 0, tuple(main))

    def next_pid(self) -> int:
        """A number that no process of the container had."""
        self._last += 1
        return self._last

    def entries(self) -> list[Entry]:
        """What runs now, by number."""
        return [self._entries[pid] for pid in sorted(self._entries)]

    @contextmanager
    def running(self, pid: int, uid: int, command: tuple[str, ...]) -> Iterator[None]:
        """In the table as long as the block lasts."""
        before = self._entries.get(pid)
        self._entries[pid] = Entry(pid, uid, command)
        try:
            yield
        finally:
            if before is None:
                del self._entries[pid]
            else:
                self._entries[pid] = before
