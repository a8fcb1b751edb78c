"""How the probes of a refkubelet in this process reach the ports of a fake's containers.

There are no sockets: the fake gives answers, after the time they take, and this module translates
its answers and errors into those of refkubelet's network.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Final, Protocol
from urllib.parse import urlsplit

from fakecri.programs.ports import Hung, NoSuchService, NotServed, WrongProtocol
from fakecri.words.behaviors import serves
from kubeobjects.golang.duration import format_duration
from refkubelet.host.addresses import target_of
from refkubelet.host.network import (
    NO_HEADERS_IN_TIME,
    HttpAnswer,
    HttpRequest,
    NetworkError,
    dial_error,
    health_error,
    not_connected,
    sent_headers,
)

REFUSED: Final = OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


class PodPorts(Protocol):
    """Which container answers on which port of a pod: fakecri's `Ports`, or those of several
    fakes."""

    def connect(self, host: str, port: int) -> str:
        """As `Ports.connect`."""

    async def http(
        self, host: str, port: int, path: str, headers: tuple[tuple[str, str], ...], *, tls: bool
    ) -> serves:
        """As `Ports.http`."""

    async def health(self, host: str, port: int, service: str) -> str:
        """As `Ports.health`."""


class FakeNetwork:
    """refkubelet's `Network` over the ports of a fake."""

    def __init__(self, ports: PodPorts) -> None:
        self._ports = ports

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        """The answer of the fake's port. Raises NetworkError with the message that refkubelet's own
        network would have."""
        parts, target = urlsplit(request.url), target_of(request.url)
        host, port = target.host, target.port
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        tls = parts.scheme == "https"
        try:
            async with asyncio.timeout(timeout_s):
                served = await self._ports.http(host, port, path, sent_headers(request), tls=tls)
        except TimeoutError:
            raise NetworkError(NO_HEADERS_IN_TIME) from None
        except NotServed:
            raise NetworkError(dial_error(REFUSED, host, port)) from None
        except WrongProtocol as error:
            plain = tls and error.spoken == "http"
            text = "http: server gave HTTP response to HTTPS client" if plain else "EOF"
            raise NetworkError(text) from None
        except Hung:
            raise NetworkError("EOF") from None
        broken = "unexpected EOF" if served.lost_bytes else ""
        return HttpAnswer(served.status, served.location, served.body, broken)

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        """Returns if the port is open. Raises NetworkError."""
        try:
            self._ports.connect(host, port)
        except NotServed:
            raise NetworkError(dial_error(REFUSED, host, port)) from None

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        """The health of that service (`SERVING`). Raises NetworkError."""
        host, _, port = address.rpartition(":")
        took = format_duration(timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ports.health(host.strip("[]"), int(port), service)
        except TimeoutError:
            raise NetworkError(health_error("DEADLINE_EXCEEDED", "", took)) from None
        except NoSuchService as error:
            raise NetworkError(health_error("NOT_FOUND", str(error), took)) from None
        except Hung as error:
            raise NetworkError(health_error("UNAVAILABLE", str(error), took)) from None
        except (NotServed, WrongProtocol):
            await asyncio.sleep(timeout_s)  # the client keeps trying until its time is up
            raise NetworkError(not_connected(address, took)) from None
