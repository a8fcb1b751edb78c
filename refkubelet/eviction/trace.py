"""Log lines that say why a pod is evicted, and by which rules. Pure.

A line has the measured and the wanted amount, and the pod's place in the ranking with its reasons.
Two runs with the same seed have the same lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubeobjects.quantity import format_binary, format_decimal
from refkubelet.config.eviction_thresholds import (
    INODES,
    MEMORY,
    PIDS,
    STORAGE,
    Threshold,
    resource_of,
)
from refkubelet.eviction.cycle import Observation
from refkubelet.eviction.layout import Layout, disk_of, disk_use
from refkubelet.eviction.local_storage import Violation
from refkubelet.eviction.ranking import request_of
from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name, priority
from refkubelet.stats.usage import PodUsage

MEASURED: Final[Mapping[str, str]] = {
    "memory.available": "EVIC-020",
    "allocatableMemory.available": "EVIC-021",
    "nodefs.available": "EVIC-022",
    "nodefs.inodesFree": "EVIC-022",
    "imagefs.available": "EVIC-023",
    "imagefs.inodesFree": "EVIC-023",
    "containerfs.available": "EVIC-024",
    "containerfs.inodesFree": "EVIC-024",
    "pid.available": "EVIC-025",
}
"""Signal -> the rule for its measurement."""
RANKED: Final[Mapping[str, str]] = {
    MEMORY: "EVIC-080",
    STORAGE: "EVIC-081",
    INODES: "EVIC-081",
    PIDS: "EVIC-082",
}
LAYOUTS: Final[Mapping[Layout, str]] = {
    Layout.ONE: "EVIC-044",
    Layout.DEDICATED: "EVIC-045",
    Layout.SPLIT: "EVIC-046",
}


def threshold_line(threshold: Threshold, seen: Observation) -> str:
    """The acting threshold: `memory.available 50Mi of 100Mi, hard (EVIC-020 EVIC-053)`."""
    text_of = format_decimal if threshold.resource in (INODES, PIDS) else format_binary
    limit = threshold.value.shown(seen.capacity)
    kind = "hard" if threshold.hard else f"soft for {threshold.grace_s:g} s"
    reclaim = f", wanted {threshold.min_reclaim.text} more" if threshold.min_reclaim else ""
    rules = f"{MEASURED[threshold.signal]} EVIC-053"
    return f"{threshold.signal} {text_of(seen.available)} of {limit}, {kind}{reclaim} ({rules})"


def rank_line(
    pod: Pod, usage: PodUsage | None, signal: str, layout: Layout, place: tuple[int, int]
) -> str:
    """The pod's place in the ranking: `rank 1 of 110: uses 850Mi, request 0, priority 0
    (EVIC-080)`. `place`: the rank, and the number of pods."""
    resource = resource_of(signal)
    rank, count = place
    if usage is None:
        usage_words, rules = "no statistics", [RANKED[resource], "EVIC-083"]
    elif resource == PIDS:
        usage_words, rules = f"{usage.processes} processes", [RANKED[resource]]
    else:
        usage_words, rules = _used(pod, usage, signal, layout), [RANKED[resource]]
    if disk_of(signal) is not None:
        rules.append(LAYOUTS[layout])
    return f"rank {rank} of {count}: {usage_words}, priority {priority(pod)} ({' '.join(rules)})"


def eviction_line(pod: Pod, why: str, grace_s: int) -> str:
    """The eviction of a ranked pod."""
    return f"evicting {full_name(pod)}: {why}; grace {grace_s} s (EVIC-086 EVIC-087)"


def violation_line(pod: Pod, violation: Violation) -> str:
    """The eviction of a pod above its own storage limit."""
    return f"evicting {full_name(pod)}: {violation.message.strip()} ({violation.rule} EVIC-087)"


def _used(pod: Pod, usage: PodUsage, signal: str, layout: Layout) -> str:
    resource = resource_of(signal)
    if resource == MEMORY:
        used, request = format_binary(usage.memory_bytes), format_binary(request_of(pod, MEMORY))
        return f"uses {used}, request {request}"
    use = disk_use(usage, signal, layout)
    if resource == INODES:
        return f"uses {format_decimal(use.inodes)} inodes"
    return f"uses {format_binary(use.bytes)}, request {format_binary(request_of(pod, STORAGE))}"
