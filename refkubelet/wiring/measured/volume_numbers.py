"""The metrics of volumes of claims (SRV-035), as they were measured last.

Upstream: pkg/kubelet/metrics/collectors/volume_stats.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubeobjects.machine import FilesystemStats
from refkubelet.host.disk_use import DiskUse
from refkubelet.stats.volumes import VolumeStats
from refkubelet.telemetry.metrics import Numbers, Values

Read = Callable[[FilesystemStats, DiskUse], float]
LABELS: Final = ("namespace", "persistentvolumeclaim")
NUMBERS: Final[tuple[tuple[str, str, Read], ...]] = (
    ("capacity_bytes", "Size in bytes.", lambda room, used: room.capacity_bytes),
    ("available_bytes", "Bytes left to pods.", lambda room, used: room.available_bytes),
    ("used_bytes", "Bytes in use.", lambda room, used: used.bytes),
    ("inodes", "Inodes in all.", lambda room, used: room.inodes),
    ("inodes_free", "Inodes left.", lambda room, used: room.inodes_free),
    ("inodes_used", "Inodes in use.", lambda room, used: used.inodes),
)


def volume_numbers(volumes: VolumeStats) -> list[Numbers]:
    """A metric for each number of a volume."""

    def reader(read: Read) -> Callable[[], Values]:
        return lambda: {
            claim: read(size.room, size.used)
            for claim, size in volumes.of_claims().items()
            if size.room is not None
        }

    return [
        Numbers(f"kubelet_volume_stats_{name}", f"Volumes of claims: {text}", reader(read), LABELS)
        for name, text, read in NUMBERS
    ]
