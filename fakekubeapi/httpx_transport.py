"""Connects an httpx2 client (lightkube's) to a `FakeApi` by direct calls: no socket, no thread.

Bodies pass as bytes, so client and server share no objects. A watch is a streamed body that waits
on the running event loop, so it works in virtual time, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from fakekubeapi.api import FakeApi
from fakekubeapi.asked import Asked
from fakekubeapi.bodies import JSON, encode
from fakekubeapi.errors import ApiUnreachable

_JSON = {"Content-Type": "application/json"}


class InProcessTransport(httpx2.AsyncBaseTransport):
    """A client's transport: `lightkube.AsyncClient(config, transport=InProcessTransport(api))`.

    Requests raise httpx2.ConnectError while the server is down, reading a watch that breaks raises
    httpx2.ReadError.
    """

    def __init__(self, api: FakeApi) -> None:
        self._api = api

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            request_read = Asked(
                request.method,
                request.url.path,
                params=dict(request.url.params),
                sent=await request.aread() or None,
                content_type=request.headers.get("Content-Type", JSON),
                user=self._api.client_of(request.headers.get("Authorization", "")),
                user_agent=request.headers.get("User-Agent", ""),
                schema=self._api.schema,
            )
            response = await self._api.exchange(request_read)
        except ApiUnreachable as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        if response.events is None:
            return httpx2.Response(response.status, headers=_JSON, content=encode(response.body))
        stream = _EventStream(response.events, request)
        return httpx2.Response(200, headers=_JSON, stream=stream)


class _EventStream(httpx2.AsyncByteStream):
    """The events of a watch, one JSON line each."""

    def __init__(self, events: AsyncIterator[dict[str, object]], request: httpx2.Request) -> None:
        self._events = events
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._events:
                yield encode(event) + b"\n"
        except ApiUnreachable as error:
            raise httpx2.ReadError(str(error), request=self._request) from error

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()
