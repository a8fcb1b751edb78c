"""Which filesystem holds what: whose use is ranked, and what can be freed, for each disk. Pure.

Rules: EVIC-040, EVIC-042..046. The layout is decided once, at the first cycle.
Upstream: pkg/kubelet/eviction/helpers.go: buildSignalToRankFunc, buildSignalToNodeReclaimFuncs,
UpdateContainerFsThresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from refkubelet.eviction.thresholds import DISKS, Threshold
from refkubelet.stats.usage import NOTHING, DiskUse, PodUsage


class Layout(Enum):
    """How images, containers and everything else share the disks."""

    ONE = "one filesystem"  # EVIC-044
    DEDICATED = "images and containers on a filesystem of their own"  # EVIC-045
    SPLIT = "images on a filesystem of their own, containers with the rest"  # EVIC-046


LAYERS: Final = "writable layers"
LOGS: Final = "logs"
VOLUMES: Final = "local volumes"
ALL: Final = (LAYERS, LOGS, VOLUMES)
RANKED: Final[Mapping[tuple[Layout, str], tuple[str, ...]]] = {
    (Layout.ONE, "nodefs"): ALL,  # EVIC-044
    (Layout.ONE, "imagefs"): ALL,
    (Layout.ONE, "containerfs"): ALL,
    (Layout.DEDICATED, "nodefs"): (LOGS, VOLUMES),  # EVIC-045
    (Layout.DEDICATED, "imagefs"): (LAYERS,),
    (Layout.DEDICATED, "containerfs"): (LAYERS,),
    (Layout.SPLIT, "nodefs"): ALL,  # EVIC-046
    (Layout.SPLIT, "imagefs"): (),
    (Layout.SPLIT, "containerfs"): ALL,
}
CONTAINERS: Final = "containers"
IMAGES: Final = "images"
RECLAIMED: Final[Mapping[tuple[Layout, str], tuple[str, ...]]] = {
    (Layout.ONE, "nodefs"): (CONTAINERS, IMAGES),  # EVIC-044
    (Layout.ONE, "imagefs"): (CONTAINERS, IMAGES),
    (Layout.ONE, "containerfs"): (CONTAINERS, IMAGES),
    (Layout.DEDICATED, "nodefs"): (),  # EVIC-045
    (Layout.DEDICATED, "imagefs"): (CONTAINERS, IMAGES),
    (Layout.DEDICATED, "containerfs"): (CONTAINERS, IMAGES),
    (Layout.SPLIT, "nodefs"): (CONTAINERS,),  # EVIC-046
    (Layout.SPLIT, "imagefs"): (IMAGES,),
    (Layout.SPLIT, "containerfs"): (CONTAINERS,),
}
COPIED_FROM: Final[Mapping[Layout, str]] = {  # EVIC-042
    Layout.ONE: "nodefs",
    Layout.DEDICATED: "imagefs",
    Layout.SPLIT: "nodefs",
}


def disk_of(signal: str) -> str | None:
    """`nodefs`, `imagefs` or `containerfs`; None for signals that are about no disk."""
    disk = signal.partition(".")[0]
    return disk if disk in DISKS else None


def disk_use(pod: PodUsage, signal: str, layout: Layout) -> DiskUse:
    """What the pod has on the disk that the signal is about; nothing for other signals."""
    disk = disk_of(signal)
    if disk is None:
        return NOTHING
    parts = {LAYERS: pod.layers, LOGS: pod.logs, VOLUMES: pod.files.local_volumes()}
    return sum((parts[part] for part in RANKED[layout, disk]), NOTHING)


def reclaim_steps(signal: str, layout: Layout) -> tuple[str, ...]:
    """What can be freed without ending a pod, in order; nothing for signals that are about no
    disk."""
    disk = disk_of(signal)
    return RECLAIMED[layout, disk] if disk is not None else ()


def containerfs_thresholds(
    thresholds: Iterable[Threshold], layout: Layout
) -> tuple[tuple[Threshold, ...], tuple[Threshold, ...]]:
    """EVIC-042: the configured thresholds with those of containerfs put right, and the copies for
    containerfs that were not configured at all. The first cycle knows the former only (EVIC-043).

    A copy has everything of its source but the signal; without a source there is none.
    """
    thresholds = tuple(thresholds)
    source = COPIED_FROM[layout]
    copies = {
        (f"containerfs.{_what(t)}", t.hard): replace(t, signal=f"containerfs.{_what(t)}")
        for t in thresholds
        if disk_of(t.signal) == source
    }
    kept: list[Threshold] = []
    for threshold in thresholds:
        if disk_of(threshold.signal) != "containerfs":
            kept.append(threshold)
        elif (copy := copies.pop((threshold.signal, threshold.hard), None)) is not None:
            kept.append(copy)
    return tuple(kept), tuple(copies.values())


def ignored_containerfs(thresholds: Iterable[Threshold]) -> tuple[str, ...]:
    """What is said about configured thresholds of containerfs (EVIC-042)."""
    return tuple(
        f"found {t.signal} for {'hard' if t.hard else 'soft'} eviction. ignoring"
        for t in thresholds
        if disk_of(t.signal) == "containerfs"
    )


def _what(threshold: Threshold) -> str:
    return threshold.signal.partition(".")[2]
