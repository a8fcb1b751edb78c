"""The QoS class of a pod of the kubelet: that of its status, or that of its spec. Pure.

Rules: CG-001..003. Upstream: pkg/apis/core/v1/helper/qos/qos.go: GetPodQOS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from kubeobjects.pods.qos import QosClass, class_of
from refkubelet.model.objects import Container, Pod, PodSpec

CLASSES: Final[Mapping[str, QosClass]] = {name: name for name in get_args(QosClass)}


def qos_class(pod: Pod) -> QosClass:
    """The class in the pod's status, which never changes (CG-003); without one, that of its
    spec."""
    stored_class = CLASSES.get(pod.status.qosClass or "") if pod.status else None
    return stored_class or computed_qos_class(pod)


def computed_qos_class(pod: Pod) -> QosClass:
    """The class that follows from the spec."""
    every = (owner.resources for owner in _owners(pod.spec))
    return class_of([(each.requests, each.limits) if each else (None, None) for each in every])


def _owners(spec: PodSpec) -> Sequence[PodSpec | Container]:
    if spec.resources is not None:
        return (spec,)
    return (*(spec.containers or ()), *(spec.initContainers or ()))
