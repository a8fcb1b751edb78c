"""The HTTP server of the streams: one port for SPDY/3.1 and WebSocket (CRI-115, CRI-116).

How it works. `Front` reads the head of each connection's request and answers SPDY upgrades;
everything else is handed, head and all, to an aiohttp protocol, which does WebSocket. Both take
the token's request and run the same work.

What must never happen: a token serves twice, or a connection survives `stop`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import weakref
from collections.abc import Awaitable
from functools import partial
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.streaming import over_spdy, over_websocket
from fakecri.streaming.execution import attach, execute
from fakecri.streaming.forwarding import forward
from fakecri.streaming.fronts import Front
from fakecri.streaming.http_head import PROTOCOL_HEADER, negotiate
from fakecri.streaming.session import Runtime, Work, wanted_of
from fakecri.streaming.stream_rules import Programs
from fakecri.streaming.tokens import Tokens

log = logging.getLogger(__name__)
SHUTDOWN_S: Final = 0.2
"""How long `stop` waits for connections whose work it has cancelled."""
PATHS: Final = {
    pb.ExecRequest: "exec",
    pb.AttachRequest: "attach",
    pb.PortForwardRequest: "portforward",
}


class StreamingServer:
    """Serves each request that has a token, once."""

    def __init__(self, runtime: Runtime, programs: Programs, tokens: Tokens) -> None:
        self._runtime = runtime
        self._programs = programs
        self._tokens = tokens
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._web = web.Server(
            self._serve_web,
            handler_cancellation=True,
            access_log=None,
            logger=_log_of_requests(),
        )
        self._work: dict[asyncio.Task[None], None] = {}
        self._open: dict[asyncio.BaseTransport, None] = {}
        self.address = ""

    async def start(self, host: str, port: int = 0) -> None:
        """Listen on a TCP port of `host`; 0: a free port. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
        weakref.finalize(self, listener.close)  # for a loop that ends before `stop`
        self._server = await self._loop.create_server(lambda: Front(self), sock=listener)
        name = listener.getsockname()
        self.address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"

    @property
    def lives(self) -> bool:
        """Whether it listens on the loop that runs now."""
        return self._loop is asyncio.get_running_loop()

    async def stop(self) -> None:
        """End every connection, then stop listening. If its loop has ended, nothing is left to
        do."""
        if self._server is None or not self.lives:
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
        self._server = None

    def cut(self) -> None:
        """Break every connection now; goes on listening."""
        for task in list(self._work):
            task.cancel()
        for transport in list(self._open):
            transport.close()

    def url(self, token: str, request: Message) -> str:
        """The URL for the caller of `request`."""
        return f"http://{self.address}/{PATHS[type(request)]}/{token}"

    # -- for the fronts ------------------------------------------------------------------------

    def take(self, path: str) -> Message | None:
        """The request for a path; its token is used up. None: there is none, answer 404."""
        kind, _, token = path.strip("/").partition("/")
        request = self._tokens.take(token)
        return request if request is not None and PATHS[type(request)] == kind else None

    def work_of(self, request: pb.ExecRequest | pb.AttachRequest) -> Work:
        """The work on the streams of an Exec or Attach request."""
        if isinstance(request, pb.ExecRequest):
            return partial(execute, self._runtime, request)
        return partial(attach, self._runtime, self._programs, request)

    def forward_of(self, request: pb.PortForwardRequest) -> over_spdy.Forward:
        """The function that carries one connection of a PortForward request."""
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
        """Hand a connection, and what was read from it, to aiohttp."""
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
        protocol_lines = http.headers.getall("Sec-WebSocket-Protocol", [])
        names = [name.strip() for line in protocol_lines for name in line.split(",")]
        protocol = negotiate(names, served) if names else ""
        if protocol is None:
            text = f"requested protocols {names} are not supported; supported: {list(served)}\n"
            return web.Response(status=403, text=text)
        caller = web.WebSocketResponse(
            protocols=(protocol,) if protocol else (), max_msg_size=0, compress=False, timeout=2.0
        )
        await caller.prepare(http)
        await self.run(self._serve_socket(caller, protocol, request))
        return caller

    async def _serve_socket(
        self, caller: web.WebSocketResponse, protocol: str, request: Message
    ) -> None:
        if isinstance(request, pb.PortForwardRequest):
            carry = self.forward_of(request)
            if protocol == over_websocket.TUNNEL:
                await over_websocket.serve_tunnel(caller, carry)
            else:
                ports = tuple(request.port)
                await over_websocket.serve_port_channels(caller, protocol, ports, carry)
        elif isinstance(request, pb.ExecRequest | pb.AttachRequest):
            work = self.work_of(request)
            await over_websocket.serve_command(caller, protocol, wanted_of(request), work)


def _log_of_requests() -> logging.Logger:
    """A logger for aiohttp that drops its reports: what is no HTTP is answered with 400, and that
    is enough."""
    http = logging.getLogger(f"{__name__}.http")
    http.filters[:] = [_is_ours]
    return http


def _is_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def _quiet(work: Awaitable[None]) -> None:
    """Do the work of a connection. A caller that leaves early is no error; a bug of the server is
    logged."""
    try:
        await work
    except (ConnectionError, TimeoutError) as error:
        log.info("a stream ended early: %s", error)
    except ExceptionGroup as group:
        _, remaining = group.split((ConnectionError, TimeoutError))
        if remaining is not None:
            log.exception("a stream failed", exc_info=remaining)
    except Exception:
        log.exception("a stream failed")
