"""inotify on one directory, through the event loop, so it works in virtual time."""

from __future__ import annotations

import asyncio
import os
import threading  # noqa: TID251 - only to close a descriptor; nothing waits for it
from typing import Final

from inotify_simple import INotify, flags, parse_events

_PRESENT: Final = flags.CLOSE_WRITE | flags.MOVED_TO | flags.ATTRIB | flags.CREATE
_GONE: Final = flags.DELETE | flags.MOVED_FROM
_OVER: Final = (
    flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED | flags.UNMOUNT | flags.Q_OVERFLOW
)
_READ_BYTES: Final = 65536


class WatchFailed(Exception):
    """The watch has ended, because the directory is gone or the queue overflowed; make a new one
    and read everything."""


class DirectoryWatch:
    """Watches the files of `directory`. The constructor raises OSError if that is impossible."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._notify = INotify(nonblocking=True)
        self._readable = asyncio.Event()
        self._over = False
        self._loop = asyncio.get_running_loop()
        try:
            self._notify.add_watch(
                directory, _PRESENT | _GONE | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
            )
            self._loop.add_reader(self._notify.fileno(), self._readable.set)
        except OSError:
            self._notify.close()
            raise

    def close(self) -> None:
        """End the watch. The descriptor is closed beside the loop: the kernel takes some 10 ms for
        it, in which nothing else would happen here."""
        self._loop.remove_reader(self._notify.fileno())
        threading.Thread(target=self._notify.close, daemon=True).start()

    async def changes(self) -> list[tuple[str, bool]]:
        """Wait for changes: (file name, whether the file exists), in order; equal changes in a row
        are one. Raises `WatchFailed` when the watch has ended and all changes were returned."""
        while True:
            if self._over:
                raise WatchFailed(f"{self._directory} changed as a whole")
            await self._readable.wait()
            self._readable.clear()
            changes = self._read()
            if changes:
                return changes

    def _read(self) -> list[tuple[str, bool]]:
        """All changes that inotify holds now."""
        changes: list[tuple[str, bool]] = []
        while True:
            try:
                data = os.read(self._notify.fileno(), _READ_BYTES)
            except BlockingIOError:
                return changes
            for event in parse_events(data):
                if event.mask & _OVER:
                    self._over = True
                    return changes
                if event.mask & flags.CREATE and not self._is_complete(event.name):
                    continue
                change = (event.name, not event.mask & _GONE)
                if not changes or changes[-1] != change:
                    changes.append(change)

    def _is_complete(self, name: str) -> bool:
        """Whether a created entry has its content already, as symbolic and hard links have. A file
        that is being written is reported when it is closed."""
        try:
            status = os.lstat(os.path.join(self._directory, name))
        except OSError:
            return False
        return os.path.islink(os.path.join(self._directory, name)) or status.st_nlink > 1
