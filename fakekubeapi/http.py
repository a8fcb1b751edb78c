"""The fake API server on a TCP port, for clients in other processes (real time only).

Plain HTTP or TLS, no authentication: bind it to a loopback address. With TLS a client may show a
certificate, which says who it is. Clients may speak JSON, YAML or protobuf, which is what kubelets
speak unless they are told otherwise.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from fakekubeapi.access import User
from fakekubeapi.answers import Format, formats
from fakekubeapi.api import FakeApi
from fakekubeapi.asked import Asked
from fakekubeapi.bodies import JSON
from fakekubeapi.errors import NOT_HERE, ApiUnreachable, StatusError
from fakekubeapi.kubelets.paths import passed_on
from fakekubeapi.kubelets.relay import Relay
from fakekubeapi.negotiation import format_of_refusals, negotiated
from fakekubeapi.requests.accept import AS_IS
from fakekubeapi.requests.parameters import include_object
from fakekubeapi.resources.printers import to_partial, to_table
from fakekubeapi.verbs.dispatch import Response
from simclock import RealClock

_WITH_BODY: Final = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")
COMPACT_PATH: Final = "/fakekubeapi/compact"
"""A POST here is `FakeApi.compact`: watches from older versions get 410 Expired."""
OPENAPI_V2: Final = "/openapi/v2"
_MAX_BODY_BYTES: Final = 3 * 1024 * 1024
_SHUTDOWN_S: Final = 0.5
log = logging.getLogger("fakekubeapi.requests")
"""What clients asked, at level INFO."""


class HttpServer(Struct, frozen=True):
    """A running server. As an async context manager it is closed at the end of the block."""

    url: str
    """Where it listens, as a kubeconfig needs it: `http://HOST:PORT`, with TLS `https://`."""
    _runner: web.AppRunner

    async def close(self) -> None:
        """Stop listening and end every open watch."""
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class _Refusal(web.Response):
    """An answer that is a `metav1.Status`. `why`: its message, in one line."""

    def __init__(self, status_object: dict[str, Any], form: Format, status: int) -> None:
        body = form.encode(status_object)
        super().__init__(status=status, body=body, content_type=form.content_type)
        self.why = " ".join(status_object.get("message", "").split())


class RequestLog(AbstractAccessLogger):
    """A line for each request: what was asked, the status of the answer, and why it was refused."""

    @property
    def enabled(self) -> bool:
        """Whether anybody reads it."""
        return self.logger.isEnabledFor(logging.INFO)

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        """Tell of a request that was answered, or was a watch and has ended."""
        why = f": {response.why}" if isinstance(response, _Refusal) else ""
        asked = f"{request.method} {request.path_qs}"
        self.logger.info("%s -> %d%s (%.3f s)", asked, response.status, why, time)


async def serve(
    api: FakeApi,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: ssl.SSLContext | None = None,
) -> HttpServer:
    """Serve `api` on `host`:`port` (0: a free port) until the returned server is closed. `tls`: how
    to speak TLS; None: plain HTTP. A certificate that the context has verified names the client:
    its common name is the user, its organizations are the groups.

    Raises: OSError when the address cannot be bound.
    """

    relay = Relay(api.kubelets)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _handle(api, relay, request)

    async def close(_: web.Application) -> None:
        await relay.close()

    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    app.router.add_route("*", "/{path:.*}", handle)
    app.on_cleanup.append(close)
    # handler_cancellation: else the watch of a client that has gone would stay open for ever.
    # auto_decompress: as in a kube-apiserver, Content-Encoding is ignored; bodies are read as sent.
    runner = web.AppRunner(
        app,
        access_log=log,
        access_log_class=RequestLog,
        auto_decompress=False,
        handler_cancellation=True,
        lingering_time=_SHUTDOWN_S,
        shutdown_timeout=_SHUTDOWN_S,
        logger=_log_of_requests(),
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    bound = runner.addresses[0][1]
    host_text = f"[{host}]" if ":" in host else host
    scheme = "https" if tls is not None else "http"
    return HttpServer(f"{scheme}://{host_text}:{bound}", runner)


def _log_of_requests() -> logging.Logger:
    """aiohttp's logger for request errors, without those of clients that do not speak HTTP: they
    get 400, and that is no news."""
    http = logging.getLogger(__name__)
    http.filters[:] = [_is_ours]
    return http


def _is_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def _handle(api: FakeApi, relay: Relay, request: web.Request) -> web.StreamResponse:
    if request.path in _HEALTH_PATHS:
        return web.Response(text="ok")
    if (request.method, request.path) == ("POST", COMPACT_PATH):
        api.compact()
        return web.Response(text="ok")
    reads = request.method in _WITH_BODY  # the body of a GET is ignored, whatever its headers say
    passed = passed_on(request.rel_url.raw_path)
    try:
        if passed is not None:
            query = tuple(request.query.items())
            place = await api.place_of(request.method, request.path, passed, query)
            return await relay.carry(request, passed, place)
        call = Asked(
            request.method,
            request.path,
            params=dict(request.query),
            content_type=request.headers.get("Content-Type", JSON),
            user=_owner(request) or api.client_of(request.headers.get("Authorization", "")),
            user_agent=request.headers.get("User-Agent", ""),
            schema=api.schema,
        )
        accept = negotiated(call, request.headers.get("Accept", ""))
        shape, form = _shape(call, accept.form), formats(api.schema)[accept.format]
        content = (await request.read() or None) if reads else None
        response = await api.exchange(call.with_body(content))
        reshape = shape if response.ok else _unchanged
        if response.events is not None:
            return await _stream(request, response, reshape, form)
        if not response.ok:
            return _Refusal(response.body, form, response.status)
        body = form.encode(shape(response.body))
        return web.Response(status=response.status, body=body, content_type=form.content_type)
    except ApiUnreachable:
        return _cut(request)
    except StatusError as error:
        return _refused(api, request, error)
    except web.HTTPRequestEntityTooLarge:
        text = f"Request entity too large: limit is {_MAX_BODY_BYTES}"
        return _refused(api, request, StatusError(413, text))


def _owner(request: web.Request) -> User | None:
    """Whom the client's certificate names; None: it has shown none."""
    peer = request.transport.get_extra_info("peercert") if request.transport is not None else None
    if not peer:
        return None
    subject_pairs = [pair for part in peer["subject"] for pair in part]
    groups = tuple(value for key, value in subject_pairs if key == "organizationName")
    name = next((value for key, value in subject_pairs if key == "commonName"), "")
    return User(name, groups=(*groups, "system:authenticated"))


def _refused(api: FakeApi, request: web.Request, error: StatusError) -> web.Response:
    if (request.path, error.code) == (OPENAPI_V2, 406):
        # kubectl looks here for the types of kinds that it has not found elsewhere, and shows text.
        return web.Response(status=406, text=f"fakekubeapi does not have this kind: {NOT_HERE}")
    chosen = format_of_refusals(request.headers.get("Accept", ""))
    return _Refusal(error.body(), formats(api.schema)[chosen.format], error.code)


def _shape(asked: Asked, form: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The function that turns what is answered into the form the client wants: the objects as they
    are, their metadata alone, or a Table (for `kubectl get`)."""
    if form == AS_IS:
        return _unchanged
    resource = asked.route.resource

    def shown(found: dict[str, Any]) -> dict[str, Any]:
        if found.get("kind") == "Status":
            return found
        if form != "Table":
            return to_partial(resource, found)
        return to_table(resource, found, RealClock().now(), include_object(asked.params))

    return shown


def _unchanged(found: dict[str, Any]) -> dict[str, Any]:
    return found


async def _stream(
    request: web.Request,
    response: Response,
    shown: Callable[[dict[str, Any]], dict[str, Any]],
    written: Format,
) -> web.StreamResponse:
    """Send the events of a watch; `shown` gives the form of their objects. Of tables the first
    alone names its columns."""
    headed = False
    answer = web.StreamResponse(headers={"Content-Type": written.stream_type})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    if response.events is not None:
        async for event in response.events:
            if event["type"] not in ("ERROR", "BOOKMARK"):
                event = {**event, "object": shown(event["object"])}
                if headed and "columnDefinitions" in event["object"]:
                    event["object"]["columnDefinitions"] = None
                headed = True
            await answer.write(written.encode_event(event))
    return answer


def _cut(request: web.Request) -> web.StreamResponse:
    """Break the connection without an answer, as a dead server would."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)
