"""Which disks hold images and containers, and so which disk use counts for a signal, and what can
be reclaimed. Pure.

Rules: EVIC-040, EVIC-042..046. The layout is decided once, at the first cycle.
Upstream: pkg/kubelet/eviction/helpers.go: buildSignalToRankFunc, buildSignalToNodeReclaimFuncs,
UpdateContainerFsThresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import product
from typing import Final

from kubeobjects.structs import replace
from refkubelet.config.eviction_thresholds import DISKS, Threshold
from refkubelet.host.disk_use import NOTHING, DiskUse
from refkubelet.stats.usage import PodUsage


class Layout(Enum):
    """How the filesystems of images, containers and the node are distributed."""

    ONE = "one filesystem"  # EVIC-044
    DEDICATED = "images and containers on a separate filesystem"  # EVIC-045
    SPLIT = "images on a separate filesystem, containers on the node's"  # EVIC-046


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


def layout_of(node_device: str, image_device: str, container_device: str) -> Layout:
    """The layout of a machine with these devices (EVIC-040). If images are not on the node's device
    and containers on another one than images, the layout is SPLIT."""
    if image_device == node_device:
        return Layout.ONE
    return Layout.DEDICATED if container_device == image_device else Layout.SPLIT


def disk_of(signal: str) -> str | None:
    """The signal's disk, `nodefs`, `imagefs` or `containerfs`; None for memory and pids."""
    disk = signal.partition(".")[0]
    return disk if disk in DISKS else None


def disk_use(pod: PodUsage, signal: str, layout: Layout) -> DiskUse:
    """The pod's use of the signal's disk; nothing for memory and pids."""
    disk = disk_of(signal)
    if disk is None:
        return NOTHING
    parts = {LAYERS: pod.layers, LOGS: pod.logs, VOLUMES: pod.files.local_volumes()}
    return sum((parts[part] for part in RANKED[layout, disk]), NOTHING)


def reclaim_steps(signal: str, layout: Layout) -> tuple[str, ...]:
    """What can be reclaimed without evicting a pod, in order: `CONTAINERS`, `IMAGES`; nothing for
    memory and pids."""
    disk = disk_of(signal)
    return RECLAIMED[layout, disk] if disk is not None else ()


def containerfs_thresholds(
    thresholds: Iterable[Threshold], layout: Layout
) -> tuple[tuple[Threshold, ...], tuple[Threshold, ...]]:
    """The configured thresholds, with those of containerfs replaced by copies of nodefs or imagefs
    ones; and copies for containerfs thresholds that were not configured (EVIC-042), which the first
    cycle does not use yet (EVIC-043).

    A copy differs from its source only in the signal; without a source a threshold is dropped.
    Copies come in the order `available` hard, soft, then `inodesFree` hard, soft. Of several
    thresholds of the same signal and kind the last one counts, as the source and as the one that is
    replaced; a soft threshold without a grace period is of the hard kind.
    """
    slots: list[Threshold | None] = list(thresholds)
    places = {(t.signal, t.hard): n for n, t in enumerate(slots) if t is not None}
    source = COPIED_FROM[layout]
    new: list[Threshold] = []
    for part, hard in product(("available", "inodesFree"), (True, False)):
        original = slots[n] if (n := places.get((f"{source}.{part}", hard))) is not None else None
        copy = replace(original, signal=f"containerfs.{part}") if original is not None else None
        configured = places.get((f"containerfs.{part}", hard))
        if configured is not None:
            slots[configured] = copy
        elif copy is not None:
            new.append(copy)
    return tuple(t for t in slots if t is not None), tuple(new)


def ignored_containerfs(thresholds: Iterable[Threshold]) -> tuple[str, ...]:
    """The log messages about configured thresholds of containerfs, which are ignored (EVIC-042)."""
    return tuple(
        f"found {t.signal} for {'hard' if t.hard else 'soft'} eviction. ignoring"
        for t in thresholds
        if disk_of(t.signal) == "containerfs"
    )
