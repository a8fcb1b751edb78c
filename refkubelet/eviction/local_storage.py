"""Pods above their own storage limits (EVIC-100..102). Pure.

Upstream: pkg/kubelet/eviction/eviction_manager.go: localStorageEviction.
"""

from __future__ import annotations

from refkubelet.eviction.thresholds import STORAGE, canonical
from refkubelet.eviction.usage import PodUsage
from refkubelet.model.objects import Pod
from refkubelet.model.quantity import NANO, format_binary, parse_integer
from refkubelet.model.resources import pod_limits


def local_storage_violation(pod: Pod, usage: PodUsage) -> str | None:
    """The eviction message of the first limit that is broken, or None.

    emptyDir volumes first (EVIC-100), then the pod (EVIC-101), then regular containers one by one
    (EVIC-102).
    """
    for volume, size in empty_dirs(pod).items():
        if size is not None and usage.files.volumes.get(volume, 0) > parse_integer(size) > 0:
            return f'Usage of EmptyDir volume "{volume}" exceeds the limit "{canonical(size)}". '
    limit = pod_limits(pod).get(STORAGE)
    if limit is not None and usage.disk_bytes > limit // NANO:
        return (
            "Pod ephemeral local storage usage exceeds the total limit of containers "
            f"{format_binary(limit // NANO)}. "
        )
    used = {row.name: usage.container_disk_bytes(row) or 0 for row in usage.containers}
    for container in pod.spec.containers if pod.spec else ():
        limits = (container.resources.limits if container.resources else None) or {}
        text = limits.get(STORAGE)
        if text is not None and used.get(container.name, 0) > parse_integer(text):
            return (
                f"Container {container.name} exceeded its local ephemeral storage limit "
                f'"{canonical(text)}". '
            )
    return None


def empty_dirs(pod: Pod) -> dict[str, str | None]:
    """The pod's emptyDir volumes on disk: name -> sizeLimit, if any."""
    volumes = (pod.spec.volumes if pod.spec else None) or ()
    return {
        v.name: v.emptyDir.sizeLimit
        for v in volumes
        if v.emptyDir is not None and v.emptyDir.medium in (None, "")
    }


def has_storage_limits(pod: Pod) -> bool:
    """Whether the pod can break a limit of its own (EVIC-100..102)."""
    containers = pod.spec.containers if pod.spec else ()
    limits = ((c.resources.limits if c.resources else None) or {} for c in containers)
    return any(STORAGE in limit for limit in limits) or any(empty_dirs(pod).values())
