"""HTTP/1.1 on a unix socket, for the clients of every language: h11 knows the protocol.

It is not aiohttp, which takes longer to import than a whole test. Connections stay open for the
next request, and nothing is timed: on a manual clock an advance of an hour must not end them. What
must never happen here: another user than the owner of the socket can connect, or a request without
end fills the memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
from msgspec import Struct, field

from fakecri.cri.endpoint import make_room, socket_path

log = logging.getLogger("fakecri.control")

MAX_HEAD_BYTES: Final = 32 * 1024
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
_PIECE_BYTES: Final = 64 * 1024
_DISCARDED_BYTES: Final = 16 * MAX_BODY_BYTES
_CUT_OFF: Final = (h11.SEND_BODY, h11.ERROR)
"""States of a client whose request was answered before its end, or has no end that we know."""


class Request(Struct, frozen=True):
    """One request. `query` has the last value of each parameter."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: str = ""


class Response(Struct, frozen=True):
    """One response: JSON lines if there are `lines`, else `data` as one JSON document."""

    data: Any = None
    status: int = 200
    lines: str | None = None

    def content(self) -> tuple[str, bytes]:
        """The type and the bytes of the body."""
        if self.lines is not None:
            return "application/x-ndjson", self.lines.encode()
        return "application/json", (json.dumps(self.data, indent=2) + "\n").encode()


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
            await _Conversation(handler, reader, writer).run()

        server = await asyncio.start_unix_server(connected, sock=sock)
        try:
            yield path
        finally:
            server.close()
            for task in list(under_way):
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            path.unlink(missing_ok=True)


class _Conversation:
    """One connection: requests, each answered before the next one is read."""

    def __init__(
        self, handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._handler = handler
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._head_only = False
        """The request is HEAD: what GET answers, without its body."""

    async def run(self) -> None:
        """Answer until the client ends it, or what it sent leaves nothing to go on with."""
        try:
            while await self._answer_one():
                self._http.start_next_cycle()
            await self._discard()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the server ends: there is nothing left to tell
        finally:
            self._writer.close()

    async def _answer_one(self) -> bool:
        """Returns whether another request may come."""
        try:
            try:
                request = await self._request()
                if request is None:
                    return False
                response = await self._handler(request)
            except h11.RemoteProtocolError as error:
                raise _refusal(error) from None
        except HttpError as error:
            response = error.response()
        except ConnectionError:
            raise
        except Exception as error:
            log.exception("a control request failed")
            response = Response({"error": f"a mistake of fakecri: {error!r}"}, 500)
        await self._send(response)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _request(self) -> Request | None:
        """The next request; None when the connection ended before there was one. Raises HttpError,
        RemoteProtocolError."""
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        self._head_only = head.method == b"HEAD"
        if not head.http_version.startswith(b"1."):
            version = head.http_version.decode("latin-1")
            raise HttpError(505, f"wanted HTTP/1.1, got HTTP/{version}")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        encoding = headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise HttpError(415, f"Content-Encoding: wanted a body as it is, got {encoding!r}")
        _check_length(int(headers.get("content-length", "0")))
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
            _check_length(len(body))
        try:
            target = urlsplit(head.target.decode("latin-1"))
        except ValueError as error:  # http://[
            raise HttpError(400, f"the target of the request: {error}") from None
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise HttpError(400, f"the body is no UTF-8 text (byte {error.start})") from None
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        method = "GET" if self._head_only else head.method.decode("latin-1")
        return Request(method, unquote(target.path), query, text)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._write(
                    h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
                )
            self._http.receive_data(await self._reader.read(_PIECE_BYTES))
        return event

    async def _send(self, response: Response) -> None:
        kind, body = response.content()
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        if self._http.their_state in _CUT_OFF:
            headers.append(("Connection", "close"))
        phrase = HTTPStatus(response.status).phrase
        self._write(h11.Response(status_code=response.status, headers=headers, reason=phrase))
        if not self._head_only:
            self._write(h11.Data(data=body))
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    def _write(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")

    async def _discard(self) -> None:
        """Read what a client still sends of a request that was refused: many read no answer before
        they have sent all, and lose it if the connection ends."""
        if self._http.their_state in _CUT_OFF:
            self._writer.write_eof()
            left = _DISCARDED_BYTES
            while left > 0 and (piece := await self._reader.read(_PIECE_BYTES)):
                left -= len(piece)


def _refusal(error: h11.RemoteProtocolError) -> HttpError:
    """The answer to what is no request."""
    if error.error_status_hint == 431:
        return HttpError(431, f"the head of the request is over {MAX_HEAD_BYTES} bytes")
    return HttpError(error.error_status_hint, f"wanted a request in HTTP/1.1: {error}")


def _check_length(length: int) -> None:
    """Raises HttpError for a body that is too long."""
    if length > MAX_BODY_BYTES:
        raise HttpError(
            413, f"the body has {length} bytes or more, at most {MAX_BODY_BYTES} are read"
        )
