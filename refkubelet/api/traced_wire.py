"""Requests to the API server with a span each, named `HTTP GET` and its like (CFG-013.8).

The span of a watch ends when the watch is open, so that nothing its reader does is below it.
Upstream: otelhttp's transport, put around the client in cmd/kubelet/app/server.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from urllib.parse import urlencode, urlsplit

from refkubelet.api.wire import Wire
from refkubelet.telemetry.spans import HTTP_CLIENT, NO_ATTRIBUTES, Attributes, Span, Spans

STATUS_CODE = "http.response.status_code"


class TracedWire:
    """A `Wire` over another one. `server`: the URL that its paths are below."""

    def __init__(self, behind: Wire, server: str, spans: Spans) -> None:
        self._behind = behind
        self._server = server
        self._spans = spans

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        """As the one behind, in a span."""
        with self._span(method, path, params) as span:
            status, body = await self._behind.request(
                method, path, params=params, content=content, content_type=content_type
            )
            _answered(span, status)
        return status, body

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, bytes, AsyncIterator[bytes]]]:
        """As the one behind; the opening is in a span."""
        async with AsyncExitStack() as stack:
            with self._span("GET", path, params) as span:
                opened = await stack.enter_async_context(self._behind.watch(path, params))
                _answered(span, opened[0])
            yield opened

    async def aclose(self) -> None:
        """As the one behind."""
        await self._behind.aclose()

    @contextmanager
    def _span(self, method: str, path: str, params: Mapping[str, str] | None) -> Iterator[Span]:
        about = request_attributes(method, self._server, path, params or {})
        with self._spans.span(f"HTTP {method}", about, scope=HTTP_CLIENT, kind="client") as span:
            try:
                yield span
            except Exception as error:
                span.set("error.type", type(error).__name__)
                span.failed(str(error))
                raise


def request_attributes(
    method: str, server: str, path: str, params: Mapping[str, str]
) -> Attributes:
    """What a span tells of its request.

    >>> request_attributes("GET", "https://10.0.0.1:6443", "/api", {"watch": "1"})["url.full"]
    'https://10.0.0.1:6443/api?watch=1'
    """
    query = f"?{urlencode(params)}" if params else ""
    place = urlsplit(server)
    port: Attributes = {"server.port": place.port} if place.port else NO_ATTRIBUTES
    return {
        "http.request.method": method,
        "url.full": f"{server.rstrip('/')}{path}{query}",
        "server.address": place.hostname or "",
        **port,
    }


def _answered(span: Span, status: int) -> None:
    span.set(STATUS_CODE, status)
    if status >= 400:
        span.set("error.type", str(status))
        span.failed("")
