"""The kubelet's HTTP servers: the main port, the read-only port, healthz.

Rules: SRV-001, SRV-002, SRV-010 (read-only port). The main port uses TLS if the configuration names
a certificate and key, else plain HTTP (upstream makes a self-signed pair). It does not authenticate
yet, so it listens only on loopback addresses, unless it is told to be insecure (SRV-011). `start`
binds all ports, so a port in use is an error before anything runs. What must never happen: pod
specs are served to a network without the administrator's consent. aiohttp is imported when a server
starts; a kubelet without servers does not need it.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, to_dict
from simtime import RealClock

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

log = logging.getLogger(__name__)

_DEBUG_PATHS: Final = (
    "/run/",
    "/exec/",
    "/attach/",
    "/portForward/",
    "/containerLogs/",
    "/runningpods/",
    "/debug/pprof/",
    "/logs/",
)


class ServerError(Exception):
    """A server cannot be started; the text names the field, the address and the reason."""


class Summary(Protocol):
    """Makes the answer of /stats/summary, complete or with CPU and memory only."""

    async def __call__(self, *, only_cpu_and_memory: bool = False) -> dict[str, Any]: ...


def _no_metrics() -> str:
    return ""


async def _no_summary(*, only_cpu_and_memory: bool = False) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class ServerCallbacks:
    """Where the servers get their answers."""

    pods: Callable[[], Sequence[Pod]]
    """The pods with their current statuses, without mirrors (MIRR-035)."""
    unhealthy: Callable[[], str | None] = lambda: None
    """Why the sync loop is not healthy; None: it is."""
    metrics: Callable[[], str] = _no_metrics
    """/metrics, in the Prometheus text format."""
    probe_metrics: Callable[[], str] = _no_metrics
    """/metrics/probes, in the Prometheus text format."""
    summary: Summary = _no_summary
    """Statistics of the node and its pods."""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One listening server of the configuration."""

    field: str
    host: str
    port: int
    app: web.Application
    tls: ssl.SSLContext | None = None


def check_servers(config: KubeletConfiguration, *, insecure: bool) -> None:
    """Raise `ServerError` for a main port that every client of the network could read (SRV-011)."""
    if not config.enable_server or insecure or is_loopback(config.address):
        return
    raise ServerError(
        f"port: refkubelet does not authenticate yet, so every client that reaches "
        f"{config.address}:{config.port} could read all pods with their variables, whatever the "
        "fields authentication and authorization say\n"
        "  set address: 127.0.0.1 (or enableServer: false) in the configuration, or give "
        "--insecure-server to listen there all the same"
    )


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address; False for every host name."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


class KubeletServers:
    """Starts and stops the configured servers. `insecure`: the main port may listen beyond loopback
    although it does not authenticate."""

    def __init__(
        self, config: KubeletConfiguration, callbacks: ServerCallbacks, *, insecure: bool = False
    ) -> None:
        self._config = config
        self._callbacks = callbacks
        self._insecure = insecure
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        """Listen on all configured ports. If one cannot be bound, close all and raise
        `ServerError`."""
        check_servers(self._config, insecure=self._insecure)
        try:
            for endpoint in self._endpoints():
                await self._listen(endpoint)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close all servers that are open."""
        while self._runners:
            await self._runners.pop().cleanup()

    def _endpoints(self) -> list[_Endpoint]:
        c = self._config
        found = []
        if c.enable_server:
            app = pods_app(self._callbacks, debug_paths=False)
            found.append(
                _Endpoint(field="port", host=c.address, port=c.port, app=app, tls=self._tls())
            )
        if c.read_only_port:
            app = pods_app(self._callbacks, debug_paths=True)
            found.append(_Endpoint("readOnlyPort", c.address, c.read_only_port, app))
        if c.healthz_port:
            host = c.healthz_bind_address
            found.append(_Endpoint("healthzPort", host, c.healthz_port, healthz_app()))
        return found

    def _tls(self) -> ssl.SSLContext | None:
        c = self._config
        if not c.tls_cert_file:
            return None
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(c.tls_cert_file, c.tls_private_key_file)
        except (OSError, ssl.SSLError) as e:
            files = f"tlsCertFile {c.tls_cert_file}, tlsPrivateKeyFile {c.tls_private_key_file}"
            raise ServerError(f"{files}: cannot be used: {e.strerror or e}") from None
        return context

    async def _listen(self, endpoint: _Endpoint) -> None:
        """Bind the port and serve. Raises `ServerError`."""
        from aiohttp import web

        runner = web.AppRunner(
            endpoint.app, access_log=None, shutdown_timeout=1.0, logger=_log_of_requests()
        )
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, endpoint.host, endpoint.port, ssl_context=endpoint.tls)
        try:
            await site.start()
        except OSError as e:
            raise ServerError(_why_not(endpoint, e)) from None
        log.info("%s: serving on %s:%d", endpoint.field, endpoint.host, endpoint.port)
        if endpoint.field == "port" and not is_loopback(endpoint.host):
            log.warning(
                "port: every client that reaches %s:%d can read all pods with their variables "
                "(--insecure-server)",
                endpoint.host,
                endpoint.port,
            )


def _log_of_requests() -> logging.Logger:
    """A logger without the errors of malformed requests, with which any client could fill the log;
    the clients get answers."""
    from aiohttp.http_exceptions import HttpProcessingError

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)

    http = logging.getLogger(f"{__name__}.http")
    http.filters[:] = [is_ours]
    return http


def _why_not(endpoint: _Endpoint, error: OSError) -> str:
    place = f"{endpoint.field}: cannot listen on {endpoint.host}:{endpoint.port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{place}: the address is in use, perhaps by another kubelet; "
            f"stop it or set another {endpoint.field}"
        )
    if error.errno == errno.EACCES:
        return f"{place}: permission denied; ports below 1024 need privileges"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{place}: no interface of this machine has that address"
    return f"{place}: {error.strerror or error}"


def healthz_app() -> web.Application:
    """The app of the healthz port: /healthz and /healthz/ping answer `ok` while the process lives
    (SRV-002)."""
    from aiohttp import web

    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    for path in ("/healthz", "/healthz/ping"):
        app.router.add_route("*", path, ok)
    return app


def pods_app(callbacks: ServerCallbacks, *, debug_paths: bool) -> web.Application:
    """The app with /healthz, /pods, /metrics, /metrics/probes and /stats/summary. `debug_paths`:
    answer the paths of debug handlers with 405, as the read-only port does (SRV-010)."""
    from aiohttp import web

    async def pods(_: web.Request) -> web.Response:
        return web.json_response(pod_list(callbacks.pods()))

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=callbacks.metrics())

    async def probe_metrics(_: web.Request) -> web.Response:
        return web.Response(text=callbacks.probe_metrics())

    async def summary(request: web.Request) -> web.Response:
        return await _summary(callbacks, request)

    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def sync_loop(_: web.Request) -> web.Response:
        problem = callbacks.unhealthy()
        if problem is None:
            return web.Response(text="ok")
        return web.Response(status=500, text=f"internal server error: {problem}")

    async def disabled(_: web.Request) -> web.Response:
        return web.Response(status=405, text="Debug endpoints are disabled.")

    app = web.Application(middlewares=[_unexpected_errors()])
    app.router.add_get("/pods", pods)
    app.router.add_get("/pods/", pods)
    for method in ("GET", "POST"):
        app.router.add_route(method, "/stats/summary", summary)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/metrics/probes", probe_metrics)
    for path in ("/healthz/ping", "/healthz/log"):
        app.router.add_route("*", path, ok)
    for path in ("/healthz", "/healthz/syncloop"):
        app.router.add_route("*", path, sync_loop)
    if debug_paths:
        for path in _DEBUG_PATHS:
            app.router.add_route("*", path + "{rest:.*}", disabled)
    return app


def _unexpected_errors() -> Any:
    """A middleware for handlers that fail unexpectedly: the client gets status 500, and the error
    is logged once and then once a minute."""
    from aiohttp import web

    complaints = Complaints(log, RealClock())

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> Any:
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except Exception as error:
            complaints.failed(f"answering {request.path}", error)
            return web.Response(status=500, text=f"Internal Error: {error!r}")

    return guard


async def _summary(callbacks: ServerCallbacks, request: web.Request) -> web.Response:
    from aiohttp import web

    short = request.query.get("only_cpu_and_memory") == "true"
    try:
        answer = await callbacks.summary(only_cpu_and_memory=short)
    except Exception as error:
        log.warning("cannot make /stats/summary: %s", error)
        return web.Response(status=500, text=f"Internal Error: {error}")
    return web.json_response(answer)


def pod_list(pods: Sequence[Pod]) -> dict[str, object]:
    """A v1 PodList as JSON; as in upstream the items have no kind and apiVersion."""
    items = []
    for pod in pods:
        item = to_dict(pod)
        item.pop("kind", None)
        item.pop("apiVersion", None)
        items.append(item)
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
