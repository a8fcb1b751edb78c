"""HTTP/1.1 on a unix socket, as much of it as a control socket needs: one request a connection.

Written by hand because a web framework takes longer to import than a whole test. `curl
--unix-socket` and every HTTP client can talk to it. What must never happen here: another user than
the owner of the socket can connect, or a request without end fills the memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from fakecri.cri.endpoint import make_room, socket_path

log = logging.getLogger("fakecri.control")

MAX_HEAD_BYTES: Final = 32 * 1024
MAX_BODY_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `query` has the last value of each parameter."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One response: JSON lines if there are `lines`, else `data` as one JSON document."""

    data: Any = None
    status: int = 200
    lines: str | None = None

    def encode(self) -> bytes:
        """The bytes of the whole response."""
        if self.lines is not None:
            kind, body = "application/x-ndjson", self.lines.encode()
        else:
            kind, body = "application/json", (json.dumps(self.data, indent=2) + "\n").encode()
        phrase = HTTPStatus(self.status).phrase
        head = (
            f"HTTP/1.1 {self.status} {phrase}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class HttpError(Exception):
    """The response to a request is an error: `status` and a text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    def response(self) -> Response:
        return Response({"error": str(self)}, self.status)


@asynccontextmanager
async def serve_http(handler: Handler, listen: str) -> AsyncIterator[Path]:
    """Answer requests with `handler` on `listen` (`unix:///path`) until the block ends; gives the
    path.

    Raises EndpointError if the endpoint is malformed or in use, or its directory is missing.
    """
    path = socket_path(listen)
    make_room(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        path.chmod(0o600)  # before listening: until then no client can connect
        sock.setblocking(False)
        under_way: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await _answer(handler, reader, writer)

        server = await asyncio.start_unix_server(connected, sock=sock, limit=MAX_HEAD_BYTES)
        try:
            yield path
        finally:
            server.close()
            for task in list(under_way):
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            path.unlink(missing_ok=True)


async def _answer(
    handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        try:
            request = await _read(reader, writer)
            response = None if request is None else await handler(request)
        except HttpError as error:
            response = error.response()
        except Exception as error:
            log.exception("a control request failed")
            response = Response({"error": f"a mistake of fakecri: {error!r}"}, 500)
        if response is not None:
            writer.write(response.encode())
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass  # the client went away, or the server ends: there is nothing left to tell
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The request; None when the connection ended before there was one. Raises HttpError."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise HttpError(431, f"the head of the request is over {MAX_HEAD_BYTES} bytes") from None
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise HttpError(400, f"wanted an HTTP/1.1 request line, got {first[:100]!r}")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
    body = await _read_body(headers, reader, writer)
    parts = urlsplit(words[1])
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(words[0], unquote(parts.path), query, body)


async def _read_body(
    headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> str:
    if "transfer-encoding" in headers:
        raise HttpError(411, "wanted a body with Content-Length, got Transfer-Encoding")
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise HttpError(400, f"Content-Length: wanted a number, got {length!r}")
    if int(length) > MAX_BODY_BYTES:
        raise HttpError(413, f"the body has {length} bytes, at most {MAX_BODY_BYTES} are read")
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        return (await reader.readexactly(int(length))).decode()
    except asyncio.IncompleteReadError as error:
        raise HttpError(
            400, f"the body ends after {len(error.partial)} of {length} bytes"
        ) from None
    except UnicodeDecodeError as error:
        raise HttpError(400, f"the body is no UTF-8 text (byte {error.start})") from None
