"""How much room the logs of containers take (SRV-039.2), measured at each scrape.

Upstream: pkg/kubelet/metrics/collectors/log_metrics.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.host.disk_use import DiskUse
from refkubelet.model.objects import Pod
from refkubelet.model.pod import name_and_namespace, uid
from refkubelet.stats.provider import PodStats
from refkubelet.telemetry.exposition import Family, Sample

NAME: Final = "kubelet_container_log_filesystem_used_bytes"
LABELS: Final = ("container", "namespace", "pod", "uid")
PATIENCE_S: Final = 5.0
"""A runtime that takes longer holds up no scrape: that is when the other metrics are wanted."""
WHAT: Final = "cannot measure the logs of containers"


async def container_log_sizes(
    stats: PodStats, pods: Sequence[Pod], complaints: Complaints
) -> Family:
    """A sample for each container that the runtime has statistics of; none if it has none now, or
    does not answer within `PATIENCE_S`."""
    samples: list[Sample] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            usages = await stats.of(pods, files=True)
    except (CriCallError, TimeoutError) as error:
        complaints.failed(WHAT, error, CriCallError, TimeoutError)
        usages = {}
    else:
        complaints.over(WHAT)
    for pod in pods:
        if (usage := usages.get(uid(pod))) is None:
            continue
        name, namespace = name_and_namespace(pod)
        for row in usage.containers:
            used = usage.files.logs.get(row.name, DiskUse()).bytes
            values = (row.name, namespace, name, uid(pod))
            labels = tuple(zip(LABELS, values, strict=True))
            samples.append(Sample(labels, float(used)))
    return Family(NAME, "gauge", "Bytes of the logs of a container.", samples)
