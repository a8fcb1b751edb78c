"""The texts of evictions in events and statuses (EVIC-056, EVIC-090..094). Pure.

Trailing spaces are part of upstream's texts. Upstream: pkg/kubelet/eviction/helpers.go:
evictionMessage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from kubeobjects.quantity import NANO, canonical, format_binary, format_decimal, parse_nano
from refkubelet.admission.node_fit import EVICTED
from refkubelet.config.eviction_thresholds import INODES, MEMORY, PIDS, STORAGE, Threshold
from refkubelet.cri.usage import ContainerUsage
from refkubelet.eviction.cycle import Observation
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.model.pod import containers
from refkubelet.stats.usage import PodUsage
from refkubelet.status.ended import ended_status

THRESHOLD_MET: Final = "EvictionThresholdMet"


class EvictionText(Struct, frozen=True):
    """The message of one eviction, and the annotations of its event (EVIC-093)."""

    message: str
    annotations: Mapping[str, str]


def reclaim_message(resource: str) -> str:
    """The message of the node event when a threshold acts (EVIC-056)."""
    return f"Attempting to reclaim {resource}"


def eviction_text(
    pod: Pod,
    usage: PodUsage | None,
    resource: str,
    acting: Iterable[Threshold],
    observations: Mapping[str, Observation],
) -> EvictionText:
    """The text of the event and the status of an evicted pod (EVIC-091..093). `usage`: None:
    unknown; `acting`: the thresholds that act now, most urgent first."""
    message = f"The node was low on resource: {resource}. " + _numbers(
        resource, acting, observations
    )
    if usage is None:
        return EvictionText(message, {})
    extra: dict[str, str] = {}
    pod_memory = _pod_level_memory(pod) if resource == MEMORY else None
    if pod_memory is not None:
        name = pod.metadata.name or ""
        used = format_binary(usage.memory_bytes)
        message += (
            f"Pod {name} was using {used}, request is {pod_memory}, "
            "has larger consumption of memory. "
        )
        extra = {"offending_pod": name, "offending_pod_usage": used}
    offenders = list(_offenders(pod, usage, resource))
    for name, used, request in offenders:
        message += (
            f"Container {name} was using {used}, request is {request}, "
            f"has larger consumption of {resource}. "
        )
    annotations = {
        "starved_resource": resource,
        "offending_containers": ",".join(name for name, _, _ in offenders),
        "offending_containers_usage": ",".join(used for _, used, _ in offenders),
        **extra,
    }
    return EvictionText(message, annotations)


def _numbers(
    resource: str, acting: Iterable[Threshold], observations: Mapping[str, Observation]
) -> str:
    """Threshold and available amount of the first acting threshold of this resource (EVIC-092)."""
    for threshold in acting:
        observed = observations.get(threshold.signal)
        if threshold.resource == resource and observed is not None:
            text_of = format_decimal if resource in (INODES, PIDS) else format_binary
            quantity = threshold.value.shown(observed.capacity)
            return f"Threshold quantity: {quantity}, available: {text_of(observed.available)}. "
    return ""


def _pod_level_memory(pod: Pod) -> str | None:
    resources = pod.spec.resources
    text = ((resources.requests if resources else None) or {}).get(MEMORY)
    return None if text is None else canonical(text)


def _offenders(pod: Pod, usage: PodUsage, resource: str) -> Iterable[tuple[str, str, str]]:
    """(container, usage, request) of the containers above their request."""
    by_name = {c.name: c for c in containers(pod)}
    for row in usage.containers:
        container = by_name.get(row.name)
        used = _used(usage, row, resource)
        if container is None or used is None:
            continue
        text = _request_text(container, resource)
        if used * NANO > parse_nano(text):
            yield row.name, format_binary(used), canonical(text)


def _used(usage: PodUsage, row: ContainerUsage, resource: str) -> int | None:
    """The container's use of memory or disk in bytes, of disk its writable layer and logs; None if
    unknown (EVIC-091)."""
    if resource == MEMORY:
        return row.memory_working_set_bytes
    logs = usage.files.logs.get(row.name)
    if resource != STORAGE or row.rootfs_used_bytes is None or logs is None:
        return None
    return row.rootfs_used_bytes + logs.bytes


def _request_text(container: Container, resource: str) -> str:
    requests = (container.resources.requests if container.resources else None) or {}
    text: str = requests.get(resource, "0")
    return text


def evicted_status(pod: Pod, message: str, disruption: bool) -> Callable[[PodStatus], PodStatus]:
    """A function that makes the status of the evicted pod (EVIC-094). `disruption`: with the
    condition DisruptionTarget."""
    return ended_status(pod, EVICTED, message, disruption=message if disruption else None)
