"""What is counted of the kubelet's servers, and of its requests to the API server.

Upstream: pkg/kubelet/server/metrics/metrics.go; pkg/kubelet/metrics/metrics.go;
staging/src/k8s.io/component-base/metrics/prometheus/restclient/metrics.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import CounterVec, GaugeVec, Group, HistogramVec

OF_REQUEST: Final = ("method", "path", "server_type", "long_running")
REQUESTS_S: Final = (*(0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0),)


class HttpMetrics(Group):
    """Counted by the ports of the kubelet."""

    def __init__(self) -> None:
        self.requests = CounterVec(
            "kubelet_http_requests_total", "Requests to the kubelet.", *OF_REQUEST
        )
        self.duration = HistogramVec(
            "kubelet_http_requests_duration_seconds", "How long they took.", *OF_REQUEST
        )
        self.under_way = GaugeVec(
            "kubelet_http_inflight_requests", "Requests that are not answered yet.", *OF_REQUEST
        )
        self.websockets = CounterVec(
            "kubelet_websocket_streaming_requests_total",
            "Commands and ports by WebSocket.",
            "subresource",
        )


class PodResourcesMetrics(Group):
    """Counted by the socket of the pod-resources API."""

    def __init__(self) -> None:
        name, version = "kubelet_pod_resources_endpoint_{}", "server_api_version"
        self.total = CounterVec(name.format("requests_total"), "Calls in all.", version)
        self.calls = {
            method: CounterVec(name.format(f"requests_{method}"), "Calls.", version)
            for method in ("list", "get_allocatable", "get")
        }
        self.errors = {
            method: CounterVec(name.format(f"errors_{method}"), "Calls that failed.", version)
            for method in ("list", "get_allocatable", "get")
        }


class RequestMetrics(Group):
    """Counted where requests leave for the API server."""

    def __init__(self) -> None:
        self.total = CounterVec(
            "rest_client_requests_total",
            "Requests to the API server.",
            *("code", "method", "host"),
        )
        self.duration = HistogramVec(
            "rest_client_request_duration_seconds",
            "How long they took.",
            *("verb", "host"),
            bounds=REQUESTS_S,
        )
