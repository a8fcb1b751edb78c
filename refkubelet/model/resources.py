"""What a pod asks for: requests and limits added up over its containers, in nano units.

Rules: LIFE-225 (admission counts these), EVIC-080 (ranking compares usage with them). Upstream:
component-helpers resource: PodRequests, PodLimits.
"""

from __future__ import annotations

from collections.abc import Mapping

from refkubelet.model.objects import Container, Pod, is_sidecar
from refkubelet.model.quantity import parse_nano


def container_requests(container: Container) -> dict[str, int]:
    """Resource name -> nano units; a resource with only a limit counts with the limit."""
    return _amounts(container, "limits") | _amounts(container, "requests")


def container_limits(container: Container) -> dict[str, int]:
    return _amounts(container, "limits")


def _amounts(container: Container, which: str) -> dict[str, int]:
    values = getattr(container.resources, which) if container.resources else None
    return {name: parse_nano(text) for name, text in (values or {}).items()}


def pod_requests(pod: Pod, *, with_overhead: bool = True) -> dict[str, int]:
    """The pod's requests: all containers and sidecars together, or the peak of its initialisation
    if that is higher, plus overhead; pod-level requests replace what they name."""
    total = container_total(pod, "requests") | pod_level(pod, "requests")
    return _plus(total, _overhead(pod)) if with_overhead else total


def pod_limits(pod: Pod, *, with_overhead: bool = True) -> dict[str, int]:
    """The same for limits; a container without a limit counts as nothing, and overhead is added
    to limits that are there."""
    total = container_total(pod, "limits") | pod_level(pod, "limits")
    if not with_overhead:
        return total
    return _plus(total, {k: v for k, v in _overhead(pod).items() if total.get(k)})


def container_total(pod: Pod, which: str) -> dict[str, int]:
    """`requests` or `limits` of the containers alone (upstream: AggregateContainerRequests)."""
    spec = pod.spec
    if spec is None:
        return {}
    amounts = container_requests if which == "requests" else container_limits
    total: dict[str, int] = {}
    for container in spec.containers or ():
        for name, amount in amounts(container).items():
            total[name] = total.get(name, 0) + amount
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.initContainers or ():
        for name, amount in amounts(container).items():
            at_once = sidecars.get(name, 0) + amount
            peak[name] = max(peak.get(name, 0), at_once)
            if is_sidecar(container):
                sidecars[name] = at_once
    return _maximum(_plus(total, sidecars), peak)


def pod_level(pod: Pod, which: str) -> dict[str, int]:
    """`requests` or `limits` that the pod itself names (spec.resources)."""
    values = getattr(pod.spec.resources, which) if pod.spec and pod.spec.resources else None
    return {name: parse_nano(text) for name, text in (values or {}).items()}


def has_pod_level_resources(pod: Pod) -> bool:
    """The pod itself requests or limits something (upstream: IsPodLevelResourcesSet)."""
    return bool(pod_level(pod, "requests") or pod_level(pod, "limits"))


def resource_request(pod: Pod, name: str) -> int:
    """The nano units that ranking and preemption count for one resource (EVIC-080, PREE-002).

    Requests at the pod's level hide those of its containers, whole; overhead counts only where the
    rest is not 0. Upstream: pkg/api/v1/resource/helpers.go: GetResourceRequestQuantity.
    """
    level = has_pod_level_resources(pod)
    asked = pod_level(pod, "requests") if level else container_total(pod, "requests")
    amount = asked.get(name, 0)
    return amount + _overhead(pod).get(name, 0) if amount else 0


def _overhead(pod: Pod) -> dict[str, int]:
    values = pod.spec.overhead if pod.spec else None
    return {name: parse_nano(text) for name, text in (values or {}).items()}


def _plus(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in [*a, *(n for n in b if n not in a)]}


def _maximum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    names = [*a, *(n for n in b if n not in a)]
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in names}
