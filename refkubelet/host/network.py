"""What a kubelet reaches over the network besides the runtime and the API: probe targets, hooks.

One small interface, so that in virtual time a fake node answers instead of sockets. It carries one
exchange and decides nothing: redirects, headers and what an answer means are `host/http_get.py`'s.
Errors are `NetworkError`s with the text a Go client has, because people read it in events.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from kubeobjects.golang.duration import format_duration
from kubeobjects.golang.grpc_codes import rpc_error
from kubeobjects.golang.grpc_deadlines import within_deadline
from refkubelet.host.addresses import NetworkError, Target, check_host, host_port, target_of

BODY_BYTES: Final = 10 * 1024  # PROBE-070
PROBE_AGENT: Final = "kube-probe/1.36"  # PROBE-067, PROBE-072
NO_HEADERS_IN_TIME: Final = (
    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
)
NO_BODY_IN_TIME: Final = (
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)


class HttpRequest(Struct, frozen=True):
    """A GET. `headers` go out as they are; one named Host stands for the host of the URL. Of the
    body at most `body_bytes` are read."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body_bytes: int = BODY_BYTES


class HttpAnswer(Struct, frozen=True):
    """One response: as much of its body as was wanted, and why the rest of it could not be read (""
    when it could, or was not wanted)."""

    status: int
    location: str = ""
    body: str = ""
    broken: str = ""


__all__ = ["HttpAnswer", "HttpRequest", "Network", "NetworkError", "SocketNetwork", "host_port"]


class Network(Protocol):
    """Times in seconds; all raise `NetworkError`."""

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        """One GET over a new connection; follows nothing (PROBE-066, PROBE-070). `timeout_s`
        None: no limit."""

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        """Connect and close at once (PROBE-071)."""

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        """The status a gRPC health service gives for `service`, such as SERVING (PROBE-072)."""


class SocketNetwork:
    """The real network; real time only."""

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        now_s = asyncio.get_running_loop().time()
        deadline_s = None if timeout_s is None else now_s + timeout_s
        with _nothing_else():
            async with _session(request) as session:
                response = await _head(session, request, deadline_s)
                async with response:
                    return await _read(response, deadline_s, request.body_bytes)

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        check_host(host, port)
        try:
            with _nothing_else():
                async with asyncio.timeout(timeout_s):
                    _, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            raise NetworkError(f"dial tcp {host_port(host, port)}: i/o timeout") from None
        except OSError as error:
            raise NetworkError(dial_error(error, host, port)) from error
        writer.close()

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        with _nothing_else():
            return await self._grpc_health(address, service, timeout_s)

    async def _grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        import grpc

        took = format_duration(timeout_s)
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        async with grpc.aio.insecure_channel(address, _GRPC_OPTIONS) as channel:
            try:
                async with asyncio.timeout_at(deadline_s):
                    await channel.channel_ready()
            except TimeoutError:
                raise NetworkError(not_connected(address, took)) from None
            left_s = max(0.0, deadline_s - asyncio.get_running_loop().time())
            try:
                return await _check(channel, service, left_s)
            except grpc.aio.AioRpcError as error:
                code, details = error.code().name, error.details() or ""
                raise NetworkError(health_error(code, details, took)) from None


@contextmanager
def _nothing_else() -> Iterator[None]:
    """An unexpected error is a `NetworkError`, too: callers know what to do then, and a pod can be
    stopped whatever its hook does."""
    try:
        yield
    except (NetworkError, OSError):
        raise
    except Exception as error:
        raise NetworkError(f"{type(error).__name__}: {error}") from error


def sent_headers(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    """The headers with the Host that the URL names, its port included, unless another is given."""
    if any(name == "Host" for name, _ in request.headers):
        return request.headers
    target = target_of(request.url)
    port = urlsplit(request.url).port
    host = target.host.partition("%")[0]  # a zone is for this node only
    named = host_port(host, target.port) if port is not None else host_port(host, 0)[:-2]
    return (("Host", named), *request.headers)


# -- HTTP -----------------------------------------------------------------------------------------


def _session(request: HttpRequest) -> Any:
    """A session for one exchange: no proxy, no cookies, no verification, nothing kept, and none
    of the client's own limits (PROBE-066)."""
    import aiohttp
    from multidict import CIMultiDict

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=False, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=CIMultiDict(sent_headers(request)),
        skip_auto_headers=("Accept-Encoding", "User-Agent", "Accept"),
        timeout=aiohttp.ClientTimeout(),
        trust_env=False,
        auto_decompress=False,
        max_line_size=1 << 20,
        max_field_size=1 << 20,
    )


async def _head(session: Any, request: HttpRequest, deadline_s: float | None) -> Any:
    """The response, its body unread."""
    import aiohttp
    from yarl import URL

    target = target_of(request.url)
    path = request.url.partition("://")[2].partition(urlsplit(request.url).netloc)[2]
    url = URL(f"{target.scheme}://{host_port(target.host, target.port)}{path}", encoded=True)
    try:
        async with asyncio.timeout_at(deadline_s):
            return await session.get(url, allow_redirects=False)
    except TimeoutError:
        raise NetworkError(NO_HEADERS_IN_TIME) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NetworkError(http_error(error, target)) from error


async def _read(response: Any, deadline_s: float | None, most: int) -> HttpAnswer:
    """The answer with as much of the body as counts; a body that breaks off is no `NetworkError`,
    because the status is known by then."""
    import aiohttp

    body, broken = b"", ""
    try:
        async with asyncio.timeout_at(deadline_s):
            while len(body) < most and (chunk := await response.content.readany()):
                body += chunk
    except TimeoutError:
        broken = NO_BODY_IN_TIME
    except (aiohttp.ClientError, OSError):
        broken = "unexpected EOF"
    text = body[:most].decode(errors="replace")
    return HttpAnswer(response.status, response.headers.get("Location", ""), text, broken)


def http_error(error: Exception, target: Target) -> str:
    """What went wrong with an exchange, in the words of a Go client."""
    import aiohttp

    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientSSLError) or isinstance(error.__cause__, ssl.SSLError):
        plain = "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER" in str(error)
        return "http: server gave HTTP response to HTTPS client" if plain else f"tls: {error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return dial_error(error.os_error, target.host, target.port)
    if isinstance(error, aiohttp.ClientResponseError):
        why = error.message.partition("\n")[0].rstrip(":")
        return f"net/http: HTTP/1.x transport connection broken: {why}"
    if isinstance(error, OSError) and error.errno:
        return f"read: {_errno_text(error)}"
    return str(error)


def dial_error(error: OSError, host: str, port: int) -> str:
    """A connection that was not made: `dial tcp 10.0.0.1:80: connect: connection refused`."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    return f"dial tcp {host_port(host, port)}: connect: {_errno_text(error)}"


def _errno_text(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)


# -- gRPC -----------------------------------------------------------------------------------------

_HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
_GRPC_OPTIONS: Final = (
    ("grpc.primary_user_agent", PROBE_AGENT),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own for every run
)


async def _check(channel: Any, service: str, timeout_s: float) -> str:
    """grpc.health.v1.Health/Check; the name of the status, or its number if it has none."""
    from kubecri.health import api_pb2 as health

    call = channel.unary_unary(
        _HEALTH_CHECK,
        request_serializer=health.HealthCheckRequest.SerializeToString,
        response_deserializer=health.HealthCheckResponse.FromString,
    )
    request = health.HealthCheckRequest(service=service)
    answer = await within_deadline(call(request, timeout=timeout_s), timeout_s)
    statuses = health.HealthCheckResponse.ServingStatus.values()
    if answer.status not in statuses:
        return str(answer.status)
    return str(health.HealthCheckResponse.ServingStatus.Name(answer.status))


def not_connected(address: str, took: str) -> str:
    """The error of a gRPC probe whose connection was not taken in time (PROBE-073)."""
    return (
        f'timeout: failed to connect service "{address}" within {took}: context deadline exceeded'
    )


def health_error(code: str, details: str, took: str) -> str:
    """PROBE-073: the call failed. `code`: the gRPC code's name; `took`: the time limit."""
    if code == "UNIMPLEMENTED":
        return (
            "error: this server does not implement the grpc health protocol "
            f"(grpc.health.v1.Health): {details}"
        )
    if code == "DEADLINE_EXCEEDED":
        return f"timeout: health rpc did not complete within {took}"
    return f"error: health rpc probe failed: {rpc_error(code, details)}"
