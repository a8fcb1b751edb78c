"""What real sockets in front of containers speak: http, https, tcp, grpc.

Each function starts to serve and returns what stops it. `bound`: a socket that listens already;
None for grpc, which binds its own. `tls`: the context for https.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
from aiohttp import web
from kubecri.health import api_pb2 as health

from fakecri.programs.ports import NoSuchService, Ports
from fakecri.words.behaviors import serves

HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
Place: TypeAlias = tuple[str, int, str]
"""Address, port, protocol."""
Stop: TypeAlias = Callable[[], Awaitable[None]]


async def serve_http(
    ports: Ports, place: Place, bound: socket.socket | None, tls: ssl.SSLContext | None
) -> Stop:
    """Serve `http` and `https`."""
    host, port, protocol = place

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        headers = tuple((n.decode("latin-1"), v.decode()) for n, v in request.raw_headers)
        secure = protocol == "https"
        try:
            rule = await ports.http(host, port, request.raw_path, headers, tls=secure)
        except ConnectionError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        location = {"Location": rule.location} if rule.location else None
        if rule.lost_bytes:
            return await _break_off(request, rule)
        return web.Response(status=rule.status, text=rule.body, headers=location)

    runner = web.ServerRunner(
        web.Server(answer, access_log=None, handler_cancellation=True), shutdown_timeout=0
    )
    await runner.setup()
    context = tls if protocol == "https" else None
    assert bound is not None
    await web.SockSite(runner, bound, ssl_context=context).start()
    return runner.cleanup


async def serve_tcp(
    ports: Ports, place: Place, bound: socket.socket | None, tls: ssl.SSLContext | None
) -> Stop:
    """Take connections and end them."""
    host, port = place[:2]

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.connect(host, port)
        writer.close()

    server = await asyncio.start_server(take, sock=bound)

    async def stop() -> None:
        server.close()
        await server.wait_closed()

    return stop


async def serve_grpc(
    ports: Ports, place: Place, bound: socket.socket | None, tls: ssl.SSLContext | None
) -> Stop:
    """Serve the health service of gRPC."""
    host, port = place[:2]
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((_health_handler(ports, host, port),))
    server.add_insecure_port(f"{host}:{port}")
    await server.start()

    async def stop() -> None:
        await server.stop(0)

    return stop


async def _break_off(request: web.BaseRequest, rule: serves) -> web.StreamResponse:
    """Send the part of the body that there is, then end the connection."""
    body = rule.body.encode()
    response = web.StreamResponse(status=rule.status)
    response.content_length = len(body) + rule.lost_bytes
    await response.prepare(request)
    await response.write(body)
    if request.transport is not None:
        request.transport.close()
    return response


def _health_handler(ports: Ports, host: str, port: int) -> Any:
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


SERVE: Final = {"http": serve_http, "https": serve_http, "tcp": serve_tcp, "grpc": serve_grpc}
"""By the protocol that a behaviour names."""
