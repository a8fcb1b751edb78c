"""Reads a container's log, and follows it.

The file is looked at four times a second while it is followed, the container once a second: what is
written is shown soon, whatever wakes us. A log that was rotated is read to its end, then the new
file of that name. What must never happen here: a link of the log's path is followed; a log of any
size is held in memory; a client that has left keeps a file open.
Rules: SRV-020, SRV-023. Upstream: staging/src/k8s.io/cri-client/pkg/logs: ReadLogs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from refkubelet.host.untrusted_files import open_log
from refkubelet.server.logs.lines import LogFilter
from refkubelet.server.logs.pieces import LineCutter, Piece
from simclock import Clock

BLOCK_BYTES: Final = 64 * 1024
PIECE: Final = 500
"""The number of lines after which others have their turn."""
LOOK_S: Final = 0.25
ASK_EACH: Final = 4
"""After so many looks the container is asked for again."""


class LogSource(Struct, frozen=True):
    """Where a log is and how to wait for more. `running`: whether the container still runs;
    `trusted`: directories whose own paths may have links."""

    path: str
    clock: Clock
    running: Callable[[], Awaitable[bool]]
    trusted: Sequence[str] = ()


class LogReader:
    """One reading of one log."""

    def __init__(
        self, source: LogSource, shown: LogFilter, *, tail_lines: int | None, follow: bool
    ) -> None:
        self._source = source
        self._shown = shown
        self._follow = follow
        self._left = tail_lines if tail_lines is not None and not follow else None
        self._tail_lines = tail_lines
        self._cutter = LineCutter()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is shown, as it comes. Raises OSError, `UnknownFormat`, and what `running` does."""
        file = open_log(self._source.path, self._source.trusted)
        try:
            if self._tail_lines is not None:
                os.lseek(file, await tail_start(file, self._tail_lines), os.SEEK_SET)
            while not self._over:
                async for chunk in self._to_the_end(file):
                    yield chunk
                if not self._follow or self._over:
                    break
                more = await self._more(file)
                if not more:
                    async for chunk in self._to_the_end(file):
                        yield chunk
                    break
                file = self._newer(file)
            if last := self._last():
                yield last
        finally:
            os.close(file)

    @property
    def _over(self) -> bool:
        return self._left == 0 or self._shown.done

    async def _to_the_end(self, file: int) -> AsyncIterator[bytes]:
        """What is shown of all that is there now, but for a last line without an end."""
        while not self._over and (block := os.read(file, BLOCK_BYTES)):
            pieces = self._cutter.feed(block)
            while some := list(islice(pieces, PIECE)):
                await asyncio.sleep(0)  # others have their turn, however big the log is
                if content := b"".join([self._of(piece) for piece in some]):
                    yield content

    def _of(self, piece: Piece) -> bytes:
        """What is shown of a line, or of a part of one."""
        if self._over:
            return b""
        if not piece.begins:
            shown = self._shown.go_on(piece.data)
        else:
            shown = self._shown.take(piece.data) if piece.ends else self._shown.begin(piece.data)
        if self._left is not None and piece.ends and self._shown.was_line:
            self._left -= 1
        return shown

    def _last(self) -> bytes:
        """What is shown of a last line without an end."""
        piece = self._cutter.rest()
        return self._of(piece) if piece is not None else b""

    async def _more(self, file: int) -> bool:
        """Wait until there is more; False: there will be no more."""
        looks = 0
        while True:
            if looks % ASK_EACH == 0 and not await self._source.running():
                return False
            if _grown(file) or self._replaced(file):
                return True
            looks += 1
            await self._source.clock.sleep(LOOK_S)

    def _replaced(self, file: int) -> bool:
        try:
            status = os.stat(self._source.path, follow_symlinks=False)
        except OSError:
            return False
        return status.st_ino != os.fstat(file).st_ino

    def _newer(self, file: int) -> int:
        """The file to go on with: a new one of that name once the old one was read."""
        if _grown(file) or not self._replaced(file):
            return file
        try:
            new = open_log(self._source.path, self._source.trusted)
        except OSError:
            return file
        os.close(file)
        self._cutter = LineCutter()
        return new


def _grown(file: int) -> bool:
    return os.fstat(file).st_size > os.lseek(file, 0, os.SEEK_CUR)


async def tail_start(file: int, lines: int) -> int:
    """Where the last lines of a file begin, so many as are wanted."""
    end = os.fstat(file).st_size
    start, count, block = end, 0, b""
    while start > 0 and count <= lines:
        size = min(BLOCK_BYTES, start)
        start -= size
        block = os.pread(file, size, start)
        await asyncio.sleep(0)
        count += block.count(b"\n")
    at = 0
    while count > lines:
        at = block.index(b"\n", at) + 1
        count -= 1
    return start + at
