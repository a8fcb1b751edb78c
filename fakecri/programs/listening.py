"""Real sockets in front of `Ports`: what containers serve can be reached at their pods' addresses.

Only for a pod network inside 127.0.0.0/8, where every address is this machine's; pods on the host's
network are left out. A socket is bound when its time comes and closed when the container ends; what
it answers is decided by `Ports`. What must never happen here: virtual time meets a socket, or a
port that is taken ends more than a line in our own log.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fakecri.behaviors.behavior import Serves
from fakecri.core.runtime import News
from fakecri.programs.ports import NoSuchService, Ports
from simtime import VirtualLoop

if TYPE_CHECKING:
    from aiohttp import web


log = logging.getLogger("fakecri")
HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
Place: TypeAlias = tuple[str, int, str]
"""Address, port, protocol."""


class Listening:
    """Keeps the sockets in step with what containers serve. `tls`: for ports that speak https;
    without it they are not opened."""

    def __init__(self, ports: Ports) -> None:
        self.tls: ssl.SSLContext | None = None
        self._ports = ports
        self._open: dict[Place, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def refresh(self, news: News | None = None) -> None:
        """Open and close what is due; `news`: what has happened, if anything."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # programmed between two loops
        if isinstance(loop, VirtualLoop):
            return
        wanted = set(self._wanted())
        for place in [p for p in self._open if p not in wanted]:
            self._open.pop(place).cancel()
        for place in sorted(wanted - self._open.keys()):
            self._bind(place, loop)
        self._set_timer(loop)

    async def stop(self) -> None:
        """Close all sockets."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._open.values())
        self._open.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wanted(self) -> list[Place]:
        return [
            (container.sandbox.ip, rule.port, rule.protocol)
            for container, rules in self._ports.listening()
            for rule in rules
            if container.sandbox.ip
        ]

    def _bind(self, place: Place, loop: asyncio.AbstractEventLoop) -> None:
        """The socket listens when this returns, so nobody who comes at once is refused."""
        host, port, protocol = place
        if protocol == "https" and self.tls is None:
            log.warning("%s:%d: https needs a certificate", host, port)
            return
        try:
            bound = socket.create_server((host, port)) if protocol != "grpc" else None
        except OSError as error:
            log.warning("cannot listen on %s:%d: %s", host, port, error)
            return
        serve = {"http": self._http, "https": self._http, "tcp": self._tcp, "grpc": self._grpc}
        task = loop.create_task(_until_cancelled(serve[protocol](place, bound)))
        self._open[place] = task

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = list(self._ports.waits_s())
        if waits:
            self._timer = loop.call_later(max(min(waits), 0.001), self.refresh)

    # -- the protocols: each starts serving and returns how to stop -----------------------------

    async def _http(self, place: Place, bound: socket.socket | None) -> Stop:
        from aiohttp import web

        host, port, protocol = place

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            headers = tuple((n.decode("latin-1"), v.decode()) for n, v in request.raw_headers)
            tls = protocol == "https"
            try:
                rule = await self._ports.http(host, port, request.raw_path, headers, tls=tls)
            except ConnectionError:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            location = {"Location": rule.location} if rule.location else None
            if rule.lost_bytes:
                return await _break_off(request, rule)
            return web.Response(status=rule.status, text=rule.body, headers=location)

        runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0)
        await runner.setup()
        context = self.tls if protocol == "https" else None
        assert bound is not None
        await web.SockSite(runner, bound, ssl_context=context).start()
        return runner.cleanup

    async def _tcp(self, place: Place, bound: socket.socket | None) -> Stop:
        host, port = place[:2]

        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._ports.connect(host, port)
            writer.close()

        server = await asyncio.start_server(take, sock=bound)

        async def stop() -> None:
            server.close()
            await server.wait_closed()

        return stop

    async def _grpc(self, place: Place, _: socket.socket | None) -> Stop:
        import grpc

        host, port = place[:2]
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        server.add_generic_rpc_handlers((_health_handler(self._ports, host, port),))
        server.add_insecure_port(f"{host}:{port}")
        await server.start()

        async def stop() -> None:
            await server.stop(0)

        return stop


Stop: TypeAlias = Callable[[], Awaitable[None]]


async def _until_cancelled(serving: Awaitable[Stop]) -> None:
    stop: Stop | None = None
    try:
        stop = await serving
        await asyncio.Event().wait()
    except (OSError, RuntimeError) as error:
        log.warning("a port of a container cannot be served: %s", error)
    finally:
        if stop is not None:
            await stop()


async def _break_off(request: web.BaseRequest, rule: Serves) -> web.StreamResponse:
    """Send what there is of the body, then end the connection."""
    from aiohttp import web

    body = rule.body.encode()
    response = web.StreamResponse(status=rule.status)
    response.content_length = len(body) + rule.lost_bytes
    await response.prepare(request)
    await response.write(body)
    if request.transport is not None:
        request.transport.close()
    return response


def _health_handler(ports: Ports, host: str, port: int) -> Any:
    import grpc
    from criapi.health import api_pb2 as health

    async def check(request: Any, context: Any) -> Any:
        try:
            status = await ports.health(host, port, request.service)
        except NoSuchService as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except ConnectionError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return health.HealthCheckResponse(status=status)

    class Health(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            if details.method != HEALTH_CHECK:
                return None
            return grpc.unary_unary_rpc_method_handler(
                check,
                request_deserializer=health.HealthCheckRequest.FromString,
                response_serializer=health.HealthCheckResponse.SerializeToString,
            )

    return Health()
