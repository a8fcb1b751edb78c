"""QoS classes: Guaranteed, Burstable, BestEffort, from requests and limits of CPU and memory. Pure.

Rules: CG-001..003. Upstream: pkg/apis/core/v1/helper/qos/qos.go: ComputePodQOS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from kubeobjects.pods.common.checks import objects_of
from kubeobjects.quantity import QuantityError, parse_nano
from kubeobjects.resource_names import COMPUTE

QosClass: TypeAlias = Literal["Guaranteed", "Burstable", "BestEffort"]
Written: TypeAlias = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""Requests and limits as they are written."""
_NOTHING: Final[Mapping[str, int]] = {}


def qos_class(spec: Mapping[str, Any]) -> QosClass:
    """The class of a pod's spec."""
    owners: list[Mapping[str, Any]] = [spec]
    if spec.get("resources") is None:
        owners = [*objects_of(spec.get("containers")), *objects_of(spec.get("initContainers"))]
    resources = [owner.get("resources") or {} for owner in owners]
    return class_of([(each.get("requests"), each.get("limits")) for each in resources])


def class_of(resources: Sequence[Written]) -> QosClass:
    """The class of a pod whose containers and init containers have these resources; or, if it has
    some of its own, even empty ones, with these alone.

    BestEffort: no requests and limits of CPU and memory. Guaranteed: all limit both, and the sums
    of requests and limits are equal; a missing request is the limit (SRC-036).
    """
    limits = [_positive(written) for _, written in resources]
    requests = [_positive(written, limits[n]) for n, (written, _) in enumerate(resources)]
    if not any(requests) and not any(limits):
        return "BestEffort"
    limited = all(len(amounts) == len(COMPUTE) for amounts in limits)
    return "Guaranteed" if limited and _sum(requests) == _sum(limits) else "Burstable"


def _positive(
    written: Mapping[str, Any] | None, default: Mapping[str, int] = _NOTHING
) -> dict[str, int]:
    """The positive amounts of CPU and memory; `default` for those that are not named. Malformed
    ones are left to validation."""
    amounts = dict(default)
    for name in COMPUTE:
        if written and name in written:
            try:
                amounts[name] = parse_nano(str(written[name]))
            except QuantityError:
                continue
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _sum(rows: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(row.get(name, 0) for row in rows) for name in COMPUTE}
