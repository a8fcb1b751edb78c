"""The containers of a pod as the resource managers go through them. Pure.

Upstream: pkg/kubelet/cm/topologymanager/scope.go; component-helpers resource:
IsPodLevelResourcesSet.
"""

from __future__ import annotations

from collections.abc import Callable

from refkubelet.model.objects import Container, Pod, is_sidecar
from refkubelet.model.resources import pod_level


def in_order(pod: Pod) -> tuple[Container, ...]:
    """The containers in the order of their allocation: init containers, then regular ones."""
    spec = pod.spec
    return (*(spec.initContainers or ()), *spec.containers) if spec is not None else ()


def is_plain_init(pod: Pod, name: str) -> bool:
    """An init container that ends before the regular containers start: no sidecar."""
    spec = pod.spec
    inits = (spec.initContainers if spec is not None else None) or ()
    return any(c.name == name and not is_sidecar(c) for c in inits)


def has_pod_level_resources(pod: Pod) -> bool:
    """The pod itself names requests or limits."""
    return bool(pod_level(pod, "requests") or pod_level(pod, "limits"))


def peak(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The most of something that the pod's containers have at any time: all regular containers and
    sidecars together, or an init container with the sidecars before it."""
    highest, sidecars = 0, 0
    for container in pod.spec.initContainers or () if pod.spec is not None else ():
        if is_sidecar(container):
            sidecars += amount(container)
        else:
            highest = max(highest, sidecars + amount(container))
    regular = pod.spec.containers if pod.spec is not None else ()
    return max(highest, sidecars + sum(map(amount, regular)))
