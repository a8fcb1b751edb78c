"""The QoS class of a pod. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubeobjects.quantity import QuantityError, parse_nano


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def qos_class(spec: dict[str, Any]) -> str:
    """The QoS class, BestEffort, Burstable or Guaranteed: from the requests and limits of cpu and
    memory in the pod's own resources if it has any, else in those of its containers."""
    guaranteed = True
    anything = False
    containers = [*_dicts(spec.get("initContainers")), *_dicts(spec.get("containers"))]
    for owner in [spec] if spec.get("resources") is not None else containers:
        resources = owner.get("resources") or {}
        limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
        anything = anything or bool(limits or requests)
        for name in ("cpu", "memory"):
            if not limits.get(name) or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(listed: Any) -> dict[str, int]:
    """The positive amounts of cpu and memory; malformed ones are left to validation."""
    amounts = {}
    for name in ("cpu", "memory"):
        try:
            amount = parse_nano(str((listed or {}).get(name, "0")))
        except QuantityError:
            continue
        if amount > 0:
            amounts[name] = amount
    return amounts
