"""Joins the connection of a client with the runtime's streaming server: bytes both ways.

The request goes on as it came, to the runtime's address; what the runtime answers, the client gets.
Nothing of the protocols above (SPDY, WebSocket) is looked at. What must never happen here: one side
is gone and the other is kept, or one side is slow and bytes pile up.
Rules: SRV-025, SRV-026. Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from refkubelet.server.common.exchange import Answer, Request, Tunnel, error

if TYPE_CHECKING:
    from aiohttp import web

PROTOCOLS: Final = "x-stream-protocol-version"
HEAD_BYTES: Final = 64 * 1024
CONNECT_S: Final = 30.0
BODY_S: Final = 10.0
BODY_BYTES: Final = 1024 * 1024
BLOCK_BYTES: Final = 64 * 1024
_SKIPPED: Final = frozenset({"x-forwarded-for", "content-length", "transfer-encoding", "host"})


async def join(raw: web.BaseRequest, tunnel: Tunnel) -> Answer:
    """Join, until either side has ended; the answer is for a client that was not joined. Raises
    ConnectionError when a joined one has ended."""
    address = urlsplit(tunnel.url)
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                address.hostname,
                address.port or (443 if address.scheme == "https" else 80),
                ssl=True if address.scheme == "https" else None,
                limit=HEAD_BYTES,
            )
    except (OSError, TimeoutError) as problem:
        return error(500, f"error dialing backend: {problem}")
    try:
        writer.write(head_of(tunnel.request, address, str(raw.remote or "")))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status = _status(head)
        if status == 101:
            await _pump(raw, head, reader, writer)
            raise ConnectionResetError("the stream has ended")
        if status < 400:
            return error(500, f"invalid upgrade response: status code {status}")
        return Answer(status=status, body=await _body(reader))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as problem:
        return error(500, f"malformed HTTP response of the runtime: {problem}")
    finally:
        writer.close()


def head_of(request: Request, address: SplitResult, client: str) -> bytes:
    """The head of the request as the runtime gets it."""
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    forwarded = request.headers.get("x-forwarded-for", "")
    lines = [
        f"{request.method} {target} HTTP/1.1",
        f"Host: {request.headers.get('host') or address.netloc}",
        *_header_lines(request),
        f"X-Forwarded-For: {', '.join(part for part in (forwarded, client) if part)}",
    ]
    if request.method == "POST":
        lines.append("Content-Length: 0")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("utf-8", "surrogateescape")


def _header_lines(request: Request) -> Iterator[str]:
    """The headers as they came; old runtimes want each protocol in a line of its own."""
    for name, value in request.headers.items():
        if name in _SKIPPED:
            continue
        for header_value in value.split(",") if name == PROTOCOLS else (value,):
            yield f"{name}: {header_value.strip()}"


def _status(head: bytes) -> int:
    """Raises ValueError."""
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise ValueError("no status line")
    return int(words[1])


async def _body(reader: asyncio.StreamReader) -> bytes:
    """What the runtime says why it refuses."""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(BODY_S):
            return await reader.read(BODY_BYTES)
    return b""


class _Client(asyncio.Protocol):
    """The client's side of a joined connection, in place of the HTTP protocol `before`."""

    def __init__(self, before: Any, transport: Any) -> None:
        self._before = before
        self._transport = transport
        self.writer: asyncio.StreamWriter | None = None
        self.room = asyncio.Event()
        self.room.set()
        self.ended = asyncio.Event()
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()

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
        """Pass on what the client sends, until it has ended."""
        while True:
            writer.write(await self._next())
            await writer.drain()

    async def _next(self) -> bytes:
        if self._arrived.empty() and not self._transport.is_closing():
            self._transport.resume_reading()
        return await self._arrived.get()


async def _pump(
    raw: web.BaseRequest, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Bytes both ways until one side has ended; the client's connection is closed then."""
    transport = raw.transport
    if transport is None:
        return
    client = _Client(raw.protocol, transport)
    transport.set_protocol(client)
    transport.write(head)

    async def from_runtime() -> None:
        while block := await reader.read(BLOCK_BYTES):
            transport.write(block)
            await client.room.wait()

    work = [
        asyncio.ensure_future(from_runtime()),
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
