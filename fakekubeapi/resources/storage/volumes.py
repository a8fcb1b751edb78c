"""The rules of persistent volumes: of one source, which does not change, nor does the mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fakekubeapi.resources.common.go_spelling import sources_differ
from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from kubeobjects.claims import ACCESS_MODES, VOLUME_MODES
from kubeobjects.csi_sources import csi_volume_causes
from kubeobjects.names import subdomain_problems
from kubeobjects.pods.common.checks import optional_word
from kubeobjects.schema.messages import message

_PROTECTION: Final = "kubernetes.io/pv-protection"
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_EXPAND_SECRET: Final = "controllerExpandSecretRef"


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

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _spec_causes(obj["spec"])

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        if subresource:
            return
        for _ in range(2):  # so often the API server looks at it
            yield from _spec_causes(new["spec"])
        yield from _source_change_causes(new["spec"], old["spec"])
        mode = new["spec"].get("volumeMode")
        if mode != old["spec"].get("volumeMode"):
            yield invalid_value("volumeMode", mode, "field is immutable")
        attributes = "volumeAttributesClassName"
        if attributes in old["spec"] and attributes not in new["spec"]:
            text = "update from non-nil value to nil is forbidden"
            yield forbidden_field(f"spec.{attributes}", text)


def _complete(spec: dict[str, Any]) -> None:
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")


def _source_change_causes(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong if the source of a volume is not what it was. A CSI volume may get the secret
    with which it is made larger, if it has none."""
    if (old.get("csi") or {}).get(_EXPAND_SECRET) is None and new.get("csi") is not None:
        without_secret = {key: value for key, value in new["csi"].items() if key != _EXPAND_SECRET}
        new = {**new, "csi": without_secret} if old.get("csi") is not None else new
    if _sources(new) == _sources(old):
        return
    text = "spec.persistentvolumesource is immutable after creation"
    diff = sources_differ(old, new)
    yield forbidden_field("spec.persistentvolumesource", f"{text}\n{diff}" if diff else text)


def _sources(spec: dict[str, Any]) -> dict[str, Any]:
    kinds = message("core.v1.PersistentVolumeSource").in_json
    return {key: value for key, value in spec.items() if key in kinds}


def _spec_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    yield from access_mode_causes(spec, "spec")
    if not spec.get("capacity"):
        yield required("spec.capacity")
        yield unsupported_value("spec.capacity", None, ("storage",))
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from optional_word(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICIES)
    yield from source_causes(spec, "spec")
    yield from _class_causes(spec)


def source_causes(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the source of a volume, whose spec is at `path`."""
    sources = _sources(spec)
    if not sources:
        yield required(path, "must specify a volume type")
        return
    for kind in ("hostPath", "local"):
        if kind in sources and not sources[kind].get("path"):
            yield required(f"{path}.{kind}.path")
    affinity = (spec.get("nodeAffinity") or {}).get("required")
    if "local" in sources and affinity is None:
        text = "Local volume requires node affinity"
        yield required(f"{path}.nodeAffinity", text)
    if "csi" in sources and len(sources) > 1:
        text = "may not specify more than 1 volume type"
        yield forbidden_field(f"{path}.csi", text)
    elif "csi" in sources:
        yield from csi_volume_causes(sources["csi"], f"{path}.csi")


def access_mode_causes(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the accessModes of a volume's spec, which is at `path`."""
    field, modes = f"{path}.accessModes", spec.get("accessModes") or []
    if not modes:
        yield required(field)
    for mode in modes:
        yield from optional_word(mode, field, ACCESS_MODES)
    valid_modes = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in valid_modes and len(valid_modes) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        yield forbidden_field(field, text)


def _class_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    """What is wrong with the classes and the mode of a volume."""
    name = spec.get("storageClassName") or ""
    for text in subdomain_problems(name) if name else ():
        yield invalid_value("spec.storageClassName", name, text)
    yield from optional_word(spec.get("volumeMode"), "spec.volumeMode", VOLUME_MODES)
    attributes = spec.get("volumeAttributesClassName")
    if attributes is None:
        return
    field = "spec.volumeAttributesClassName"
    if not attributes:
        yield required(field, "an empty string is disallowed")
    for text in subdomain_problems(attributes) if attributes else ():
        yield invalid_value(field, attributes, text)
    if spec.get("csi") is None:
        text = "has to be specified when using volumeAttributesClassName"
        yield required("spec.csi", text)
