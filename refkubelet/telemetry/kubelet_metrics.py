"""All metrics that the parts of a kubelet count: one set for each kubelet.

A part is given its own group. What is not counted but read (how many pods run) stands in
`refkubelet.wiring.metrics_page`. docs/metrics.md lists all, beside those of the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import fields

from refkubelet.telemetry.metrics import Group, Metric
from refkubelet.telemetry.node_metrics import CgroupMetrics, ExclusiveMetrics, NodeMetrics
from refkubelet.telemetry.pod_metrics import (
    ResizeMetrics,
    StartMetrics,
    StatusMetrics,
    WorkerMetrics,
)
from refkubelet.telemetry.runtime_metrics import ImageMetrics, OperationMetrics, StartedMetrics
from refkubelet.telemetry.server_metrics import HttpMetrics, PodResourcesMetrics, RequestMetrics
from refkubelet.telemetry.volume_metrics import VolumeMetrics


class KubeletMetrics(Struct, frozen=True):
    """Each group by what it is about."""

    workers: WorkerMetrics = field(default_factory=WorkerMetrics)
    starts: StartMetrics = field(default_factory=StartMetrics)
    statuses: StatusMetrics = field(default_factory=StatusMetrics)
    resizes: ResizeMetrics = field(default_factory=ResizeMetrics)
    operations: OperationMetrics = field(default_factory=OperationMetrics)
    started: StartedMetrics = field(default_factory=StartedMetrics)
    images: ImageMetrics = field(default_factory=ImageMetrics)
    node: NodeMetrics = field(default_factory=NodeMetrics)
    cgroups: CgroupMetrics = field(default_factory=CgroupMetrics)
    exclusive: ExclusiveMetrics = field(default_factory=ExclusiveMetrics)
    http: HttpMetrics = field(default_factory=HttpMetrics)
    pod_resources: PodResourcesMetrics = field(default_factory=PodResourcesMetrics)
    requests: RequestMetrics = field(default_factory=RequestMetrics)
    volumes: VolumeMetrics = field(default_factory=VolumeMetrics)

    def metrics(self) -> Iterator[Metric]:
        """All of all groups."""
        for each in fields(self):
            group: Group = getattr(self, each.name)
            yield from group.metrics()
