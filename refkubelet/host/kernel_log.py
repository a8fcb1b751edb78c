"""Follows /dev/kmsg: one read(2) is one record, and the loop says when there is one.

The device's records: `priority,sequence,microseconds,flags;text`, and lines of key=value that begin
with a blank. What must never happen here: a read that blocks the loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from kubeobjects.machine import KernelMessage
from simclock import Clock

_LONGEST_RECORD_BYTES: Final = 8192


def open_at_end(file: Path) -> int:
    """A descriptor of the device that reads what is said from now on. Raises OSError."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(fd, 0, os.SEEK_END)
    except OSError:
        os.close(fd)
        raise
    return fd


class KernelLog(AsyncIterator[KernelMessage]):
    """The records of a descriptor, which it owns; ends when the other side of a pipe does, or when
    it is closed. One waits at a time.

    Upstream: github.com/euank/go-kmsg-parser.
    """

    def __init__(self, fd: int, clock: Clock) -> None:
        self._file = os.fdopen(fd, "rb", buffering=0)
        self._clock = clock
        self._waiting: asyncio.Future[None] | None = None

    def __aiter__(self) -> KernelLog:
        return self

    async def __anext__(self) -> KernelMessage:
        while not self._file.closed:
            try:
                record = self._file.read(_LONGEST_RECORD_BYTES)
            except BrokenPipeError:  # what was next has been overwritten; the device goes on
                continue
            if record is None:
                await self._readable()
            elif not record:
                self.close()
            elif (text := message_of(record)) is not None:
                return KernelMessage(self._clock.wall_ns(), text)
        raise StopAsyncIteration

    def close(self) -> None:
        """Nothing more is read; a reader that waits for a record gets the end."""
        self._wake()
        self._file.close()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_reader(self._file, self._wake)
        try:
            await self._waiting
        finally:
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        waiting.get_loop().remove_reader(self._file)
        if not waiting.done():
            waiting.set_result(None)


def message_of(record: bytes) -> str | None:
    """The text of a record, None for what is none.

    >>> message_of(b"6,339,5140900,-;NET: Registered protocol\\n SUBSYSTEM=net\\n")
    'NET: Registered protocol'
    """
    head, separator, rest = record.decode("utf-8", "replace").partition(";")
    if not separator or len(head.split(",")) < 3:
        return None
    return rest.partition("\n")[0]
