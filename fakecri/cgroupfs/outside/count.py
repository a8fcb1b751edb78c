"""A number that one process counts up and others read, without asking it."""

from __future__ import annotations

import mmap
import os

SIZE = 8


class Count:
    """The number in the file `fd`, which belongs to this object: 0 at first."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, SIZE)
        self._words = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls) -> Count:
        """A new number."""
        fd = os.memfd_create("count")
        os.ftruncate(fd, SIZE)
        return cls(fd)

    @property
    def value(self) -> int:
        return self._words[0]

    def add(self) -> None:
        """One more. Only one process does so; nothing happens after `close`."""
        if self.fd >= 0:
            self._words[0] += 1

    def close(self) -> None:
        """Give it up; other processes keep it."""
        if self.fd >= 0:
            self._words.release()
            self._map.close()
            os.close(self.fd)
            self.fd = -1
