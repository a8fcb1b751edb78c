"""Spans of requests to the API server, and of those that the kubelet's ports answer (CFG-013)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")
import httpx2
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import PODS
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.paths import on_node
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.server.common.exchange import Answer, Request, text
from refkubelet.server.common.routes import Route, main_routes
from refkubelet.server.port import Port
from refkubelet.telemetry.otel import OtelSpans, sampler
from refkubelet.telemetry.spans import NO_SPANS
from simclock import RealClock, Rng

SERVER = "http://10.0.0.1:6443"


class Kept:
    def __init__(self) -> None:
        self.memory = InMemorySpanExporter()
        self.spans = OtelSpans(
            sampler(1_000_000),
            SimpleSpanProcessor(self.memory),
            host="n1",
            clock=RealClock(),
            rng=Rng(1),
        )

    def ended(self) -> tuple[ReadableSpan, ...]:
        return tuple(self.memory.get_finished_spans())


def told(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


class Server(httpx2.AsyncBaseTransport):
    """Answers each request with one status and keeps it."""

    def __init__(self, status: int = 200, body: Any = None, lines: bytes = b"") -> None:
        self.status = status
        self.content = lines or json.dumps(body or {}).encode()
        self.seen: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        if self.status == 0:
            raise httpx2.ConnectError("refused")
        return httpx2.Response(self.status, content=self.content)


def client(server: Server, kept: Kept) -> LightkubeApiClient:
    api = LightkubeApiClient.in_process(server, SERVER)
    api.trace(kept.spans)
    return api


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "1"},
}


async def test_a_request_to_the_api_server_has_a_span_that_the_server_is_told_CFG_013_8() -> None:
    kept, server = Kept(), Server(body=POD)
    await client(server, kept).get(PODS, "p", "default")
    (span,) = kept.ended()
    assert (span.name, span.kind.name) == ("HTTP GET", "CLIENT")
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name.endswith("/net/http/otelhttp")
    assert told(span) == {
        "http.request.method": "GET",
        "url.full": f"{SERVER}/api/v1/namespaces/default/pods/p",
        "server.address": "10.0.0.1",
        "server.port": 6443,
        "http.response.status_code": 200,
    }
    ids = f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
    assert ids in server.seen[0].headers["traceparent"]


@pytest.mark.parametrize(("status", "kind"), [(404, "404"), (0, "ConnectError")])
async def test_a_request_that_fails_is_a_failed_span_CFG_013_8(status: int, kind: str) -> None:
    kept = Kept()
    with pytest.raises(ApiError):
        await client(Server(status), kept).get(PODS, "p", "default")
    (span,) = kept.ended()
    assert span.status.status_code.name == "ERROR"
    assert told(span)["error.type"] == kind


async def test_the_span_of_a_watch_ends_when_the_watch_is_open_CFG_013_8() -> None:
    kept = Kept()
    line = json.dumps({"type": "ADDED", "object": POD}).encode()
    api = client(Server(lines=line + b"\n"), kept)
    async for _ in api.watch(PODS, "1", fields=on_node("n1")):
        (span,) = kept.ended()
        assert told(span)["http.response.status_code"] == 200
        with kept.spans.span("work"):
            pass
    watch, work = kept.ended()
    assert "watch=" in told(watch)["url.full"]
    assert work.parent is None


async def test_without_spans_nothing_stands_before_the_api_server() -> None:
    server = Server(body=POD)
    api = LightkubeApiClient.in_process(server, SERVER)
    wire = api.wire
    api.trace(NO_SPANS)
    assert api.wire is wire
    await api.get(PODS, "p", "default")
    assert "traceparent" not in server.seen[0].headers


async def answered(kept: Kept, path: str, answer: Answer | Exception) -> int:
    async def handler(request: Request, route: Route) -> Answer:
        if isinstance(answer, Exception):
            raise answer
        return answer

    routes = main_routes(KubeletConfiguration(), ("ping",))
    handlers = dict.fromkeys(
        ("pods", "containerLogs", "healthz", "logs", "summary", "runningpods"), handler
    )
    port = Port(routes, handlers, RealClock(), spans=kept.spans)
    asked = Request(path=path, headers={"user-agent": "curl/8"})
    return (await port.answer(asked)).status


@pytest.mark.parametrize(
    ("path", "name", "route"),
    [
        ("/pods", "/pods/", "/pods/"),
        ("/runningpods/", "/runningpods/", "/runningpods/"),
        ("/stats/summary", "/stats/summary", "/stats/summary"),
        ("/logs/", "/logs/", "/logs/"),
        ("/logs/a/b", "/logs/{logpath:*}", "/logs/{logpath:*}"),
        ("/healthz", "", "/healthz"),
        (
            "/containerLogs/default/p/c",
            "/containerLogs/{podNamespace}/{podID}/{containerName}",
            "/containerLogs/{podNamespace}/{podID}/{containerName}",
        ),
    ],
)
async def test_a_request_of_the_kubelet_is_named_by_its_route_CFG_013_9(
    path: str, name: str, route: str
) -> None:
    kept = Kept()
    with kept.spans.span("around"):
        assert await answered(kept, path, text("here")) == 200
    span, _ = kept.ended()
    assert (span.name, span.kind.name, span.parent) == (name, "SERVER", None)
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name.endswith("/otelrestful")
    assert told(span) == {
        "server.address": "kubelet",
        "http.request.method": "GET",
        "url.path": path,
        "http.route": route,
        "user_agent.original": "curl/8",
        "http.response.status_code": 200,
    }


@pytest.mark.parametrize(
    ("answer", "status", "ends"),
    [
        (text("away", 404), 404, "UNSET"),
        (text("broken", 500), 500, "ERROR"),
        (RuntimeError("broken"), 500, "ERROR"),
    ],
)
async def test_only_the_kubelets_own_faults_are_failed_spans_CFG_013_9(
    answer: Answer | Exception, status: int, ends: str
) -> None:
    kept = Kept()
    assert await answered(kept, "/pods", answer) == status
    (span,) = kept.ended()
    assert span.status.status_code.name == ends
    assert told(span)["http.response.status_code"] == status


async def test_what_has_no_route_has_no_span_CFG_013_9() -> None:
    kept = Kept()
    assert await answered(kept, "/nothing", text("here")) == 404
    assert kept.ended() == ()
