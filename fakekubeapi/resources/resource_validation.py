"""What is wrong with the requests and limits of a container. Pure."""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.resources.checks import NOT_NEGATIVE
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.names import qualified_name_problems
from kubeobjects.quantity import NANO, parse_nano

Object = dict[str, Any]
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")


def _overcommits(name: str) -> bool:
    """Whether requests and limits of it may differ."""
    return name in _STANDARD or "kubernetes.io/" in name


def resource_causes(resources: Object, path: str, claims: list[str]) -> list[Cause]:
    """What is wrong; `claims`: the names of the pod's resource claims."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes: list[Cause] = []
    for name, amount in limits.items():
        causes += _amount_causes(name, amount, f"{path}.limits[{name}]")
    for name, amount in requests.items():
        causes += _amount_causes(name, amount, f"{path}.requests[{name}]")
        limit = limits.get(name)
        if limit is None:
            if not _overcommits(name) and _is_known(name):
                text = "Limit must be set for non overcommitable resources"
                causes.append(required(f"{path}.limits", text))
        elif not _overcommits(name) and parse_nano(amount) != parse_nano(limit):
            text = f"must be equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{path}.requests", amount, text))
        elif parse_nano(amount) > parse_nano(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{path}.requests", amount, text))
    named = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in named) and not {"cpu", "memory"} & named:
        causes.append(forbidden_field(path, "HugePages require cpu or memory"))
    return causes + _claim_causes(resources.get("claims") or [], path, claims)


def _is_known(name: str) -> bool:
    return name in _STANDARD or "/" in name or name.startswith("hugepages-")


def _amount_causes(name: str, amount: str, path: str) -> list[Cause]:
    causes = [invalid_value(path, name, text) for text in qualified_name_problems(name)]
    if not causes and not _is_known(name):
        text = "must be a standard resource type or fully qualified"
        causes.append(invalid_value(path, name, text))
        causes.append(invalid_value(path, name, "must be a standard resource for containers"))
    held = parse_nano(amount)
    if held < 0:
        causes.append(invalid_value(path, amount, NOT_NEGATIVE))
    if "/" in name and held % NANO:
        causes.append(invalid_value(path, amount, "must be an integer"))
    return causes


def _claim_causes(listed: list[Object], path: str, claims: list[str]) -> list[Cause]:
    causes = []
    for i, claim in enumerate(listed):
        name = claim.get("name", "")
        if name and name not in claims:
            known = "which is empty" if not claims else ""
            text = f'Not found: "{name}"'
            text += f": must be one of the names in pod.spec.resourceClaims {known}".rstrip()
            causes.append(Cause(f"{path}.claims[{i}]", text, "FieldValueNotFound"))
    return causes
