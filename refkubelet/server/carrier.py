"""Carries requests and answers between a socket and a port (aiohttp).

What must never happen here: a client that says nothing keeps its connection; a path reaches a
handler in another form than the gate saw it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from refkubelet.server.common.exchange import Answer, ClientCertificate, Request, text
from refkubelet.server.request_line import BadRequest, path_of, query_of
from refkubelet.server.streams.tunnel import join

if TYPE_CHECKING:
    import ssl

    from refkubelet.server.port import Port

log = logging.getLogger(__name__)
SILENCE_S: Final = 60.0
"""A connection without a whole first request after so many seconds is closed."""
LINE_BYTES: Final = 64 * 1024
"""The longest request line, and the longest header."""


def request_of(raw: web.BaseRequest) -> Request:
    """The request that came. Raises `BadRequest`."""
    return Request(
        method=raw.method,
        path=path_of(raw.raw_path),
        query=query_of(raw.raw_path),
        headers=_headers(raw),
        certificate=certificate_of(raw.get_extra_info("ssl_object")),
    )


def _headers(raw: web.BaseRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def certificate_of(connection: ssl.SSLObject | None) -> ClientCertificate | None:
    """The client's certificate, which the handshake has verified; None: there is none."""
    if connection is None or not (peer := connection.getpeercert()):
        return None
    pairs: list[tuple[str, Any]] = []
    for attributes in peer.get("subject", ()):
        pairs += attributes  # type: ignore[arg-type]  # tuples of pairs, as ssl gives them
    names = [str(value) for key, value in pairs if key == "commonName"]
    organizations = tuple(str(value) for key, value in pairs if key == "organizationName")
    der = connection.getpeercert(binary_form=True) or b""
    return ClientCertificate(
        names[-1] if names else "", organizations, hashlib.sha256(der).hexdigest()
    )


class _Connection(web.RequestHandler):
    """A connection that is closed if its first request does not come."""

    __slots__ = ("_patience", "asked")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.asked = False
        self._patience = asyncio.get_running_loop().call_later(SILENCE_S, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if not self.asked and self.transport is not None:
            self.transport.close()


class Carrier(web.Server):
    """The protocol factory of a listening socket: every request goes to `port`."""

    def __init__(self, port: Port) -> None:
        super().__init__(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            logger=_log_of_requests(),
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
        )
        self._port = port

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        if isinstance(raw.protocol, _Connection):
            raw.protocol.asked = True
        try:
            request = request_of(raw)
        except BadRequest as problem:
            return _whole(text(f"400 Bad Request: {problem}", 400))
        answer = await self._port.answer(request)
        if answer.tunnel is not None:
            answer = await join(raw, answer.tunnel)
        if answer.chunks is None:
            return _whole(answer)
        return await _in_chunks(raw, answer)


def _whole(answer: Answer) -> web.Response:
    headers = {"Content-Type": answer.content_type, **answer.headers}
    return web.Response(status=answer.status, body=answer.body, headers=headers)


async def _in_chunks(raw: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Send what comes when it comes; no Content-Length, chunked."""
    assert answer.chunks is not None
    headers = {"Content-Type": answer.content_type, **answer.headers}
    response = web.StreamResponse(status=answer.status, headers=headers)
    if raw.version >= (1, 1):
        response.enable_chunked_encoding()
    await response.prepare(raw)
    try:
        async for chunk in answer.chunks:
            await response.write(chunk)
    finally:
        close = getattr(answer.chunks, "aclose", None)
        if close is not None:
            await close()
    await response.write_eof()
    return response


def _log_of_requests() -> logging.Logger:
    """A logger without the errors of malformed requests, with which any client could fill the log
    (the clients get answers), and without connections that end: each exec, attach and port-forward
    ends with one."""
    from aiohttp.http_exceptions import HttpProcessingError

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)

    http = logging.getLogger(f"{__name__}.http")
    http.filters[:] = [is_ours]
    return http
