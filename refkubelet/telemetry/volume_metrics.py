"""What is counted of volumes.

Upstream: pkg/volume/util/metrics.go; pkg/kubelet/metrics/metrics.go: OrphanPodCleanedVolumes.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import GaugeVec, Group, HistogramVec

OPERATIONS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0)


class VolumeMetrics(Group):
    """Operations on volumes, and volumes of pods that are gone."""

    def __init__(self) -> None:
        self.operations = HistogramVec(
            "storage_operation_duration_seconds",
            "How long it took to mount and unmount volumes.",
            *("volume_plugin", "operation_name", "status", "migrated"),
            bounds=OPERATIONS_S,
        )
        self.measuring = HistogramVec(
            "kubelet_volume_metric_collection_duration_seconds",
            "How long it took to measure a pod's volumes.",
            "metric_source",
        )
        self.orphans_cleaned = GaugeVec(
            "kubelet_orphan_pod_cleaned_volumes",
            "Directories of pods that are gone, at the last look.",
        )
        self.orphan_errors = GaugeVec(
            "kubelet_orphan_pod_cleaned_volumes_errors", "Those that could not be removed."
        )
