"""How requests reach the API server: over HTTP, or in this process.

A `Wire` carries bytes there and back and knows nothing of objects; `lightkube_client` makes the
requests and reads the answers. Errors of the wire are of any kind: the client makes `ApiError`s of
all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

import httpx2

CONNECT_TIMEOUT_S: Final = 30.0
"""How long connecting and sending may take while a watch is opened; reading it takes for ever."""


class Wire(Protocol):
    """The way of requests to one API server."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        """One request and its answer: HTTP status and body. `params` is the query; `content_type`
        "": there is no body."""

    def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AbstractAsyncContextManager[tuple[int, bytes, AsyncIterator[bytes]]]:
        """An open watch: HTTP status, the body if that is 400 or more, and the lines as they
        come."""

    async def aclose(self) -> None:
        """Close all connections."""


class HttpWire:
    """The wire over HTTP, with lightkube's HTTP client, which has the credentials and TLS.
    `headers`: further headers of a request, asked for at each."""

    def __init__(
        self, http: httpx2.AsyncClient, headers: Callable[[], Iterable[tuple[str, str]]] = tuple
    ) -> None:
        self.http = http
        self._headers = headers

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        """HTTP status and body."""
        headers = {"Accept": "application/json", **dict(self._headers())}
        if content_type:
            headers["Content-Type"] = content_type
        response = await self.http.request(
            method, path, params=params, content=content, headers=headers
        )
        return response.status_code, response.content

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, bytes, AsyncIterator[bytes]]]:
        """HTTP status, the body of a refusal (status 400 and above), and the lines as they come.
        The watch ends with the block."""
        no_end = httpx2.Timeout(CONNECT_TIMEOUT_S, read=None)
        headers = dict(self._headers())
        async with self.http.stream(
            "GET", path, params=params, timeout=no_end, headers=headers
        ) as response:
            refusal = await response.aread() if response.status_code >= 400 else b""
            yield response.status_code, refusal, _lines(response)

    async def aclose(self) -> None:
        await self.http.aclose()


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    async for line in response.aiter_lines():
        yield line.encode()
