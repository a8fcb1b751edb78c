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
