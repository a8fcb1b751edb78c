"""The order in which pods are evicted: a sort key per starved resource, smallest first. Pure.

Pods are compared by: whether they use more than their request; their priority, lower first; by how
much they exceed their request. A pod without statistics comes first (EVIC-083). The QoS class does
not matter (EVIC-084). Ties are broken by name, so that two runs with the same seed are the same.
Upstream: pkg/kubelet/eviction/helpers.go: rankMemoryPressure and its siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubeobjects.quantity import NANO
from refkubelet.config.eviction_thresholds import MEMORY, PIDS, STORAGE, resource_of
from refkubelet.eviction.layout import Layout, disk_use
from refkubelet.host.disk_use import DiskUse
from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name, priority, uid
from refkubelet.model.resources import resource_request
from refkubelet.stats.usage import PodUsage

Key = tuple[int, int, int, str]
NO_STATS: Final = 0
EXCEEDS: Final = 1
WITHIN: Final = 2


def memory_key(pod: Pod, usage: PodUsage | None) -> Key:
    """The key when memory is short, in bytes (EVIC-080)."""
    request = request_of(pod, MEMORY)
    if usage is None:
        return (NO_STATS, priority(pod), 0, full_name(pod))
    return _exceeding(pod, usage.memory_bytes, request, request)


def disk_key(pod: Pod, used: DiskUse | None) -> Key:
    """The key when disk is short, in bytes (EVIC-081)."""
    if used is None:
        return (NO_STATS, priority(pod), 0, full_name(pod))
    request = request_of(pod, STORAGE)
    return _exceeding(pod, used.bytes, request, request)


def inodes_key(pod: Pod, used: DiskUse | None) -> Key:
    """The key when inodes are short (EVIC-081). No pod can request inodes; as in upstream the last
    number subtracts its request of ephemeral-storage."""
    if used is None:
        return (NO_STATS, priority(pod), 0, full_name(pod))
    return _exceeding(pod, used.inodes, 0, request_of(pod, STORAGE))


def pids_key(pod: Pod, usage: PodUsage | None) -> Key:
    """The key when pids are short (EVIC-082): by priority, then by the number of processes."""
    if usage is None:
        return (priority(pod), NO_STATS, 0, full_name(pod))
    return (priority(pod), WITHIN, -usage.processes, full_name(pod))


def rank_pods(
    signal: str, pods: Iterable[Pod], usage: Mapping[str, PodUsage], layout: Layout
) -> tuple[Pod, ...]:
    """All pods in the order of eviction. Which use of disk counts depends on the layout
    (EVIC-044..046)."""
    resource = resource_of(signal)

    def key(pod: Pod) -> Key:
        pod_usage = usage.get(uid(pod))
        if resource == MEMORY:
            return memory_key(pod, pod_usage)
        if resource == PIDS:
            return pids_key(pod, pod_usage)
        used = None if pod_usage is None else disk_use(pod_usage, signal, layout)
        return disk_key(pod, used) if resource == STORAGE else inodes_key(pod, used)

    return tuple(sorted(pods, key=key))


def request_of(pod: Pod, resource: str) -> int:
    """The pod's request of a resource, in whole units (EVIC-080)."""
    return resource_request(pod, resource) // NANO


def _exceeding(pod: Pod, used: int, request: int, subtracted: int) -> Key:
    first = EXCEEDS if used > request else WITHIN
    return (first, priority(pod), subtracted - used, full_name(pod))
