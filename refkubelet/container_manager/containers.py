"""The containers of a pod as the resource managers go through them. Pure.

Upstream: pkg/kubelet/cm/topologymanager/scope.go; component-helpers resource:
IsPodLevelResourcesSet.
"""

from __future__ import annotations

from collections.abc import Callable

from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import is_sidecar


def peak(pod: Pod, amount: Callable[[Container], int]) -> int:
    """The most of something that the pod's containers have at any time: all regular containers and
    sidecars together, or an init container with the sidecars before it."""
    highest, sidecars = 0, 0
    for container in pod.spec.initContainers or ():
        if is_sidecar(container):
            sidecars += amount(container)
        else:
            highest = max(highest, sidecars + amount(container))
    return max(highest, sidecars + sum(map(amount, pod.spec.containers)))
