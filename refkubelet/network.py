"""What a kubelet reaches over the network besides the runtime and the API: probe targets.

One small interface, so that in virtual time a fake node answers instead of sockets. Errors of the
connection are `NetworkError`s with the text a person reads in the event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

from refkubelet.model.duration import format_duration
from refkubelet.runtime.client import go_code_name

BODY_BYTES = 10 * 1024  # PROBE-070
MAX_REDIRECTS = 10  # PROBE-069


class NetworkError(Exception):
    """The other side could not be reached, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The final response: status, at most 10 KiB of body, and whether it is a redirect that was
    not followed because it leads to another host."""

    status: int
    body: str = ""


class Network(Protocol):
    """Times in seconds; both raise `NetworkError`."""

    async def http_get(
        self, url: str, headers: Sequence[tuple[str, str]], timeout_s: float
    ) -> HttpAnswer:
        """GET, following redirects that stay on the host name (PROBE-066..070)."""
        ...

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        """Connect and close at once (PROBE-071)."""
        ...

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        """The status a gRPC health service gives for `service`, such as SERVING (PROBE-072)."""
        ...


class SocketNetwork:
    """The real network; real time only."""

    async def http_get(
        self, url: str, headers: Sequence[tuple[str, str]], timeout_s: float
    ) -> HttpAnswer:
        import aiohttp
        from multidict import CIMultiDict

        try:
            async with (
                asyncio.timeout(timeout_s),
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=False, force_close=True),
                    skip_auto_headers=("Accept-Encoding", "User-Agent", "Accept"),
                    trust_env=False,
                ) as session,
            ):
                return await _get(session, url, CIMultiDict(headers))
        except TimeoutError:
            raise NetworkError(f'Get "{url}": timeout after {timeout_s:g} s') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NetworkError(f'Get "{url}": {error}') from error

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                _, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            raise NetworkError(f"dial tcp {host}:{port}: i/o timeout") from None
        except OSError as error:
            raise NetworkError(f"dial tcp {host}:{port}: {error.strerror or error}") from error
        writer.close()

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        import grpc

        took = format_duration(timeout_s)
        deadline = asyncio.get_running_loop().time() + timeout_s
        async with grpc.aio.insecure_channel(address, _GRPC_OPTIONS) as channel:
            try:
                async with asyncio.timeout_at(deadline):
                    await channel.channel_ready()
            except TimeoutError:
                raise NetworkError(
                    f'timeout: failed to connect service "{address}" within {took}: '
                    "context deadline exceeded"
                ) from None
            left_s = max(0.0, deadline - asyncio.get_running_loop().time())
            try:
                return await _check(channel, service, left_s)
            except grpc.aio.AioRpcError as error:
                raise NetworkError(_health_error(error, took)) from None


_GRPC_OPTIONS = (("grpc.primary_user_agent", "kube-probe/1.36"),)
_HEALTH = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")


async def _check(channel: Any, service: str, timeout_s: float) -> str:
    """grpc.health.v1.Health/Check. Its two messages have one field each, written and read here by
    hand: `service` (1, string) and `status` (1, enum)."""
    name = service.encode()
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=lambda _: b"\x0a" + _varint(len(name)) + name if name else b"",
        response_deserializer=lambda data: data[1] if data[:1] == b"\x08" and data[1:] else 0,
    )
    status: int = await call(None, timeout=timeout_s)
    return _HEALTH[status] if status < len(_HEALTH) else str(status)


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _health_error(error: Any, took: str) -> str:
    """PROBE-073."""
    code = error.code().name
    if code == "UNIMPLEMENTED":
        return (
            "error: this server does not implement the grpc health protocol "
            f"(grpc.health.v1.Health): {error.details()}"
        )
    if code == "DEADLINE_EXCEEDED":
        return f"timeout: health rpc did not complete within {took}"
    text = f"rpc error: code = {go_code_name(code)} desc = {error.details()}"
    return f"error: health rpc probe failed: {text}"


async def _get(session: Any, url: str, headers: Any) -> HttpAnswer:
    for _ in range(MAX_REDIRECTS):
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            target = response.headers.get("Location") if 300 <= response.status < 400 else None
            following = urljoin(url, target) if target else ""
            if not following or urlsplit(following).hostname != urlsplit(url).hostname:
                body = await response.content.read(BODY_BYTES)
                return HttpAnswer(response.status, body.decode(errors="replace"))
            url = following
    raise NetworkError(f'Get "{url}": stopped after {MAX_REDIRECTS} redirects')
