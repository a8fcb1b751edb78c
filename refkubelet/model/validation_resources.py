"""Checks of what containers, and pods as a whole, ask for: which resources, and how.

Part of `validation.py`, which looks at the amounts. Upstream: pkg/apis/core/validation:
validateContainerResources, validatePodResources.

What must never happen here: a pod is refused that a kubelet runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from refkubelet.model.complaints import invalid, one_of
from refkubelet.model.quantity import NANO, QuantityError, parse_nano

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", "memory", "hugepages-")
_HUGE: Final = "hugepages-"


def resource_name_problems(place: str, resources: Any, *, of_pod: bool = False) -> Iterator[str]:
    """Which resources a container, or the pod itself, may ask for, and how."""
    if resources is None:
        return
    limits, requests = resources.limits or {}, resources.requests or {}
    if of_pod:
        yield from _names_of_pod(place, limits, requests)
    else:
        yield from _names_of_container(f"{place}.limits", limits)
        yield from _names_of_container(f"{place}.requests", requests)
    for name in {**requests, **limits}:
        if _is_extended(name) or name.startswith(_HUGE):
            yield from _not_overcommitted(place, name, limits.get(name), requests.get(name))
    everything = {*limits, *requests}
    has_main = bool(everything & {"cpu", "memory"})
    if not of_pod and not has_main and any(name.startswith(_HUGE) for name in everything):
        yield f"{place}: Forbidden: HugePages require cpu or memory"


def _names_of_pod(
    place: str, limits: Mapping[str, str], requests: Mapping[str, str]
) -> Iterator[str]:
    """A request that is a limit by default is not told again."""
    for name in {**limits, **requests}:
        if name not in ("cpu", "memory") and not name.startswith(_HUGE):
            which = "limits" if name in limits else "requests"
            yield from one_of(f"{place}.{which}[{name}]", name, _OF_PODS)


def _names_of_container(place: str, amounts: Mapping[str, str]) -> Iterator[str]:
    for name, text in amounts.items():
        if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
            yield invalid(f"{place}[{name}]", name, "must be a standard resource for containers")
        elif _is_extended(name) and _is_fraction(text):
            yield invalid(f"{place}[{name}]", text, "must be an integer")


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _not_overcommitted(
    place: str, name: str, limit: str | None, request: str | None
) -> Iterator[str]:
    if request is None:
        return
    if limit is None:
        why = "Limit must be set for non overcommitable resources"
        yield f"{place}.limits: Required value: {why}"
    elif amount_of(limit) != amount_of(request):
        why = f"must be equal to {name} limit of {limit}"
        yield invalid(f"{place}.requests", str(request), why)


def amount_of(text: str) -> int | None:
    try:
        return parse_nano(text)
    except QuantityError:
        return None  # told elsewhere


def _is_fraction(text: str) -> bool:
    amount = amount_of(text)
    return amount is not None and amount % NANO != 0
