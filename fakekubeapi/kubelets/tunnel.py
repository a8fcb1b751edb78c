"""Joins a client's connection with one of a kubelet, a pod or a service: bytes both ways.

The request goes on as it came, to the place that was found; nothing of the protocols above (SPDY,
WebSocket) is looked at. What must never happen here: one side has ended and the other is kept, or
one side is slow and bytes pile up.
Upstream: staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiohttp import web

from fakekubeapi.errors import StatusError
from fakekubeapi.kubelets.dialling import connection
from fakekubeapi.kubelets.options import KubeletOptions
from fakekubeapi.kubelets.places import Place

HEAD_BYTES: Final = 64 * 1024
BLOCK_BYTES: Final = 64 * 1024
REFUSAL_S: Final = 10.0
REFUSAL_BYTES: Final = 1024 * 1024
_PROTOCOLS: Final = "x-stream-protocol-version"
_SKIPPED: Final = frozenset(
    ("authorization", "content-length", "host", "transfer-encoding", "x-forwarded-for")
)
"""Headers that are not passed on as they are. The client's credentials are for this server."""


def is_upgrade(headers: Mapping[str, str]) -> bool:
    """Whether the client wants to speak another protocol on the connection."""
    return "upgrade" in headers.get("Connection", "").lower()


async def join(request: web.Request, place: Place, options: KubeletOptions) -> web.StreamResponse:
    """Join until either side has ended; the response is for a client that was not joined, or says
    that there is nothing left to answer. Raises: StatusError 500 for a place that does not answer
    or not as it should."""
    try:
        reader, writer = await connection(place, options, limit=HEAD_BYTES)
    except (OSError, TimeoutError) as problem:
        raise StatusError(500, f"error dialing backend: {problem}", reason="") from None
    try:
        writer.write(head_of(request, place))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status = _status(head)
        if status == 101:
            await _pump(request, head, reader, writer)
            return Ended()
        if status < 400:
            raise StatusError(500, f"invalid upgrade response: status code {status}", reason="")
        return await _refusal(status, head, reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as problem:
        raise StatusError(500, f"malformed HTTP response: {problem}", reason="") from None
    except ConnectionError as problem:
        raise StatusError(500, str(problem), reason="") from None
    finally:
        writer.close()


class Ended(web.Response):
    """In place of an answer, where the connection has been used for something else and has
    ended."""

    async def prepare(self, request: web.BaseRequest) -> None:
        raise ConnectionResetError("the joined connections have ended")


def head_of(request: web.Request, place: Place) -> bytes:
    """The head of the request as the other side gets it."""
    target = (
        place.target
        if place.query or not request.query_string
        else (f"{place.path or '/'}?{request.rel_url.raw_query_string}")
    )
    before = request.headers.getall("X-Forwarded-For", [])
    lines = [
        f"{request.method} {target} HTTP/1.1",
        f"Host: {request.headers.get('Host') or place.address}",
        *_header_lines(request.headers.items()),
        f"X-Forwarded-For: {', '.join([*before, request.remote or ''])}",
    ]
    if request.method == "POST":
        lines.append("Content-Length: 0")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("utf-8", "surrogateescape")


def _header_lines(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The headers as they came; each protocol of streams in a line of its own, as Go writes it."""
    return [
        f"{name}: {header_value.strip()}"
        for name, value in headers
        if name.lower() not in _SKIPPED
        for header_value in (value.split(",") if name.lower() == _PROTOCOLS else (value,))
    ]


def _status(head: bytes) -> int:
    """The status code in the first line of an answer. Raises: ValueError if it is not an answer of
    HTTP."""
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise ValueError("no status line")
    return int(words[1])


async def _refusal(status: int, head: bytes, reader: asyncio.StreamReader) -> web.Response:
    """The refusal of the other side as a response: its status, its headers, its text."""
    headers = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = b""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(REFUSAL_S):
            length = headers.get("content-length", "")
            if length.isdecimal():
                body = await reader.readexactly(min(int(length), REFUSAL_BYTES))
            else:
                body = await reader.read(REFUSAL_BYTES)
    kind = {"Content-Type": headers["content-type"]} if "content-type" in headers else {}
    answer = web.Response(status=status, body=body, headers=kind)
    answer.force_close()
    return answer


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
    request: web.Request, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
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
