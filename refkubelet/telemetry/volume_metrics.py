"""What is counted of volumes.

Upstream: pkg/kubelet/server/metrics/metrics.go: VolumeStatCalDuration; pkg/kubelet/metrics/
metrics.go: OrphanPodCleanedVolumes.
"""

from __future__ import annotations

from typing import Final

from refkubelet.telemetry.metrics import GaugeVec, Group, HistogramVec

COUNTED: Final = "du"
ASKED: Final = "statfs"
"""How a volume is measured: file by file, or by its filesystem; drivers have names of their own."""


class VolumeMetrics(Group):
    """Measurements of volumes, and volumes of pods that are gone."""

    def __init__(self) -> None:
        self.measuring = HistogramVec(
            "kubelet_volume_metric_collection_duration_seconds",
            "How long it took to measure a volume.",
            "metric_source",
        )
        self.orphans_cleaned = GaugeVec(
            "kubelet_orphan_pod_cleaned_volumes",
            "Directories of pods that are gone, at the last look.",
        )
        self.orphan_errors = GaugeVec(
            "kubelet_orphan_pod_cleaned_volumes_errors", "Those that could not be removed."
        )
