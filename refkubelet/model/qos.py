"""QoS classes: Guaranteed, Burstable, BestEffort, from the CPU and memory of all containers. Pure.

Rules: CG-001..003. Upstream: pkg/apis/core/v1/helper/qos/qos.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args

from kubeobjects.quantity import parse_nano
from refkubelet.model.objects import Container, Pod, PodSpec
from refkubelet.model.resources import COMPUTE

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
CLASSES: Final[Mapping[str, QosClass]] = {name: name for name in get_args(QosClass)}
NOTHING: Final[Mapping[str, int]] = {}


def qos_class(pod: Pod) -> QosClass:
    """The class in the pod's status, which never changes (CG-003); without one, that of its spec
    (upstream: GetPodQOS)."""
    stored_class = CLASSES.get(pod.status.qosClass or "") if pod.status else None
    return stored_class or computed_qos_class(pod)


def computed_qos_class(pod: Pod) -> QosClass:
    """The class that follows from the spec (upstream: ComputePodQOS).

    BestEffort: no requests and limits of CPU and memory. Guaranteed: all containers and init
    containers limit both, and the sums of requests and limits are equal; a missing request is the
    limit (SRC-036). With `spec.resources`, even empty ones, only these count.
    """
    owners = _owners(pod.spec)
    limits = [_positive(owner, "limits") for owner in owners]
    requests = [_positive(o, "requests", limits[n]) for n, o in enumerate(owners)]
    if not any(requests) and not any(limits):
        return "BestEffort"
    limited = all(len(amounts) == len(COMPUTE) for amounts in limits)
    return "Guaranteed" if limited and _sum(requests) == _sum(limits) else "Burstable"


def _owners(spec: PodSpec) -> Sequence[PodSpec | Container]:
    if spec.resources is not None:
        return (spec,)
    return (*(spec.containers or ()), *(spec.initContainers or ()))


def _positive(
    owner: PodSpec | Container, which: str, default: Mapping[str, int] = NOTHING
) -> dict[str, int]:
    """The positive amounts of CPU and memory among `requests` or `limits` (`which`); `default` for
    those that are not named."""
    resources = owner.resources
    items = (getattr(resources, which) or {}).items() if resources is not None else ()
    amounts = {name: parse_nano(text) for name, text in items if name in COMPUTE}
    return {name: amount for name, amount in {**default, **amounts}.items() if amount > 0}


def _sum(rows: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(row.get(name, 0) for row in rows) for name in COMPUTE}
