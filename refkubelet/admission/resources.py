"""Whether the node has room for a pod's requests (LIFE-225). Pure.

Critical pods are refused like all others here: making room for them by preemption is not part of
this module. Upstream: pkg/kubelet/lifecycle/predicate.go, scheduler noderesources: fitsRequest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from refkubelet.admission.handlers import Check, PodAdmitAttributes, Rejection
from refkubelet.model.objects import Pod
from refkubelet.model.quantity import NANO
from refkubelet.model.resources import pod_requests

PODS: Final = "pods"
CPU: Final = "cpu"
CHECKED: Final = (CPU, "memory", "ephemeral-storage")  # in this order, first shortage counts
_NANO_PER_MILLI: Final = NANO // 1000


def room_for(allocatable: Mapping[str, int]) -> Check:
    """A handler for a node with these amounts (resource name -> nano units). Resources that the
    node does not know are not looked at."""

    def handler(asked: PodAdmitAttributes) -> Rejection | None:
        pod, active = asked.pod, asked.others
        if PODS in allocatable and (len(active) + 1) * NANO > allocatable[PODS]:
            return shortage(PODS, 1, len(active), allocatable[PODS] // NANO)
        requests = pod_requests(pod)
        for name in CHECKED:
            wanted, used = requests.get(name, 0), _used(active, name)
            if name in allocatable and wanted > 0 and wanted > allocatable[name] - used:
                unit = _NANO_PER_MILLI if name == CPU else NANO
                amounts = (-(-amount // unit) for amount in (wanted, used, allocatable[name]))
                return shortage(name, *amounts)
        return None

    return handler


def shortage(name: str, requested: int, used: int, capacity: int) -> Rejection:
    """The rejection; cpu in millicores, memory and storage in bytes."""
    return Rejection(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {requested}, "
        f"used: {used}, capacity: {capacity}",
    )


def _used(active: Iterable[Pod], name: str) -> int:
    return sum(pod_requests(pod).get(name, 0) for pod in active)
