"""The rules of persistent volumes: of one source, which does not change, nor does the mode."""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.errors import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from fakekubeapi.resources.claims import ACCESS_MODES
from fakekubeapi.resources.strategy import Object, Strategy

_PROTECTION: Final = "kubernetes.io/pv-protection"
_NO_SOURCES: Final = frozenset(
    [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ]
)
"""The fields of a spec that are no sources."""


class VolumeStrategy(Strategy):
    """The rules."""

    returns_deleted = True

    def prepare_create(self, obj: Object) -> None:
        _complete(obj["spec"])
        obj["status"] = {"phase": "Pending"}

    def admit(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if "resourceVersion" not in metadata:
            finalizers = metadata.get("finalizers") or []
            if _PROTECTION not in finalizers:
                metadata["finalizers"] = [*finalizers, _PROTECTION]

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        _complete(new["spec"])
        new.setdefault("status", {}).setdefault("phase", "Pending")

    def set_times(self, new: Object, old: Object, now: str) -> None:
        status, before = new["status"], old.get("status", {})
        since = status.get("lastPhaseTransitionTime")
        is_new = since is None or since == before.get("lastPhaseTransitionTime")
        if status.get("phase") != before.get("phase") and is_new:
            status["lastPhaseTransitionTime"] = now

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_spec_causes(obj["spec"])]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if subresource:
            return causes
        causes += _spec_causes(new["spec"])
        if _sources(new["spec"]) != _sources(old["spec"]):
            text = "spec.persistentvolumesource is immutable after creation"
            causes.append(forbidden_field("spec.persistentvolumesource", text))
        mode = new["spec"].get("volumeMode")
        if mode != old["spec"].get("volumeMode"):
            causes.append(invalid_value("volumeMode", mode, "field is immutable"))
        return causes


def _complete(spec: dict[str, Any]) -> None:
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")


def _sources(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _NO_SOURCES}


def _spec_causes(spec: dict[str, Any]) -> list[Cause]:
    causes: list[Cause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required("spec.accessModes"))
    causes += [
        unsupported_value("spec.accessModes", mode, ACCESS_MODES)
        for mode in modes
        if mode not in ACCESS_MODES
    ]
    if not spec.get("capacity"):
        causes.append(required("spec.capacity"))
        causes.append(unsupported_value("spec.capacity", None, ("storage",)))
    sources = _sources(spec)
    if not sources:
        causes.append(required("spec", "must specify a volume type"))
    for kind in ("hostPath", "local"):
        if kind in sources and not sources[kind].get("path"):
            causes.append(required(f"spec.{kind}.path"))
    affinity = (spec.get("nodeAffinity") or {}).get("required")
    if "local" in sources and affinity is None:
        text = "Local volume requires node affinity"
        causes.append(required("spec.nodeAffinity", text))
    return causes
