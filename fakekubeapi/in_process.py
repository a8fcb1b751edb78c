"""The way to a `FakeApi` for a client in the same process: requests as HTTP carries them, without
HTTP.

Bodies pass as bytes, so client and server share no objects. A watch waits on the running event
loop, so it works in virtual time, too. For clients that bring an HTTP client of their own there is
`httpx_transport`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fakekubeapi.api import FakeApi
from fakekubeapi.asked import Asked
from fakekubeapi.bodies import JSON, encode


class InProcessWire:
    """Carries requests to `api`. Requests raise ApiUnreachable while the server is down, and so
    does the reading of a watch that breaks."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        """One request and its answer: HTTP status and body. `path` is not quoted; `content_type`
        "": JSON, or no body."""
        request_read = Asked(
            method,
            path,
            params or {},
            sent=content,
            content_type=content_type or JSON,
            schema=self._api.schema,
        )
        response = await self._api.exchange(request_read)
        return response.status, encode(response.body)

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, bytes, AsyncIterator[bytes]]]:
        """An open watch: HTTP status, the body if it was refused, and a JSON line for each event.
        It is closed with its block."""
        response = await self._api.exchange(Asked("GET", path, params, schema=self._api.schema))
        if response.events is None:
            yield response.status, encode(response.body), _none()
            return
        async with aclosing(response.events) as events, aclosing(_lines(events)) as lines:
            yield response.status, b"", lines

    async def aclose(self) -> None:
        """There is nothing to close."""


async def _lines(events: AsyncIterator[Mapping[str, Any]]) -> AsyncGenerator[bytes, None]:
    async for event in events:
        yield encode(event)


async def _none() -> AsyncIterator[bytes]:
    return
    yield b""
