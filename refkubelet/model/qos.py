"""QoS classes: Guaranteed, Burstable, BestEffort, from the CPU and memory of all containers.

Upstream: pkg/apis/core/v1/helper/qos/qos.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from refkubelet.model.objects import Pod
from refkubelet.model.quantity import parse_nano

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
COMPUTE: Final = ("cpu", "memory")


def qos_class(pod: Pod) -> QosClass:
    """The class of a pod, from its spec alone.

    BestEffort: no container asks for or limits CPU or memory. Guaranteed: every container, init
    containers included, limits both, and requests equal limits. Pod-level resources, if any, decide
    instead of the containers'.
    """
    spec = pod.spec
    if spec is None:
        return "BestEffort"
    owners = [spec] if _compute(spec) else [*(spec.containers or ()), *(spec.initContainers or ())]
    asked = [_compute(owner) for owner in owners]
    if not any(requests or limits for requests, limits in filter(None, asked)):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(a) for a in asked) else "Burstable"


Compute = tuple[Mapping[str, int], Mapping[str, int]]


def _compute(owner: object) -> Compute | None:
    """Positive CPU and memory (requests, limits) of a container or a pod; None for neither."""
    resources = getattr(owner, "resources", None)
    if resources is None:
        return None
    requests = _positive((resources.requests or {}).items())
    limits = _positive((resources.limits or {}).items())
    return (requests, limits) if requests or limits else None


def _positive(items: Iterable[tuple[str, str]]) -> dict[str, int]:
    amounts = {name: parse_nano(text) for name, text in items if name in COMPUTE}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _is_guaranteed(compute: Compute | None) -> bool:
    if compute is None:
        return False
    requests, limits = compute
    return len(limits) == len(COMPUTE) and {**limits, **requests} == limits
