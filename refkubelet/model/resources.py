"""What a pod asks for: requests and limits added up over its containers, in nano units.

Rules: LIFE-225 (admission counts these), EVIC-080 (ranking compares usage with them). Upstream:
component-helpers resource: PodRequests, PodLimits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def pod_requests(pod: Pod) -> dict[str, int]:
    """The pod's requests: all containers and sidecars together, or the peak of its initialisation
    if that is higher, plus overhead; pod-level requests replace what they name."""
    return _pod_total(pod, container_requests, "requests")


def pod_limits(pod: Pod) -> dict[str, int]:
    """The same for limits; a container without a limit counts as nothing."""
    return _pod_total(pod, container_limits, "limits")


def _pod_total(pod: Pod, amounts: Any, which: str) -> dict[str, int]:
    spec = pod.spec
    if spec is None:
        return {}
    total: dict[str, int] = {}
    for container in spec.containers or ():
        total = _plus(total, amounts(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.initContainers or ():
        if is_sidecar(container):
            sidecars = _plus(sidecars, amounts(container))
            peak = _maximum(peak, sidecars)
        else:
            peak = _maximum(peak, _plus(sidecars, amounts(container)))
    total = _maximum(_plus(total, sidecars), peak)
    at_pod = getattr(spec.resources, which, None) if spec.resources else None
    total |= {name: parse_nano(text) for name, text in (at_pod or {}).items()}
    overhead = {name: parse_nano(text) for name, text in (spec.overhead or {}).items()}
    if which == "limits":
        overhead = {name: value for name, value in overhead.items() if name in total}
    return _plus(total, overhead)


def _plus(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in [*a, *(n for n in b if n not in a)]}


def _maximum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    names = [*a, *(n for n in b if n not in a)]
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in names}
