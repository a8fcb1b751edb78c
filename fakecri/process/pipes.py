"""The ends of streams that programs hold: readers, writers, a terminal's size.

A program reads `asyncio.StreamReader`s and writes to `Output`s; what carries the bytes is below.
`Valve` stops the carrier while some reader holds too much. What must never happen here: a reader
that is gone keeps the carrier stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

READER_LIMIT_BYTES: Final = 256 * 1024
MOST_COLLECTED_BYTES: Final = 16 * 1024 * 1024


class Output(Protocol):
    """Where a program writes."""

    async def write(self, data: bytes) -> None:
        """Send `data`; returns when there is room for more. Raises ConnectionError."""


class Discard:
    """An output that was not asked for."""

    async def write(self, data: bytes) -> None:
        return None


class Collected:
    """An output that keeps what comes first, up to `MOST_COLLECTED_BYTES` (CRI-114)."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        self.data += data[: MOST_COLLECTED_BYTES - len(self.data)]


class TerminalOutput:
    """What a terminal does with output: every line feed gets its carriage return."""

    def __init__(self, output: Output) -> None:
        self._output = output

    async def write(self, data: bytes) -> None:
        await self._output.write(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


async def cook(
    raw: asyncio.StreamReader, echo: Output, cooked: asyncio.StreamReader, room: asyncio.Event
) -> None:
    """What a terminal does with input: echo it, end lines with LF, end the input at Ctrl-D.

    Goes on only while `room` is set.
    """
    ended_here = False
    while not ended_here and (piece := await raw.read(4096)):
        lines = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        text, control_d, _ = lines.partition(b"\x04")
        ended_here = bool(control_d)
        if text:
            await echo.write(text)
            cooked.feed_data(text)
        await room.wait()
    cooked.feed_eof()


class Valve:
    """Open while no reader is full. Stands in as the transport that `StreamReader` pauses."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._full: list[asyncio.StreamReader] = []

    def reader(self) -> asyncio.StreamReader:
        """A reader that closes the valve while it holds more than twice its limit."""
        reader = asyncio.StreamReader(limit=READER_LIMIT_BYTES)
        reader.set_transport(_Lever(self, reader))
        return reader

    def close_for(self, reader: asyncio.StreamReader) -> None:
        """That reader is full."""
        self._full.append(reader)
        if len(self._full) == 1:
            self._pause()

    def open_for(self, reader: asyncio.StreamReader) -> None:
        """That reader has room, or is gone."""
        if reader in self._full:
            self._full.remove(reader)
            if not self._full:
                self._resume()


class _Lever(asyncio.Transport):
    """What one reader moves."""

    def __init__(self, valve: Valve, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._valve = valve
        self._reader = reader

    def pause_reading(self) -> None:
        self._valve.close_for(self._reader)

    def resume_reading(self) -> None:
        self._valve.open_for(self._reader)


class Terminal:
    """The size of the caller's terminal, as its resize messages say."""

    def __init__(self) -> None:
        self.columns = 0
        self.rows = 0
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait for the next message, or return at once if one came since the last call."""
        await self._changed.wait()
        self._changed.clear()

    def resize(self, columns: int, rows: int) -> None:
        """Take a new size."""
        self.columns, self.rows = columns, rows
        self._changed.set()

    async def follow(self, messages: asyncio.StreamReader) -> None:
        """Apply resize messages (`{"Width":80,"Height":24}`, one after another) until they end."""
        decoder = json.JSONDecoder()
        text = ""
        while piece := await messages.read(4096):
            text = (text + piece.decode("utf-8", "replace")).lstrip()
            while text:
                try:
                    size, end = decoder.raw_decode(text)
                except ValueError:
                    break  # the rest comes with the next piece
                text = text[end:].lstrip()
                self._take(size)
            if len(text) > 4096:
                return  # no resize messages at all

    def _take(self, size: Any) -> None:
        if isinstance(size, dict):
            width, height = size.get("Width"), size.get("Height")
            if isinstance(width, int) and isinstance(height, int):
                self.resize(width, height)


class BytePipe:
    """What one program writes and another reads, in the same process of ours."""

    def __init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()
        self._read = True
        self.reader = Valve(self._room.clear, self._room.set).reader()

    async def write(self, data: bytes) -> None:
        """Returns when the reader has room. Raises BrokenPipeError when the reader is gone."""
        if self._read:
            self.reader.feed_data(data)
            await self._room.wait()
            await asyncio.sleep(0)
        if not self._read:
            raise BrokenPipeError

    def close(self) -> None:
        """No more will come."""
        self.reader.feed_eof()

    def stop_reading(self) -> None:
        """The reader is gone."""
        self._read = False
        self._room.set()


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """Up to the end of a line, however long it is, or of the stream."""
    begun = bytearray()
    while True:
        try:
            return bytes(begun + await reader.readuntil())
        except asyncio.IncompleteReadError as end:
            return bytes(begun + end.partial)
        except asyncio.LimitOverrunError as full:
            begun += await reader.readexactly(full.consumed)


def filled(data: bytes) -> asyncio.StreamReader:
    """A reader with that, and then its end."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def ended() -> asyncio.StreamReader:
    """A reader that is at its end: the input of a program that was given none."""
    reader = asyncio.StreamReader()
    reader.feed_eof()
    return reader
