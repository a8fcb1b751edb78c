"""The rules of persistent volume claims: Pending until a controller binds them; of their spec only
the amount of storage may grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fakekubeapi.resources.common.go_spelling import claims_differ
from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_texts,
    invalid_value,
    unsupported_value,
)
from kubeobjects.claims import claim_spec_causes
from kubeobjects.names import qualified_name_problems
from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.resource_names import is_native

_PROTECTION: Final = "kubernetes.io/pvc-protection"
_RESIZE_STATES: Final = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible"),
    *("NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"),
)
_UNCHANGEABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


class ClaimStrategy(Strategy):
    """The rules."""

    returns_deleted = True

    def prepare_create(self, obj: Object) -> None:
        obj["spec"].setdefault("volumeMode", "Filesystem")
        obj["status"] = {"phase": "Pending"}

    def admit(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if "finalizers" not in metadata and "resourceVersion" not in metadata:
            metadata["finalizers"] = []
        if "resourceVersion" not in metadata and _PROTECTION not in metadata["finalizers"]:
            metadata["finalizers"] = [*metadata["finalizers"], _PROTECTION]

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        new["spec"].setdefault("volumeMode", "Filesystem")
        new.setdefault("status", {}).setdefault("phase", "Pending")

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from claim_spec_causes(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        if subresource:
            yield from _status_causes(new["status"])
            return
        yield from claim_spec_causes(new["spec"], "spec")
        yield from _change_causes(new, old)


def _change_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong with how the spec changed. The volume and the class may be named later; a bound
    claim may want more, or less again than before, but not less than it has."""
    was, spec = dict(old["spec"]), dict(new["spec"])
    for late in ("volumeName", "storageClassName"):
        if late not in was and late in spec:
            was[late] = spec[late]
    if new["status"].get("phase") == "Bound":
        spec["resources"] = _with_storage(spec["resources"], _wish(was))
        spec.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in was:
            spec["volumeAttributesClassName"] = was["volumeAttributesClassName"]
    if _comparable(spec) != _comparable(was):
        yield forbidden_field("spec", f"{_UNCHANGEABLE}\n{claims_differ(was, spec)}")
    wish, before = parse_nano(_wish(new["spec"])), parse_nano(_wish(old["spec"]))
    has = parse_nano((old["status"].get("capacity") or {}).get("storage", "0"))
    if wish < before and wish <= has:
        text = "field can not be less than status.capacity"
        yield forbidden_field("spec.resources.requests.storage", text)
    mode = new["spec"].get("volumeMode")
    if mode != old["spec"].get("volumeMode"):
        yield invalid_value("volumeMode", mode, "field is immutable")


def _comparable(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with its amounts as numbers, which are the same however they are written."""
    resources = {
        kind: {name: parse_nano(amount) for name, amount in amounts.items()}
        for kind, amounts in spec["resources"].items()
        if isinstance(amounts, dict)
    }
    return {**spec, "resources": resources}


def _wish(spec: dict[str, Any]) -> str:
    """The amount of storage that a claim wants."""
    return str((spec["resources"].get("requests") or {}).get("storage", "0"))


def _with_storage(resources: dict[str, Any], amount: str) -> dict[str, Any]:
    """The resources with another amount of storage, if they have requests."""
    requests = resources.get("requests")
    if requests is None:
        return resources
    return {**resources, "requests": {**requests, "storage": amount}}


def _status_causes(status: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with the amounts of a claim's status, and with how far a resize is."""
    for name, amount in (status.get("capacity") or {}).items():
        yield from _amount_causes(amount, f"status.capacity[{name}]")
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        field = "status.allocatedResourceStatuses"
        yield from _key_causes(name, field)
        if state not in _RESIZE_STATES:
            yield unsupported_value(field, name, _RESIZE_STATES)
    for name, amount in (status.get("allocatedResources") or {}).items():
        wrong = list(_key_causes(name, "status.allocatedResources"))
        yield from wrong or _amount_causes(amount, f"status.allocatedResources[{name}]")


def _amount_causes(amount: str, field: str) -> Iterator[Cause]:
    """A negative amount, which is shown rounded away from 0."""
    if parse_nano(amount) < 0:
        yield invalid_value(field, parse_nano(amount) // NANO, "must be a valid resource quantity")


def _key_causes(name: str, field: str) -> Iterator[Cause]:
    """What is wrong with the name of a resource of a claim: names of Kubernetes' own resources are
    `storage` only."""
    problems = qualified_name_problems(name)
    yield from invalid_texts(field, name, problems)
    if not problems and is_native(name) and name != "storage":
        yield unsupported_value(field, name, ("storage",))
