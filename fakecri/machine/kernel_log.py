"""The kernel's log of the fake machine. A reader gets the lines that are written while it reads."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct, field

from kubeobjects.machine import KernelMessage

_KEPT: Final = 1000


class KernelLogReader(AsyncIterator[KernelMessage]):
    """Gives the lines that are written from its creation on, until it is closed."""

    def __init__(self) -> None:
        self._unread: deque[KernelMessage] = deque(maxlen=_KEPT)
        self._more = asyncio.Event()
        self._closed = False

    def __aiter__(self) -> KernelLogReader:
        return self

    async def __anext__(self) -> KernelMessage:
        while not self._unread:
            if self._closed:
                raise StopAsyncIteration
            self._more.clear()
            await self._more.wait()
        return self._unread.popleft()

    def close(self) -> None:
        """Stop to read; what waits for a line ends."""
        self._closed = True
        self._unread.clear()
        self._more.set()

    def hear(self, message: KernelMessage) -> None:
        """Called by the log."""
        if self._closed:
            return
        self._unread.append(message)
        self._more.set()


class KernelLog(Struct, eq=False):
    """The log. `lines`: the last 1000, as in a kernel's ring buffer. `listeners` are called with
    each new line. `error`: set it, and readers fail with it."""

    lines: deque[KernelMessage] = field(default_factory=lambda: deque(maxlen=_KEPT))
    listeners: list[Callable[[KernelMessage], None]] = field(default_factory=list)
    error: OSError | None = None
    _readers: list[weakref.ref[KernelLogReader]] = field(default_factory=list)

    def say(self, time_ns: int, text: str) -> None:
        """Write a line."""
        message = KernelMessage(time_ns, text)
        self.lines.append(message)
        self._readers = [reader for reader in self._readers if reader() is not None]
        for reference in self._readers:
            reader = reference()
            if reader is not None:
                reader.hear(message)
        for listener in list(self.listeners):
            listener(message)

    def reader(self) -> KernelLogReader:
        """Follows the log. Raises `error`."""
        if self.error is not None:
            raise self.error
        reader = KernelLogReader()
        self._readers.append(weakref.ref(reader))
        return reader

    @property
    def texts(self) -> list[str]:
        """The texts of the lines."""
        return [message.text for message in self.lines]
