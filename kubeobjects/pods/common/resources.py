"""Checks requests, limits and claims, of containers and of pods. Pure.

Upstream: validateResourceRequirements, validateResourceClaimNames; pkg/apis/core/helper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import (
    MOST_ALIKE,
    Cause,
    Word,
    duplicate,
    forbidden_field,
    invalid_value,
    not_found,
    required,
    unsupported_value,
)
from kubeobjects.names import qualified_name_problems
from kubeobjects.pods.common.checks import NOT_NEGATIVE, Object, label
from kubeobjects.quantity import MILLI, NANO, QuantityError, canonical, parse_nano
from kubeobjects.resource_names import HUGE_PAGES, is_extended_resource, is_native, is_pod_level

_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", HUGE_PAGES, "memory")
_COUNTED: Final = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets"),
        *("configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_STANDARD: Final = _COUNTED | frozenset(
    (
        *_OF_CONTAINERS,
        *(f"{which}.{name}" for which in ("requests", "limits") for name in _OF_CONTAINERS),
        *("storage", "requests.storage"),
    )
)
_WITHOUT_LIMIT: Final = "Limit must be set for non overcommitable resources"


def requirement_causes(
    resources: Object, path: str, *, claims: Collection[str] = (), of_pod: bool = False
) -> Iterator[Cause]:
    """What is wrong with the resources of a container, or of a pod itself (`of_pod`). `claims`: the
    names of the pod's resource claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    name_causes = _pod_name_causes if of_pod else _container_name_causes
    for name, amount in limits.items():
        yield from _amount_causes(name, str(amount), f"{path}.limits[{name}]", name_causes)
        yield from _page_causes(name, str(amount), f"{path}.limits[{name}]")
    for name, amount in requests.items():
        yield from _amount_causes(name, str(amount), f"{path}.requests[{name}]", name_causes)
        yield from _limited_causes(name, str(amount), limits, path)
        yield from _page_causes(name, str(amount), f"{path}.requests[{name}]")
    named = {*limits, *requests}
    if any(name.startswith(HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")
    yield from _claim_causes(resources.get("claims") or (), f"{path}.claims", claims)


# -- names -----------------------------------------------------------------------------------------


def _overcommits(name: str) -> bool:
    """Whether requests and limits of it may differ."""
    return is_native(name) and not name.startswith(HUGE_PAGES)


def _resource_name_causes(name: str, path: str) -> Iterator[Cause]:
    problems = qualified_name_problems(name)
    for problem in problems:
        yield invalid_value(path, Word(name), problem)
    huge = name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    if not problems and "/" not in name and name not in _STANDARD and not huge:
        yield invalid_value(path, Word(name), "must be a standard resource type or fully qualified")


def _container_name_causes(name: str, path: str) -> Iterator[Cause]:
    yield from _resource_name_causes(name, path)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGE_PAGES):
            yield invalid_value(path, Word(name), "must be a standard resource for containers")
    elif not is_native(name) and not is_extended_resource(name):
        yield invalid_value(path, Word(name), "doesn't follow extended resource name standard")


def _pod_name_causes(name: str, path: str) -> Iterator[Cause]:
    causes = list(_resource_name_causes(name, path))
    yield from causes
    if not causes and not is_pod_level(name):
        yield unsupported_value(path, name, _OF_PODS)


# -- amounts ---------------------------------------------------------------------------------------


def _amount_causes(
    name: str, amount: str, path: str, name_causes: Callable[[str, str], Iterator[Cause]]
) -> Iterator[Cause]:
    yield from name_causes(name, path)
    nano = parse_nano(amount)
    if nano < 0:
        yield invalid_value(path, canonical(amount), NOT_NEGATIVE)
    if (name in _COUNTED or is_extended_resource(name)) and -(-nano // MILLI) % 1000:
        yield invalid_value(path, canonical(amount), "must be an integer")


def _limited_causes(
    name: str, amount: str, limits: Mapping[str, Any], path: str
) -> Iterator[Cause]:
    """A request beside its limit."""
    if name not in limits:
        if not _overcommits(name):
            yield required(f"{path}.limits", _WITHOUT_LIMIT)
        return
    limit = str(limits[name])
    amount_asked, most = parse_nano(amount), parse_nano(limit)
    relation = ""
    if amount_asked != most and not _overcommits(name):
        relation = "equal to"
    elif amount_asked > most:
        relation = "less than or equal to"
    if relation:
        text = f"must be {relation} {name} limit of {canonical(limit)}"
        yield invalid_value(f"{path}.requests", canonical(amount), text)


def _page_causes(name: str, amount: str, path: str) -> Iterator[Cause]:
    """Huge pages: whole pages, of a size that is an amount."""
    if not name.startswith(HUGE_PAGES):
        return
    try:
        size = parse_nano(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        size = 0
    whole = size > 0 and size % NANO == 0
    if not whole or -(-parse_nano(amount) // NANO) % (size // NANO):
        pages = canonical(amount)
        yield invalid_value(path, pages, f"{pages} is not positive integer multiple of {name}")


# -- claims ----------------------------------------------------------------------------------------


def claim_names(spec: Object) -> set[str]:
    """The names of a pod's claims for devices."""
    return {claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")}


def _claim_causes(listed: Collection[Object], path: str, known: Collection[str]) -> Iterator[Cause]:
    """Which of the pod's claims it uses: each has to be there, and is used once."""
    used: set[str] = set()
    parts: Counter[str] = Counter()
    listing = f": {', '.join(sorted(known))}" if known else " which is empty"
    missing = 0
    for i, claim in enumerate(listed):
        claim_path, name = f"{path}[{i}]", claim.get("name") or ""
        if not name:
            yield required(claim_path)
            continue
        yield from _use_causes(claim, claim_path, used, parts)
        if name not in known and missing < MOST_ALIKE:
            missing += 1
            text = f"must be one of the names in pod.spec.resourceClaims{listing}"
            yield not_found(claim_path, name, text)


def _use_causes(claim: Object, path: str, used: set[str], parts: Counter[str]) -> Iterator[Cause]:
    """A claim may be used once as a whole, or once for each of its requests. `used`: what is used
    already, to which this is added; `parts`: how many requests of each claim these are."""
    name, request = claim["name"], claim.get("request") or ""
    if name in used:
        yield duplicate(path, name)
        return
    whole = f"{name}/{request}" if request else name
    if request:
        yield from label(request, f"{path}.request")
    if whole in used:
        yield duplicate(path, whole)
        return
    if request:
        parts[name] += 1
    else:
        yield from [duplicate(path, name)] * parts[name]
    used.add(whole)
