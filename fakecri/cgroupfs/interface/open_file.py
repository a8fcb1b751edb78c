"""Open interface files and eventfds: reading again, waiting for changes, triggers.

A read is a snapshot taken at offset 0; partial reads go on in it (CG-104). After rmdir, read and
write give ENODEV (CG-103).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from typing import Protocol

from fakecri.cgroupfs.interface.pressure import Trigger
from fakecri.cgroupfs.interface.tree import Cgroup, InterfaceFile
from fakecri.cgroupfs.interface.values import MAX_WRITE_BYTES, named, refuse


class EventFd:
    """A counter that the kernel adds 1 to. `fd`: its number for cgroup.event_control."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.count = 0
        self.on_signal: list[Callable[[], None]] = []
        self.on_close: list[Callable[[], None]] = []

    def signal(self) -> None:
        """Add 1, as the kernel does."""
        self.count += 1
        for callback in list(self.on_signal):
            callback()

    def close(self) -> None:
        """Close it; it is not signalled any more."""
        while self.on_close:
            self.on_close.pop()()

    def read(self) -> int:
        """How often it was signalled since the last read. Raises EAGAIN if never."""
        if self.count == 0:
            raise refuse(errno.EAGAIN)
        count, self.count = self.count, 0
        return count


class Descriptors(Protocol):
    """The open files and eventfds of a file system, by number."""

    open_files: dict[int, OpenFile]
    eventfds: dict[int, EventFd]

    def register(self, opened: OpenFile) -> int:
        """Give an open file its number."""


class OpenFile:
    """An open interface file; use it in a `with`, or `close` it."""

    def __init__(self, fs: Descriptors, cgroup: Cgroup, file: InterfaceFile, path: str) -> None:
        self.fs = fs
        self.cgroup = cgroup
        self.name = file.name
        self.trigger: Trigger | None = None
        self.fd = fs.register(self)
        self._file = file
        self._path = path
        self._text: str | None = None
        self._at = 0
        self._changed = True
        self._waiting: list[asyncio.Future[None]] = []
        cgroup.watchers.setdefault(self.name, []).append(self.wake)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int = -1) -> str:
        """The next characters of the snapshot; "" at its end."""
        if self._text is None:
            self._text = self._now()
            self._at, self._changed = 0, False
        end = len(self._text) if size < 0 else self._at + size
        part = self._text[self._at : end]
        self._at += len(part)
        return part

    def __iter__(self) -> Iterator[str]:
        """The lines of the snapshot that have not been read."""
        return iter(self.read().splitlines(keepends=True))

    def seek_start(self) -> None:
        """Let the next read take a new snapshot."""
        self._text = None

    def _now(self) -> str:
        try:
            self._need_directory()
            if self._file.read is None:
                raise refuse(errno.EINVAL)
            return self._file.read(self.cgroup)
        except OSError as error:
            raise named(error, self._path) from None

    def write(self, text: str) -> int:
        """Write one command; returns its length. What follows a NUL is ignored; an empty text does
        nothing."""
        if not text:
            return 0
        try:
            self._need_directory()
            if len(text.encode()) > MAX_WRITE_BYTES:
                raise refuse(errno.E2BIG)
            command = text.split("\0")[0]
            if self._file.per_open is not None:
                self._file.per_open(self.cgroup, command, self)
            elif self._file.write is not None:
                self._file.write(self.cgroup, command)
            else:
                raise refuse(errno.EINVAL)
        except OSError as error:
            raise named(error, self._path) from None
        return len(text)

    def wake(self) -> None:
        """Note that the kernel has changed the file, or that its trigger has fired."""
        self._changed = True
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def poll(self) -> bool:
        """Whether POLLPRI is set: the file has changed since it was read, or its trigger has fired
        (CG-122).

        Polling clears a trigger, reading clears a change.
        """
        changed = self._changed
        if self.trigger is not None:
            self.rest()
        return changed

    def rest(self) -> None:
        """Forget changes up to now."""
        self._changed = False

    async def changed(self) -> None:
        """Wait for the next change; in virtual time, too."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def close(self) -> None:
        """Close the file and remove its trigger."""
        self.fs.open_files.pop(self.fd, None)
        if self.wake in self.cgroup.watchers.get(self.name, ()):
            self.cgroup.watchers[self.name].remove(self.wake)
        if self.trigger is not None:
            for pressure in self.cgroup.pressure.values():
                pressure.triggers = [t for t in pressure.triggers if t is not self.trigger]

    def _need_directory(self) -> None:
        if self.cgroup.removed or self.cgroup.file(self.name) is not self._file:
            raise refuse(errno.ENODEV)
