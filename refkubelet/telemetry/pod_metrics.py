"""What is counted of pods: their workers, starts, statuses and resizes.

Upstream: pkg/kubelet/metrics/metrics.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import CounterVec, GaugeVec, Group, HistogramVec, exponential

STARTS_S: Final = (
    *(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0),
    *(300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
"""Bounds of histograms of starts."""
STATUSES_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)
RESIZES_MS: Final = (
    *(10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 30000.0, 60000.0),
    *(120000.0, 300000.0, 600000.0),
)


class WorkerMetrics(Group):
    """Counted by the pod workers and their steps."""

    def __init__(self) -> None:
        self.duration = HistogramVec(
            "kubelet_pod_worker_duration_seconds",
            "From an update of a pod to the end of the step that took it.",
            "operation_type",
        )
        self.start_duration = HistogramVec(
            "kubelet_pod_worker_start_duration_seconds",
            "From when a pod was first seen to its first sync.",
        )
        self.containers_per_pod = HistogramVec(
            "kubelet_containers_per_pod_count",
            "Regular containers of pods that began to work.",
            bounds=exponential(1.0, 2.0, 5),
        )


class StartMetrics(Group):
    """How long pods take to start."""

    def __init__(self) -> None:
        self.running = HistogramVec(
            "kubelet_pod_start_duration_seconds",
            "From when a pod was first seen to the phase Running.",
            bounds=STARTS_S,
        )
        self.total = HistogramVec(
            "kubelet_pod_start_total_duration_seconds",
            "From the creation of a pod to when the API server told that its containers run.",
            bounds=STARTS_S,
            lazy=True,
        )
        self.sli = HistogramVec(
            "kubelet_pod_start_sli_duration_seconds",
            "The same without the time of pulls and init containers; of stateless pods.",
            bounds=STARTS_S,
            lazy=True,
        )
        self.first_network_pod = GaugeVec(
            "kubelet_first_network_pod_start_sli_duration_seconds",
            "The same of the first pod with a network of its own.",
        )


class StatusMetrics(Group):
    """Counted where statuses are kept and written."""

    def __init__(self) -> None:
        self.sync_duration = HistogramVec(
            "kubelet_pod_status_sync_duration_seconds",
            "From a change of a status to its arrival at the API server.",
            bounds=STATUSES_S,
        )
        self.terminated = CounterVec(
            "kubelet_terminated_containers_total",
            "Ends of containers.",
            *("container_type", "exit_code", "reason"),
        )


class ResizeMetrics(Group):
    """What becomes of resizes of pods that run."""

    def __init__(self) -> None:
        self.requested = CounterVec(
            "kubelet_container_requested_resizes_total",
            "Changes of the requests and limits of containers.",
            *("resource", "requirement", "operation"),
        )
        self.duration_ms = HistogramVec(
            "kubelet_pod_resize_duration_milliseconds",
            "How long it took to carry a resize out.",
            "success",
            bounds=RESIZES_MS,
        )
        self.infeasible = CounterVec(
            "kubelet_pod_infeasible_resizes_total", "Resizes that cannot be.", "reason_detail"
        )
        self.accepted = CounterVec(
            "kubelet_pod_deferred_accepted_resizes_total",
            "Deferred resizes that were accepted, by what made the kubelet try again.",
            "retry_trigger",
        )
