"""Pods above their own ephemeral-storage limits (EVIC-101, EVIC-102). Pure.

Counted are the writable layers, as the runtime reports them.
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

    Pod first (EVIC-101), then regular containers one by one (EVIC-102).
    """
    limit = pod_limits(pod).get(STORAGE)
    if limit is not None and usage.disk_bytes > limit // NANO:
        return (
            "Pod ephemeral local storage usage exceeds the total limit of containers "
            f"{format_binary(limit // NANO)}. "
        )
    used = {row.name: row.rootfs_used_bytes or 0 for row in usage.containers}
    for container in pod.spec.containers if pod.spec else ():
        limits = (container.resources.limits if container.resources else None) or {}
        text = limits.get(STORAGE)
        if text is not None and used.get(container.name, 0) > parse_integer(text):
            return (
                f"Container {container.name} exceeded its local ephemeral storage limit "
                f'"{canonical(text)}". '
            )
    return None
