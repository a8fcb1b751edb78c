"""The rules of persistent volume claims: Pending until a controller binds them; of their spec only
the amount of storage may grow."""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.errors import Cause, forbidden_field, invalid_value, required, unsupported_value
from fakekubeapi.resources.metadata import subdomain_problems
from fakekubeapi.resources.quantity import parse_quantity
from fakekubeapi.resources.strategy import Object, Strategy

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_PROTECTION: Final = "kubernetes.io/pvc-protection"
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

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_spec_causes(obj["spec"])]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if subresource:
            return causes
        causes += _spec_causes(new["spec"])
        spec = dict(new["spec"])
        if "volumeName" not in old["spec"]:
            spec.pop("volumeName", None)
        if spec != old["spec"]:
            causes.append(forbidden_field("spec", _UNCHANGEABLE))
        return causes


def _spec_causes(spec: dict[str, Any]) -> list[Cause]:
    causes: list[Cause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required("spec.accessModes", "at least 1 access mode is required"))
    causes += [
        unsupported_value("spec.accessModes", mode, ACCESS_MODES)
        for mode in modes
        if mode not in ACCESS_MODES
    ]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        causes.append(forbidden_field("spec.accessModes", text))
    storage = (spec["resources"].get("requests") or {}).get("storage")
    if storage is None:
        causes.append(required("spec.resources[storage]"))
    elif parse_quantity(storage) <= 0:
        text = "must be greater than zero"
        causes.append(invalid_value("spec.resources[storage]", storage, text))
    name = spec.get("storageClassName")
    for text in subdomain_problems(name) if name else ():
        causes.append(invalid_value("spec.storageClassName", name, text))
    mode = spec.get("volumeMode")
    if mode not in ("Block", "Filesystem"):
        causes.append(unsupported_value("spec.volumeMode", mode, ("Block", "Filesystem")))
    return causes
