"""Finds pods above their own storage limits (EVIC-100..102). Pure.

Upstream: pkg/kubelet/eviction/eviction_manager.go: localStorageEviction.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kubeobjects.quantity import NANO, canonical, parse_nano
from refkubelet.config.eviction_thresholds import STORAGE
from refkubelet.eviction.layout import Layout
from refkubelet.host.disk_use import NOTHING
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers
from refkubelet.model.resources import limit_quantities
from refkubelet.stats.usage import PodUsage, layer

EMPTY_DIR_LIMIT: Final = "emptydirfs.limit"  # the signals in the metrics, EVIC-096
POD_LIMIT: Final = "ephemeralpodfs.limit"
CONTAINER_LIMIT: Final = "ephemeralcontainerfs.limit"


class Violation(Struct, frozen=True):
    """An exceeded limit: the signal in the metrics (EVIC-096), the rule, the message."""

    signal: str
    rule: str
    message: str


def local_storage_violation(pod: Pod, usage: PodUsage, layout: Layout) -> Violation | None:
    """The first exceeded limit, or None: of emptyDir volumes, then of the pod, then of regular
    containers."""
    return _volume(pod, usage) or _pod(pod, usage) or _container(pod, usage, layout)


def _volume(pod: Pod, usage: PodUsage) -> Violation | None:
    """An emptyDir volume, in memory or on disk, above its sizeLimit (EVIC-100)."""
    for name, size in _size_limits(pod).items():
        volume = usage.files.volumes.get(name)
        if volume is not None and volume.used.bytes * NANO > parse_nano(size) > 0:
            text = f'Usage of EmptyDir volume "{name}" exceeds the limit "{canonical(size)}". '
            return Violation(EMPTY_DIR_LIMIT, "EVIC-100", text)
    return None


def _pod(pod: Pod, usage: PodUsage) -> Violation | None:
    """A pod above its limit, with all of its containers (EVIC-101)."""
    limit = limit_quantities(pod).get(STORAGE)
    if limit is None or usage.ephemeral_storage.bytes * NANO <= limit.nano:
        return None
    text = f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
    return Violation(POD_LIMIT, "EVIC-101", text)


def _container(pod: Pod, usage: PodUsage, layout: Layout) -> Violation | None:
    """A regular container above its own limit; 0 is no limit (EVIC-102)."""
    limits = {c.name: _limit(c) for c in pod.spec.containers}
    for row in usage.containers:
        limit = limits.get(row.name)
        used = usage.files.logs.get(row.name, NOTHING)
        if layout is Layout.ONE:
            used += layer(row)
        if limit is not None and used.bytes * NANO > parse_nano(limit) > 0:
            text = (
                f"Container {row.name} exceeded its local ephemeral storage limit "
                f'"{canonical(limit)}". '
            )
            return Violation(CONTAINER_LIMIT, "EVIC-102", text)
    return None


def has_storage_limits(pod: Pod) -> bool:
    """Whether the pod, a container or a volume of it has a storage limit."""
    return any(_limit(c) is not None for c in containers(pod)) or bool(_size_limits(pod))


def _limit(container: Container) -> str | None:
    limits = (container.resources.limits if container.resources else None) or {}
    text: str | None = limits.get(STORAGE)
    return text


def _size_limits(pod: Pod) -> dict[str, str]:
    """The sizeLimit of each emptyDir volume that has one, by name."""
    volumes = pod.spec.volumes or ()
    return {
        v.name: v.emptyDir.sizeLimit
        for v in volumes
        if v.emptyDir is not None and v.emptyDir.sizeLimit is not None
    }
