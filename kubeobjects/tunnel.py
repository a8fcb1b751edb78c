"""Joins a client's connection with another server's: bytes both ways.

The request goes on as it came, and its answer goes back; nothing of the protocols above (SPDY,
WebSocket) is looked at. What must never happen here: one side has ended and the other is kept, or
one side is slow and bytes pile up.
Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

HEAD_BYTES: Final = 64 * 1024
"""How long the head of an answer may be: the limit of the reader that is given to `join`."""
BLOCK_BYTES: Final = 64 * 1024
REFUSAL_S: Final = 10.0
REFUSAL_BYTES: Final = 1024 * 1024
_PROTOCOLS: Final = "x-stream-protocol-version"
_SKIPPED: Final = frozenset({"content-length", "host", "transfer-encoding", "x-forwarded-for"})
"""Headers that are not passed on as they are."""


class TunnelError(Exception):
    """The other side does not answer, or not as it should. The text is as in Go."""


class Refusal(Struct, frozen=True):
    """The other side's answer where it does not change protocols. The names of `headers` are in
    lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def head_of(
    method: str,
    target: str,
    host: str,
    headers: Iterable[tuple[str, str]],
    forwarded_for: Iterable[str],
) -> bytes:
    """The head of a request as the other side gets it. `target`: path and query; `forwarded_for`:
    those whom the request came from so far, the client among them."""
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {host}",
        *_header_lines(headers),
        f"X-Forwarded-For: {', '.join(filter(None, forwarded_for))}",
    ]
    if method == "POST":
        lines.append("Content-Length: 0")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("utf-8", "surrogateescape")


def _header_lines(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The headers as they came; old runtimes want each protocol of streams in a line of its own."""
    for name, value in headers:
        if name.lower() not in _SKIPPED:
            for one in value.split(",") if name.lower() == _PROTOCOLS else (value,):
                yield f"{name}: {one.strip()}"


async def join(
    client: Any, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Refusal | None:
    """Send the head of a request; if protocols change, join, until either side has ended: None.
    `client`: the request of an HTTP server, whose `protocol` and `transport` are the client's
    connection. Raises TunnelError."""
    try:
        writer.write(head)
        await writer.drain()
        answer = await reader.readuntil(b"\r\n\r\n")
        status = _status(answer)
        if status == 101:
            await _pump(client, answer, reader, writer)
            return None
        if status < 400:
            raise TunnelError(f"invalid upgrade response: status code {status}")
        return await _refusal(status, answer, reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as problem:
        raise TunnelError(f"malformed HTTP response: {problem}") from None
    except ConnectionError as problem:
        raise TunnelError(str(problem)) from None
    finally:
        writer.close()


def _status(head: bytes) -> int:
    """The status code in the first line of an answer. Raises: ValueError if it is not an answer of
    HTTP."""
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise ValueError("no status line")
    return int(words[1])


async def _refusal(status: int, head: bytes, reader: asyncio.StreamReader) -> Refusal:
    """The refusal of the other side: its status, its headers, its text."""
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    body = b""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(REFUSAL_S):
            length = headers.get("content-length", "")
            if length.isdecimal():
                body = await reader.readexactly(min(int(length), REFUSAL_BYTES))
            else:
                body = await reader.read(REFUSAL_BYTES)
    return Refusal(status, headers, body)


class _Client(asyncio.Protocol):
    """The client's side of a joined connection, in place of the HTTP protocol `before`."""

    def __init__(self, before: Any, transport: asyncio.Transport) -> None:
        self._before = before
        self._transport = transport
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self.room = asyncio.Event()
        self.room.set()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._arrived.put_nowait(data)
        self._transport.pause_reading()

    def eof_received(self) -> bool:
        self.ended.set()
        return False

    def connection_lost(self, problem: Exception | None) -> None:
        self.ended.set()
        self.room.set()
        self._before.connection_lost(problem)

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    async def to(self, writer: asyncio.StreamWriter) -> None:
        """Pass on what the client sends, until the client or the other side has ended."""
        while True:
            if self._arrived.empty() and not self._transport.is_closing():
                self._transport.resume_reading()
            writer.write(await self._arrived.get())
            await writer.drain()


async def _pump(
    request: Any, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Bytes both ways until one side has ended; the client's connection is closed then."""
    transport = request.transport
    if transport is None:
        return
    client = _Client(request.protocol, transport)
    transport.set_protocol(client)
    transport.write(head)

    async def to_client() -> None:
        while block := await reader.read(BLOCK_BYTES):
            transport.write(block)
            await client.room.wait()

    work = [
        asyncio.ensure_future(to_client()),
        asyncio.ensure_future(client.to(writer)),
        asyncio.ensure_future(client.ended.wait()),
    ]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        transport.close()
