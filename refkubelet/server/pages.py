"""What the kubelet's HTTP servers answer: pods, metrics, statistics, health.

Rules: SRV-002, SRV-010, MIRR-035. aiohttp is imported when pages are made; a kubelet
without servers does not need it.
Upstream: pkg/kubelet/server/server.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, to_dict
from simclock import RealClock

if TYPE_CHECKING:
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


def healthz_app() -> web.Application:
    """The app of the healthz port: /healthz and /healthz/ping answer `ok` while the process lives
    (SRV-002)."""
    from aiohttp import web

    app = web.Application()
    for path in ("/healthz", "/healthz/ping"):
        app.router.add_route("*", path, _text(lambda: "ok"))
    return app


def pods_app(callbacks: ServerCallbacks, *, debug_paths: bool) -> web.Application:
    """The app with /healthz, /pods, /metrics, /metrics/probes and /stats/summary. `debug_paths`:
    answer the paths of debug handlers with 405, as the read-only port does (SRV-010)."""
    from aiohttp import web

    async def pods(_: web.Request) -> web.Response:
        return web.json_response(pod_list(callbacks.pods()))

    async def summary(request: web.Request) -> web.Response:
        return await _summary(callbacks, request)

    async def sync_loop(_: web.Request) -> web.Response:
        problem = callbacks.unhealthy()
        if problem is None:
            return web.Response(text="ok")
        return web.Response(status=500, text=f"internal server error: {problem}")

    app = web.Application(middlewares=[_unexpected_errors()])
    app.router.add_get("/pods", pods)
    app.router.add_get("/pods/", pods)
    for method in ("GET", "POST"):
        app.router.add_route(method, "/stats/summary", summary)
    app.router.add_get("/metrics", _text(callbacks.metrics))
    app.router.add_get("/metrics/probes", _text(callbacks.probe_metrics))
    for path in ("/healthz/ping", "/healthz/log"):
        app.router.add_route("*", path, _text(lambda: "ok"))
    for path in ("/healthz", "/healthz/syncloop"):
        app.router.add_route("*", path, sync_loop)
    if debug_paths:
        disabled = _text(lambda: "Debug endpoints are disabled.", status=405)
        for path in _DEBUG_PATHS:
            app.router.add_route("*", path + "{rest:.*}", disabled)
    return app


def _text(read: Callable[[], str], status: int = 200) -> Any:
    """A handler that answers with a text, read at each request."""
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=read())

    return answer


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
