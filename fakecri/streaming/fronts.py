"""What speaks first on every connection, and what carries SPDY on TCP.

What must never happen here: closing too early destroys bytes that a caller still has to read, or a
caller that is gone keeps its program running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, Protocol

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.streaming import over_spdy
from fakecri.streaming.connections import SpdyLink
from fakecri.streaming.http_head import (
    PROTOCOL_HEADER,
    Head,
    negotiate,
    parse_head,
    refusal,
    switching,
)
from fakecri.streaming.session import Work, wanted_of

MAX_HEAD_BYTES: Final = 64 * 1024
HEAD_S: Final = 30.0
LINGER_S: Final = 2.0
"""How long a finished connection waits for the caller to close it first."""


class Server(Protocol):
    """What connections need of the server; `server.StreamingServer` is one."""

    def opened(self, transport: asyncio.BaseTransport) -> None: ...
    def closed(self, transport: asyncio.BaseTransport) -> None: ...

    def give_to_web(self, transport: asyncio.Transport, data: bytes) -> None:
        """Hand a connection, and what was read from it, to aiohttp."""

    def take(self, path: str) -> Message | None:
        """The request for a path; its token is used up. None: there is none, answer 404."""

    def work_of(self, request: pb.ExecRequest | pb.AttachRequest) -> Work:
        """The work on the streams of an Exec or Attach request."""

    def forward_of(self, request: pb.PortForwardRequest) -> over_spdy.Forward:
        """The function that carries one connection of a PortForward request."""

    def run(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Do the work of one connection until it is done or the server stops."""


class Front(asyncio.Protocol):
    """Reads the head of the first request, then hands the connection to the protocol that it asks
    for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._bytes = b""
        self._transport: Any = None
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._server.opened(transport)
        self._limit = asyncio.get_running_loop().call_later(HEAD_S, transport.close)

    def connection_lost(self, error: Exception | None) -> None:
        self._done()
        self._server.closed(self._transport)

    def _done(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        raw, end, rest = self._bytes.partition(b"\r\n\r\n")
        if not end and len(raw) < MAX_HEAD_BYTES:
            return
        self._done()
        head = parse_head(raw) if end else None
        if head is None or not head.wants_spdy:
            self._server.closed(self._transport)
            self._server.give_to_web(self._transport, self._bytes)
            return
        self._start_spdy(head, rest)

    def _start_spdy(self, head: Head, rest: bytes) -> None:
        request = self._server.take(head.path)
        if request is None:
            self._refuse(refusal(404, "404 page not found"))
            return
        ports = isinstance(request, pb.PortForwardRequest)
        served = over_spdy.PORT_PROTOCOLS if ports else over_spdy.COMMAND_PROTOCOLS
        protocols = head.values(PROTOCOL_HEADER)
        protocol = negotiate(protocols, served)
        if not protocols:
            text = f"unable to upgrade: header {PROTOCOL_HEADER} does not exist in request"
            self._refuse(refusal(400, text))
        elif protocol is None:
            text = f"client supports {protocols}, server accepts {list(served)}"
            text = f"unable to upgrade: unable to negotiate protocol: {text}"
            self._refuse(refusal(403, text, served))
        else:
            self._transport.write(switching(protocol))
            SpdyFront(self._server, self._transport, request, protocol).data_received(rest)

    def _refuse(self, answer: bytes) -> None:
        self._transport.write(answer)
        self._transport.close()


class SpdyFront(asyncio.Protocol):
    """A SPDY session on a TCP connection; also the carrier of its link."""

    def __init__(self, server: Server, transport: Any, request: Message, protocol: str) -> None:
        self._server = server
        self._transport = transport
        self._room = asyncio.Event()
        self._room.set()
        self._left = asyncio.Event()
        self._link = SpdyLink(self)
        transport.set_protocol(self)
        self._task = server.run(self._serve(request, protocol))

    async def _serve(self, request: Message, protocol: str) -> None:
        try:
            if isinstance(request, pb.ExecRequest | pb.AttachRequest):
                work = self._server.work_of(request)
                await over_spdy.serve_command(self._link, protocol, wanted_of(request), work)
            elif isinstance(request, pb.PortForwardRequest):
                await over_spdy.serve_ports(self._link, self._server.forward_of(request))
            await self._say_goodbye()
        finally:
            self._transport.close()

    async def _say_goodbye(self) -> None:
        """Close the connection after the caller has, or after `LINGER_S`: closing with unread bytes
        would destroy what the caller has not read yet."""
        self._link.session.go_away()
        self._link.flush()
        self._transport.resume_reading()
        with suppress(OSError):  # it may have left just now
            self._transport.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._left.wait()

    # -- asyncio.Protocol ----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if not self._link.over:
            self._link.receive(data)
            if self._link.over:
                self._transport.close()

    def eof_received(self) -> bool:
        self._gone()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._gone()
        self._server.closed(self._transport)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _gone(self) -> None:
        """Note that the caller is gone, so that programs stop to wait for it."""
        if not self._left.is_set():
            self._left.set()
            self._room.set()
            self._link.lost()
            self._task.cancel()

    # -- Carrier -------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        await self._room.wait()
        if self._left.is_set():
            raise ConnectionResetError("the caller left")

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()
