"""What is counted of the runtime: its calls, pods and containers that are started, images, hooks.

Upstream: pkg/kubelet/metrics/metrics.go; pkg/kubelet/images/metrics.go, pullmanager/metrics.go;
pkg/credentialprovider/plugin/metrics.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import (
    CounterVec,
    GaugeVec,
    Group,
    HistogramVec,
    Numbers,
    exponential,
)

OPERATIONS_S: Final = exponential(0.005, 2.5, 14)
PULLS_S: Final = (
    *(1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0),
    *(1200.0, 1800.0, 2700.0, 3600.0),
)
MIB: Final = 1024**2
GIB: Final = 1024**3
SIZES: Final = (
    (0, "0-10MB"),
    (10 * MIB, "10MB-100MB"),
    (100 * MIB, "100MB-500MB"),
    (500 * MIB, "500MB-1GB"),
    (GIB, "1GB-5GB"),
    (5 * GIB, "5GB-10GB"),
    (10 * GIB, "10GB-20GB"),
    (20 * GIB, "20GB-30GB"),
    (30 * GIB, "30GB-40GB"),
    (40 * GIB, "40GB-60GB"),
    (60 * GIB, "60GB-100GB"),
    (100 * GIB, "GT100GB"),
)
"""Sizes of images in bytes, and the label of those that are larger."""


def size_label(size_bytes: int) -> str:
    """The label of an image's size.

    >>> [size_label(size) for size in (0, 1, 10 * MIB, 10 * MIB + 1, 200 * GIB)]
    ['N/A', '0-10MB', '0-10MB', '10MB-100MB', 'GT100GB']
    """
    labels = [label for above, label in SIZES if size_bytes > above]
    return labels[-1] if labels else "N/A"


class OperationMetrics(Group):
    """Counted by the client of the runtime, by upstream's names of the calls."""

    def __init__(self) -> None:
        duration = HistogramVec(
            "kubelet_runtime_operations_duration_seconds",
            "How long calls of the runtime took.",
            "operation_type",
            bounds=OPERATIONS_S,
        )
        self.total = Numbers(
            name="kubelet_runtime_operations_total",
            help="Calls of the runtime.",
            read=duration.counts,
            labels=duration.labels,
            kind="counter",
        )
        self.duration = duration
        self.errors = CounterVec(
            "kubelet_runtime_operations_errors_total",
            "Calls of the runtime that failed.",
            "operation_type",
        )
        self.sandbox_duration = HistogramVec(
            "kubelet_run_podsandbox_duration_seconds",
            "How long it took to run a sandbox.",
            "runtime_handler",
        )
        self.sandbox_errors = CounterVec(
            "kubelet_run_podsandbox_errors_total",
            "Sandboxes that could not be run.",
            "runtime_handler",
        )


class StartedMetrics(Group):
    """Pods and containers that were started, and what else a start does."""

    def __init__(self) -> None:
        self.pods = CounterVec("kubelet_started_pods_total", "Sandboxes that were begun.")
        self.pod_errors = CounterVec(
            "kubelet_started_pods_errors_total", "Sandboxes that could not be made."
        )
        self.containers = CounterVec(
            "kubelet_started_containers_total",
            "Containers whose start was begun.",
            "container_type",
        )
        self.container_errors = CounterVec(
            "kubelet_started_containers_errors_total",
            "Containers that could not be started, by the reason that their status tells.",
            *("container_type", "code"),
        )
        self.user_namespaced = CounterVec(
            "kubelet_started_user_namespaced_pods_total", "Pods with user namespaces."
        )
        self.user_namespaced_errors = CounterVec(
            "kubelet_started_user_namespaced_pods_errors_total",
            "Syncs of such pods that made a sandbox and failed.",
        )
        self.image_volumes = CounterVec(
            "kubelet_image_volume_requested_total", "Image volumes that containers asked for."
        )
        self.image_volumes_mounted = CounterVec(
            "kubelet_image_volume_mounted_succeed_total", "Image volumes that were mounted."
        )
        self.image_volumes_failed = CounterVec(
            "kubelet_image_volume_mounted_errors_total", "Image volumes that were not mounted."
        )
        self.http_fallbacks = CounterVec(
            "kubelet_lifecycle_handler_http_fallbacks_total",
            "Hooks whose server answered HTTPS with plain HTTP, and then answered that.",
        )
        self.sleeps_cut_short = CounterVec(
            "kubelet_sleep_action_terminated_early_total", "Hooks that slept and were ended early."
        )


class ImageMetrics(Group):
    """Counted by the image manager."""

    def __init__(self) -> None:
        self.requests = CounterVec(
            "kubelet_image_manager_ensure_image_requests_total",
            "Images that containers and volumes needed.",
            *("pull_policy", "present_locally", "pull_required"),
        )
        self.pull_duration = HistogramVec(
            "kubelet_image_pull_duration_seconds",
            "How long pulls took, by the size of the image.",
            "image_size_in_bytes",
            bounds=PULLS_S,
        )
        self.checks = CounterVec(
            "kubelet_imagemanager_image_mustpull_checks_total",
            "How often it was asked whether a pod may use an image that is there.",
            "result",
        )
        self.intents = GaugeVec(
            "kubelet_imagemanager_ondisk_pullintents", "Pulls that are noted as under way."
        )
        self.records = GaugeVec(
            "kubelet_imagemanager_ondisk_pulledrecords", "Images whose pulls are noted."
        )
