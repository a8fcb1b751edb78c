"""The memory that containers request from NUMA nodes. Pure.

Rules: CG-082: memory and huge pages of containers of Guaranteed pods; none in pods with pod-level
resources (gate PodLevelResourceManagers, alpha, off). Upstream:
pkg/kubelet/cm/memorymanager/policy_static.go: getContainerRequestedResources,
getPodRequestedResources.
"""

from __future__ import annotations

from functools import partial

from kubeobjects.quantity import NANO
from kubeobjects.resource_names import HUGE_PAGES
from refkubelet.container_manager.memory.state import MEMORY
from refkubelet.model.objects import Container, Pod
from refkubelet.model.qos import qos_class
from refkubelet.model.resources import container_requests, has_pod_level_resources, peak


def pinned_memory(pod: Pod, container: Container) -> dict[str, int]:
    """Resource -> bytes; empty: the container's memory may come from any node."""
    return _memory(container) if _is_pinned(pod) else {}


def pod_pinned_memory(pod: Pod) -> dict[str, int]:
    """Resource -> the most bytes that the pod's containers have at the same time, for the resources
    that its regular containers request."""
    if not _is_pinned(pod):
        return {}
    names = dict.fromkeys(name for c in pod.spec.containers for name in _memory(c))
    return {name: peak(pod, partial(_size, name)) for name in names}


def _size(name: str, container: Container) -> int:
    return _memory(container).get(name, 0)


def _is_pinned(pod: Pod) -> bool:
    return qos_class(pod) == "Guaranteed" and not has_pod_level_resources(pod)


def _memory(container: Container) -> dict[str, int]:
    return {
        name: amount // NANO
        for name, amount in sorted(container_requests(container).items(), reverse=True)
        if name == MEMORY or name.startswith(HUGE_PAGES)
    }
