"""Checks the resources of containers and of pods: names and amounts. Pure.

Upstream: pkg/apis/core/validation: validateContainerResources, validatePodResources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kubeobjects.quantity import NANO, QuantityError, parse_nano
from refkubelet.model.resources import COMPUTE
from refkubelet.model.validation.field_errors import (
    duplicate,
    forbidden,
    invalid,
    label,
    not_found,
    one_of,
    quantity,
    required,
)

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", "memory", "hugepages-")
_HUGE: Final = "hugepages-"


def amount_problems(place: str, resources: Any) -> Iterator[str]:
    """Refuse invalid and negative amounts, and requests above their limits."""
    if resources is None:
        return
    amounts: dict[str, dict[str, int]] = {"limits": {}, "requests": {}}
    for which, known in amounts.items():
        for name, text in (getattr(resources, which) or {}).items():
            try:
                known[name] = parse_nano(text)
            except QuantityError as e:
                yield f"{place}.{which}[{name}]: Invalid value: {e}"
                continue
            if known[name] < 0:
                field = f"{place}.{which}[{name}]"
                yield invalid(field, text, "must be greater than or equal to 0")
    for name, amount in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and amount > limit:
            why = f"must be less than or equal to {name} limit"
            yield invalid(f"{place}.requests", resources.requests[name], why)


def resource_name_problems(
    place: str, resources: Any, *, of_pod: bool = False, claims: Collection[str] = ()
) -> Iterator[str]:
    """Check which resources a container, or the pod (`of_pod`), may request. `claims`: the names of
    the pod's resource claims."""
    if resources is None:
        return
    if of_pod and resources.claims is not None:
        yield forbidden(f"{place}.claims", "claims may not be set for Resources at pod-level")
    yield from _claims(f"{place}.claims", resources.claims or (), claims)
    limits, requests = resources.limits or {}, resources.requests or {}
    if of_pod:
        yield from _names_of_pod(place, limits, requests)
    else:
        yield from _names_of_container(f"{place}.limits", limits)
        yield from _names_of_container(f"{place}.requests", requests)
    yield from _huge_pages(f"{place}.limits", limits)
    yield from _huge_pages(f"{place}.requests", requests)
    for name in {**requests, **limits}:
        if _is_extended(name) or name.startswith(_HUGE):
            yield from _not_overcommitted(place, name, limits.get(name), requests.get(name))
    everything = {*limits, *requests}
    has_main = bool(everything & {"cpu", "memory"})
    if not of_pod and not has_main and any(name.startswith(_HUGE) for name in everything):
        yield forbidden(place, "HugePages require cpu or memory")


def overhead_problems(place: str, overhead: Mapping[str, str]) -> Iterator[str]:
    """Check the pod's overhead, like the limits of a container."""
    for name, amount in overhead.items():
        yield from quantity(f"{place}[{name}]", amount)
    yield from _names_of_container(f"{place}.limits", overhead)
    yield from _huge_pages(f"{place}.limits", overhead)
    if any(name.startswith(_HUGE) for name in overhead) and not {"cpu", "memory"} & {*overhead}:
        yield forbidden(place, "HugePages require cpu or memory")


def _claims(place: str, wanted: Sequence[Any], known: Collection[str]) -> Iterator[str]:
    """Which of the pod\'s resource claims a container uses: each must be there, and be named
    once."""
    seen: set[str] = set()
    for i, claim in enumerate(wanted):
        field, name = f"{place}[{i}]", claim.name
        if not name:
            yield required(field)
            continue
        whole = f"{name}/{claim.request}" if claim.request else name
        yield from label(f"{field}.request", claim.request)
        if whole in seen or name in seen:
            yield duplicate(field, whole)
        seen.add(whole)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            why = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield not_found(field, name, why)


def _huge_pages(place: str, amounts: Mapping[str, str]) -> Iterator[str]:
    """Check that amounts of huge pages are whole pages, and that the name has a valid size."""
    for name, text in amounts.items():
        if not name.startswith(_HUGE):
            continue
        size, amount = amount_of(name.removeprefix(_HUGE)), amount_of(text)
        pages = size // NANO if size is not None and size > 0 and size % NANO == 0 else 0
        if amount is not None and not (pages and -(-amount // NANO) % pages == 0):
            why = f"{text} is not positive integer multiple of {name}"
            yield invalid(f"{place}[{name}]", text, why)


def _names_of_pod(
    place: str, limits: Mapping[str, str], requests: Mapping[str, str]
) -> Iterator[str]:
    """Refuse resources that cannot be set for a pod. A name in limits and requests is one error,
    because the request may be a default from the limit."""
    for name in {**limits, **requests}:
        if name not in COMPUTE and not name.startswith(_HUGE):
            which = "limits" if name in limits else "requests"
            yield from one_of(f"{place}.{which}[{name}]", name, _OF_PODS)


def _names_of_container(place: str, amounts: Mapping[str, str]) -> Iterator[str]:
    for name, text in amounts.items():
        if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
            yield invalid(f"{place}[{name}]", name, "must be a standard resource for containers")
        elif name.startswith("requests.") and "/" in name:
            why = "doesn't follow extended resource name standard"
            yield invalid(f"{place}[{name}]", name, why)
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
        yield required(f"{place}.limits", why)
    elif amount_of(limit) != amount_of(request):
        why = f"must be equal to {name} limit of {limit}"
        yield invalid(f"{place}.requests", str(request), why)


def amount_of(text: str) -> int | None:
    """The amount in nano units; None for a text that is not a quantity."""
    try:
        return parse_nano(text)
    except QuantityError:
        return None  # `amount_problems` reports it


def _is_fraction(text: str) -> bool:
    amount = amount_of(text)
    return amount is not None and amount % NANO != 0
