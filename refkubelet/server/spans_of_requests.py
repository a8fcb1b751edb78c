"""What the span of a request to the kubelet tells (CFG-013.9).

The server is always called `kubelet`. Upstream: otelrestful's filter, put in by
pkg/kubelet/server/server.go: InstallTracingFilter.
"""

from __future__ import annotations

from refkubelet.server.common.exchange import Request
from refkubelet.server.common.routes import Route
from refkubelet.telemetry.spans import NO_ATTRIBUTES, Attributes, Span


def request_attributes(request: Request, route: Route) -> Attributes:
    """Method, path, route, and the client's name for itself."""
    agent = request.headers.get("user-agent")
    named: Attributes = {"user_agent.original": agent} if agent else NO_ATTRIBUTES
    return {
        "server.address": "kubelet",
        "http.request.method": request.method,
        "url.path": request.path,
        "http.route": route.template or request.path,
        **named,
    }


def tell_status(span: Span, status: int) -> None:
    """A fault of the kubelet makes the span a failure; one of the client does not."""
    span.set("http.response.status_code", status)
    if status >= 500:
        span.failed("")
