"""Writes docs/metrics.md: the kubelet's metrics, and which of them refkubelet shows.

`python tools/docs/render_metrics.py` reads results/metrics.json (kept by
tools/docs/keep_metrics.py) and the metrics that the code makes; a name that is not here needs a
reason in `WHY_NOT`, and one that is here must not have one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

from refkubelet.container_manager.devices.allocator import DeviceMetrics
from refkubelet.kuberuntime.images.plugins import PluginMetrics
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from refkubelet.telemetry.metrics import (
    Histograms,
    HistogramVec,
    HousekeepingMetrics,
    Metric,
    MetricsPage,
    Numbers,
    PlegMetrics,
)
from refkubelet.wiring.certificates import Certificates
from refkubelet.wiring.measured import log_numbers
from refkubelet.wiring.metrics_page import MeasuredParts, metrics_page

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "results" / "metrics.json"
PAGE: Final = ROOT / "docs" / "metrics.md"
MIXIN: Final = (
    *("kubelet_node_name", "kubelet_running_pods", "kubelet_evictions", "kubernetes_build_info"),
    *("kubelet_pleg_relist_duration_seconds", "kubelet_pod_worker_duration_seconds"),
    "kubelet_certificate_manager_client_ttl_seconds",
    "kubelet_certificate_manager_server_ttl_seconds",
    "kubelet_certificate_manager_client_expiration_renew_errors",
    "kubelet_server_expiration_renew_errors",
    *("kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"),
    *("kubelet_volume_stats_used_bytes", "kubelet_volume_stats_inodes"),
    *("kubelet_volume_stats_inodes_free", "kubelet_volume_stats_inodes_used"),
    "rest_client_requests_total",
)
"""What rules and alerts of kubernetes-mixin (August 2026) ask for, of what a kubelet shows."""
WINDOWS: Final = "of Windows nodes"
GO: Final = "of the Go program and its libraries"
ALPHA: Final = "of an alpha feature that is not here"
NO_CLAIMS: Final = "there are no drivers for resource claims (LIFE-130)"
RECONSTRUCTED: Final = "volumes are not made up again from what is mounted; they are mounted anew"
WHY_NOT: Final[Mapping[str, str]] = {
    "kubelet_imagemanager_inmemory_pulledrecords_usage_percent": "pull records have no bound",
    "kubelet_imagemanager_inmemory_pullintents_usage_percent": "pull records have no bound",
    "kubelet_podcertificate_states": "pods get no certificates of their own (gate off by default)",
    "kubelet_pod_watch_events_dropped_total": "the Pods API is not served (alpha, SRV-010)",
    "kubelet_started_host_process_containers_total": WINDOWS,
    "kubelet_started_host_process_containers_errors_total": WINDOWS,
    "kubelet_volume_stats_health_status_abnormal": "drivers are not asked how a volume is (alpha)",
    "csi_operations_seconds": "calls of drivers are not timed",
    "disabled_metrics_total": "no metric can be switched off",
    "dra_grpc_operations_duration_seconds": NO_CLAIMS,
    "dra_operations_duration_seconds": NO_CLAIMS,
    "dra_resource_claims_in_use": NO_CLAIMS,
    "force_cleaned_failed_volume_operation_errors_total": RECONSTRUCTED,
    "force_cleaned_failed_volume_operations_total": RECONSTRUCTED,
    "hidden_metrics_total": "no metric is hidden",
    "kubernetes_feature_enabled": "the table of gates has those only that something asks for",
    "plugin_manager_total_plugins": "the plug-in manager does not tell its two states",
    "process_network_receive_bytes_total": "the Prometheus library for Python does not read it",
    "process_network_transmit_bytes_total": "the Prometheus library for Python does not read it",
    "process_virtual_memory_max_bytes": "the Prometheus library for Python does not read it",
    "reconstruct_volume_operations_errors_total": RECONSTRUCTED,
    "reconstruct_volume_operations_total": RECONSTRUCTED,
    "registered_metrics_total": GO,
    "storage_operation_duration_seconds": "a pod's volumes are made together, not one by one",
    "volume_manager_total_volumes": "there is no second state of volumes that could be compared",
    "volume_operation_total_seconds": "a pod's volumes are made together, not one by one",
    "running_managed_controllers": GO,
    "version_info": GO,
}
OF_LIBRARIES: Final = (
    *("informer_", "leader_election_", "rest_client_", "volume_manager_selinux_", "workqueue_"),
)
"""Beginnings of names that are here only where one of them is made all the same."""
OF_THE_PROCESS: Final = (
    *("process_cpu_seconds_total", "process_max_fds", "process_open_fds"),
    *("process_resident_memory_bytes", "process_start_time_seconds"),
    "process_virtual_memory_bytes",
)
Row = Mapping[str, Any]


def page_with_everything() -> MetricsPage:
    """The page of a kubelet that has all parts. It can be asked for names only."""
    certificates = Certificates(MagicMock(), MagicMock(), MagicMock())
    parts = MagicMock(
        spec=MeasuredParts,
        counted=KubeletMetrics(),
        certificates=certificates,
        devices=DeviceMetrics(),
        login_plugins=PluginMetrics(),
    )
    parts.pleg.metrics = PlegMetrics()
    parts.housekeeping.metrics = HousekeepingMetrics()
    return metrics_page(parts)


def here() -> dict[str, Row]:
    """The metrics of refkubelet: name -> type, labels, bounds of a histogram."""
    found = {metric.name: _row(metric) for metric in page_with_everything().metrics}
    found[log_numbers.NAME] = {"type": "gauge", "labels": sorted(log_numbers.LABELS)}
    return found


def _row(metric: Metric) -> Row:
    if isinstance(metric, HistogramVec):
        bounds = list(metric.bounds)
        return {"type": "histogram", "labels": sorted(metric.labels), "bounds": bounds}
    if isinstance(metric, Histograms):
        return {"type": "histogram", "labels": sorted(metric.labels)}
    assert isinstance(metric, Numbers) or hasattr(metric, "labels")
    return {"type": metric.kind, "labels": sorted(metric.labels)}


def theirs() -> dict[str, Row]:
    """The kubelet's metrics, from results/metrics.json."""
    data = json.loads(KEPT.read_text(encoding="utf-8"))
    metrics: dict[str, Row] = data["metrics"]
    return metrics


def why_not(name: str) -> str:
    """Why a metric is not here; "": nobody has said it."""
    return WHY_NOT.get(name) or (GO if name.startswith(OF_LIBRARIES) else "")


def lines() -> Iterator[str]:
    """The page."""
    data = json.loads(KEPT.read_text(encoding="utf-8"))
    own, all_of_them = here(), theirs()
    kubelets = [name for name in all_of_them if name.startswith("kubelet_")]
    there = [name for name in kubelets if name in own]
    seen = [name for name in kubelets if all_of_them[name]["first"]]
    seen_here = [name for name in seen if name in own]
    yield "# Metrics"
    yield ""
    yield (
        f"What kubelet {data['kubelet']} shows at /metrics, and what refkubelet does, with the "
        f"same labels, types and bounds of histograms: {len(there)} of the {len(kubelets)} names "
        f"that begin with `kubelet_`, {len(seen_here)} of the {len(seen)} that a kubelet shows "
        "which has run two pods. Names of the Go program (`go_*`) and of the API machinery's "
        "server are left out. In bold: what the rules and alerts of kubernetes-mixin ask for."
    )
    yield ""
    yield (
        "A metric without labels is there from the start, one with labels once there is something "
        "to count (SRV-036). `first`: the page on which the kubelet shows it: of a node without "
        "pods, with pods, after the end of one; where there is none, it needs something else to "
        "happen."
    )
    yield ""
    yield "This page is made by tools/docs/render_metrics.py; tools/docs/keep_metrics.py records"
    yield "the kubelet."
    yield ""
    yield "| name | type | labels | first | here |"
    yield "|---|---|---|---|---|"
    for name, row in all_of_them.items():
        shown = f"**{name}**" if name in MIXIN else name
        is_here = name in own or name in OF_THE_PROCESS
        told = "yes" if is_here else f"no: {why_not(name)}"
        labels = ", ".join(row["labels"])
        yield f"| {shown} | {row['type']} | {labels} | {row['first'] or ''} | {told} |"


if __name__ == "__main__":
    PAGE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
