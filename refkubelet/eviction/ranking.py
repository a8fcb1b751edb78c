"""Who is evicted first: one sort key per starved resource, the smallest goes first. Pure.

Three questions in turn: does the pod use more than it asked for; how low is its priority; by how
much does it exceed its request. A pod without statistics comes before all others wherever
statistics are compared (EVIC-083). QoS class is not asked (EVIC-084). Full ties are broken by name,
so that a run is a function of its seed.
Upstream: pkg/kubelet/eviction/helpers.go: rankMemoryPressure and its siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from refkubelet.eviction.thresholds import INODES, MEMORY, PIDS, STORAGE
from refkubelet.eviction.usage import PodUsage
from refkubelet.model.objects import Pod, full_name, uid
from refkubelet.model.quantity import NANO
from refkubelet.model.resources import pod_requests

Key = tuple[int, int, int, str]
NO_STATS: Final = 0
EXCEEDS: Final = 1
WITHIN: Final = 2


def memory_key(pod: Pod, usage: PodUsage | None) -> Key:
    """EVIC-080. Bytes."""
    request = request_of(pod, MEMORY)
    if usage is None:
        return (NO_STATS, _priority(pod), 0, full_name(pod))
    return _exceeding(pod, usage.memory_bytes, request, request)


def disk_key(pod: Pod, usage: PodUsage | None) -> Key:
    """EVIC-081. Bytes."""
    request = request_of(pod, STORAGE)
    if usage is None:
        return (NO_STATS, _priority(pod), 0, full_name(pod))
    return _exceeding(pod, usage.disk_bytes, request, request)


def inodes_key(pod: Pod, usage: PodUsage | None) -> Key:
    """EVIC-081: no pod can ask for inodes, and yet its ephemeral-storage request is subtracted in
    the last step."""
    if usage is None:
        return (NO_STATS, _priority(pod), 0, full_name(pod))
    return _exceeding(pod, usage.inodes, 0, request_of(pod, STORAGE))


def pids_key(pod: Pod, usage: PodUsage | None) -> Key:
    """EVIC-082: priority first, requests play no role."""
    if usage is None:
        return (_priority(pod), NO_STATS, 0, full_name(pod))
    return (_priority(pod), WITHIN, -usage.processes, full_name(pod))


RANKING: Final[Mapping[str, Callable[[Pod, PodUsage | None], Key]]] = {
    MEMORY: memory_key,
    STORAGE: disk_key,
    INODES: inodes_key,
    PIDS: pids_key,
}


def rank_pods(resource: str, pods: Iterable[Pod], usage: Mapping[str, PodUsage]) -> tuple[Pod, ...]:
    """All pods, the first to evict first."""
    key = RANKING[resource]
    return tuple(sorted(pods, key=lambda pod: key(pod, usage.get(uid(pod)))))


def request_of(pod: Pod, resource: str) -> int:
    """What the pod asks for, in whole units; pod-level requests win, overhead counts."""
    return pod_requests(pod).get(resource, 0) // NANO


def _priority(pod: Pod) -> int:
    return (pod.spec.priority if pod.spec else None) or 0


def _exceeding(pod: Pod, used: int, request: int, subtracted: int) -> Key:
    first = EXCEEDS if used > request else WITHIN
    return (first, _priority(pod), subtracted - used, full_name(pod))
