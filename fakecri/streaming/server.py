"""The HTTP server of the streams: one port for SPDY/3.1 and WebSocket (CRI-115, CRI-116).

How it works. `_Front` reads the head of each connection's request. SPDY upgrades stay here
(`_SpdyFront`); everything else is handed, head and all, to an aiohttp protocol, which does
WebSocket. Both take the token's request and run the same work.

What must never happen: a token serves twice, a connection survives `stop`, or bytes that a caller
still has to read are thrown away by closing too early.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from aiohttp import web
from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.streaming import over_spdy, over_websocket
from fakecri.streaming.connections import SpdyLink
from fakecri.streaming.execution import Runtime, Work, attach, execute, forward
from fakecri.streaming.http_head import (
    PROTOCOL_HEADER,
    Head,
    negotiate,
    parse_head,
    refusal,
    switching,
)
from fakecri.streaming.programs import Programs
from fakecri.streaming.tokens import Tokens

log = logging.getLogger(__name__)
MAX_HEAD_BYTES: Final = 64 * 1024
HEAD_S: Final = 30.0
LINGER_S: Final = 2.0
"""How long a finished connection waits for the caller to close it first."""
SHUTDOWN_S: Final = 0.2
"""How long `stop` waits for connections whose work it has cancelled."""
PATHS: Final = {
    pb.ExecRequest: "exec",
    pb.AttachRequest: "attach",
    pb.PortForwardRequest: "portforward",
}


class StreamingServer:
    """Serves the requests that have a token."""

    def __init__(self, runtime: Runtime, programs: Programs, tokens: Tokens) -> None:
        self._runtime = runtime
        self._programs = programs
        self._tokens = tokens
        self._server: asyncio.Server | None = None
        self._web = web.Server(self._serve_web, handler_cancellation=True, access_log=None)
        self._work: dict[asyncio.Task[None], None] = {}
        self._open: dict[asyncio.BaseTransport, None] = {}
        self.address = ""

    async def start(self, host: str, port: int = 0) -> None:
        """Listen; port 0 takes a free one. Raises: OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Front(self), host, port)
        name = self._server.sockets[0].getsockname()
        self.address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"

    async def stop(self) -> None:
        """End every connection, then the listener."""
        if self._server is None:
            return
        self._server.close()
        tasks = list(self._work)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._web.shutdown(SHUTDOWN_S)
        for transport in list(self._open):
            transport.close()
        await self._server.wait_closed()
        self._server = None

    def url(self, token: str, request: Message) -> str:
        """Where the caller of `request` connects to."""
        return f"http://{self.address}/{PATHS[type(request)]}/{token}"

    # -- for the fronts ------------------------------------------------------------------------

    def take(self, path: str) -> Message | None:
        """The request of a path, whose token is then used up; None: 404."""
        kind, _, token = path.strip("/").partition("/")
        request = self._tokens.take(token)
        return request if request is not None and PATHS[type(request)] == kind else None

    def work_of(self, request: pb.ExecRequest | pb.AttachRequest) -> Work:
        """What is to be done with the streams of a request."""
        if isinstance(request, pb.ExecRequest):
            return partial(execute, self._runtime, self._programs, request)
        return partial(attach, self._runtime, self._programs, request)

    def forward_of(self, request: pb.PortForwardRequest) -> over_spdy.Forward:
        """What carries one connection of a request."""
        return partial(forward, self._runtime, self._programs, request.pod_sandbox_id)

    def opened(self, transport: asyncio.BaseTransport) -> None:
        self._open[transport] = None

    def closed(self, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)

    def run(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Do the work of one connection until it is done or the server stops."""
        task = asyncio.create_task(_quiet(work))
        self._work[task] = None
        task.add_done_callback(self._work.pop)
        return task

    def give_to_web(self, transport: asyncio.Transport, data: bytes) -> None:
        """aiohttp takes the connection over."""
        protocol = self._web()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(data)

    async def _serve_web(self, http: web.BaseRequest) -> web.StreamResponse:
        request = self.take(http.path)
        if request is None:
            return web.Response(status=404, text="404 page not found\n")
        if http.headers.get("Upgrade", "").lower() != "websocket":
            text = f"unable to upgrade: header {PROTOCOL_HEADER} does not exist in request\n"
            return web.Response(status=400, text=text)
        ports = isinstance(request, pb.PortForwardRequest)
        served = over_websocket.PORT_PROTOCOLS if ports else over_websocket.COMMAND_PROTOCOLS
        asked = http.headers.getall("Sec-WebSocket-Protocol", [])
        names = [name.strip() for line in asked for name in line.split(",")]
        protocol = negotiate(names, served) if names else ""
        if protocol is None:
            text = f"requested protocols {names} are not supported; supported: {list(served)}\n"
            return web.Response(status=403, text=text)
        socket = web.WebSocketResponse(
            protocols=(protocol,) if protocol else (), max_msg_size=0, compress=False, timeout=2.0
        )
        await socket.prepare(http)
        await self.run(self._serve_socket(socket, protocol, request))
        return socket

    async def _serve_socket(
        self, socket: web.WebSocketResponse, protocol: str, request: Message
    ) -> None:
        if isinstance(request, pb.PortForwardRequest):
            carry = self.forward_of(request)
            if protocol == over_websocket.TUNNEL:
                await over_websocket.serve_tunnel(socket, carry)
            else:
                ports = tuple(request.port)
                await over_websocket.serve_port_channels(socket, protocol, ports, carry)
        elif isinstance(request, pb.ExecRequest | pb.AttachRequest):
            work = self.work_of(request)
            await over_websocket.serve_command(socket, protocol, wanted_of(request), work)


def wanted_of(request: pb.ExecRequest | pb.AttachRequest) -> frozenset[str]:
    """The streams a request asks for (stdin, stdout, stderr, resize)."""
    flags = {
        "stdin": request.stdin,
        "stdout": request.stdout,
        "stderr": request.stderr,
        "resize": request.tty,
    }
    return frozenset(name for name, asked in flags.items() if asked)


async def _quiet(work: Awaitable[None]) -> None:
    """A caller that leaves early is no error of the server; a bug in it is logged, not hidden."""
    try:
        await work
    except (ConnectionError, TimeoutError) as error:
        log.info("a stream ended early: %s", error)
    except ExceptionGroup as group:
        _, others = group.split((ConnectionError, TimeoutError))
        if others is not None:
            log.exception("a stream failed", exc_info=others)
    except Exception:
        log.exception("a stream failed")


class _Front(asyncio.Protocol):
    """Reads the head of the first request, then gives the connection to whoever speaks it."""

    def __init__(self, server: StreamingServer) -> None:
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
        asked = head.values(PROTOCOL_HEADER)
        protocol = negotiate(asked, served)
        if not asked:
            text = f"unable to upgrade: header {PROTOCOL_HEADER} does not exist in request"
            self._refuse(refusal(400, text))
        elif protocol is None:
            text = f"client supports {asked}, server accepts {list(served)}"
            text = f"unable to upgrade: unable to negotiate protocol: {text}"
            self._refuse(refusal(403, text, served))
        else:
            self._transport.write(switching(protocol))
            _SpdyFront(self._server, self._transport, request, protocol).data_received(rest)

    def _refuse(self, answer: bytes) -> None:
        self._transport.write(answer)
        self._transport.close()


class _SpdyFront(asyncio.Protocol):
    """A SPDY session on a TCP connection; also the carrier of its link."""

    def __init__(
        self, server: StreamingServer, transport: Any, request: Message, protocol: str
    ) -> None:
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
        """Closing with unread bytes would destroy what the caller has not read yet."""
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
        """The caller left: nobody reads what a program still writes."""
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
