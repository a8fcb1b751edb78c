"""One port of the kubelet: its gate, its paths, their handlers. Any carrier may bring requests.

What must never happen here: a handler is reached past the gate; an error of a handler ends the
server, or shows more than its own words.
Rules: SRV-001, SRV-010, SRV-011, CFG-013.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.failures import Complaints
from refkubelet.server.access.gate import Gate
from refkubelet.server.common.exchange import Answer, Request, text
from refkubelet.server.common.health import all_checks
from refkubelet.server.common.host import ServerHost
from refkubelet.server.common.routes import (
    Route,
    Routes,
    healthz_routes,
    main_routes,
    read_only_routes,
)
from refkubelet.server.logs.container_logs import ContainerLogs
from refkubelet.server.pages.pages import Pages
from refkubelet.server.spans_of_requests import request_attributes, tell_status
from refkubelet.server.streams.commands import Commands
from refkubelet.server.system_logs import SystemLogs
from refkubelet.telemetry.server_metrics import HttpMetrics
from refkubelet.telemetry.spans import HTTP_SERVER, NO_SPANS, Spans
from simclock import Clock

log = logging.getLogger(__name__)
OTHER: Final = "other"
METHODS: Final = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
)
LONG_RUNNING: Final = frozenset(("exec", "attach", "portforward", "debug"))
"""Upstream's words; ports are forwarded at `portForward`, which is none of them."""
Handler = Callable[[Request, Route], Awaitable[Answer]]


class Port:
    """Answers requests. `gate` None: everybody may ask; `counted` None: nobody counts them."""

    def __init__(
        self,
        routes: Routes,
        handlers: Mapping[str, Handler],
        clock: Clock,
        gate: Gate | None = None,
        spans: Spans = NO_SPANS,
        counted: HttpMetrics | None = None,
    ) -> None:
        self._counted = counted
        self._clock = clock
        self._routes = routes
        self._handlers = handlers
        self._gate = gate
        self._spans = spans
        self._complaints = Complaints(log, clock)

    async def answer(self, request: Request) -> Answer:
        """The answer; never raises but when it is cancelled."""
        if self._counted is None:
            return await self._answered(request)
        labels = labels_of(request, self._routes, read_only=self._gate is None)
        counted = self._counted
        counted.requests.inc(*labels)
        counted.under_way.inc(*labels)
        try:
            with counted.duration.timed(self._clock, *labels):
                return await self._answered(request)
        finally:
            counted.under_way.inc(*labels, by=-1)

    async def _answered(self, request: Request) -> Answer:
        try:
            if self._gate is not None:
                refusal = await self._gate.refusal(request)
                if refusal is not None:
                    return refusal
            route = self._routes.find(request.method, request.path)
            if isinstance(route, Answer):
                return route
            about = request_attributes(request, route)
            with self._spans.span(route.template, about, scope=HTTP_SERVER, kind="server") as span:
                answer = await self._handled(request, route)
                tell_status(span, answer.status)
                return answer
        except Exception as problem:
            return self._failed(request, problem)

    async def _handled(self, request: Request, route: Route) -> Answer:
        try:
            return await self._handlers[route.handler](request, route)
        except Exception as problem:
            return self._failed(request, problem)

    def _failed(self, request: Request, problem: Exception) -> Answer:
        self._complaints.failed(f"answering {request.path[:200]!r}", problem)
        return text(f"Internal Error: {problem!r}", 500)


def labels_of(request: Request, routes: Routes, *, read_only: bool) -> tuple[str, str, str, str]:
    """What metrics tell of a request: method, first part of the path, which port, and whether it
    may last long; methods and paths that are not the kubelet's are `other` (SRV-038)."""
    parts = request.path.removeprefix("/").split("/", 2)
    root = "/".join(parts[:2]) if parts[0] == "metrics" else parts[0]
    path = root if root in routes.roots else OTHER
    method = request.method if request.method in METHODS else OTHER
    long_running = "true" if path in LONG_RUNNING else "false"
    return method, path, "readonly" if read_only else "readwrite", long_running


def main_port(config: KubeletConfiguration, host: ServerHost, gate: Gate) -> Port:
    """The main port, 10250."""
    routes = main_routes(config, tuple(host.checks))
    return Port(
        routes,
        handlers_of(host),
        clock=host.clock,
        gate=gate,
        spans=host.spans,
        counted=host.counted,
    )


def read_only_port(host: ServerHost) -> Port:
    """The port 10255: pods, metrics and statistics for everybody (SRV-010)."""
    routes = read_only_routes(tuple(host.checks))
    return Port(routes, handlers_of(host), clock=host.clock, spans=host.spans, counted=host.counted)


def healthz_port(clock: Clock) -> Port:
    """The port 10248: `ok` while the process lives (SRV-002)."""
    return Port(healthz_routes(), {"alive": _alive}, clock)


async def _alive(request: Request, route: Route) -> Answer:
    if request.path == "/healthz/ping":
        return text("ok")
    return all_checks({"ping": lambda: None}, request)


def handlers_of(host: ServerHost) -> dict[str, Handler]:
    """All handlers by the names that `routes` gives them."""
    pages, commands = Pages(host), Commands(host)
    return {
        "pods": pages.pods,
        "runningpods": pages.running_pods,
        "summary": pages.summary,
        "metrics": pages.metrics,
        "metrics/cadvisor": pages.cadvisor_metrics,
        "metrics/resource": pages.resource_metrics,
        "metrics/probes": pages.probe_metrics,
        "healthz": pages.healthz,
        "healthz/one": pages.healthz_one,
        "configz": pages.configz,
        "containerLogs": ContainerLogs(host).answer,
        "logs": SystemLogs(host).answer,
        "exec": commands.exec,
        "attach": commands.attach,
        "portForward": commands.port_forward,
        "run": commands.run,
        "checkpoint": commands.checkpoint,
    }
