"""The rules of volumes that are attached to nodes (VolumeAttachment): what shall be attached where
never changes; whether it is, is told through /status.

Upstream: pkg/apis/storage/validation, pkg/registry/storage/volumeattachment.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.common.go_spelling import attachment_spec
from fakekubeapi.resources.common.strategy import Object
from fakekubeapi.resources.storage.drivers import CheckedAnewStrategy
from fakekubeapi.resources.storage.volumes import access_mode_causes, source_causes
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required, too_long
from kubeobjects.csi_sources import driver_name_causes
from kubeobjects.metadata import IMMUTABLE
from kubeobjects.names import subdomain_problems

_MAX_METADATA: Final = 256 * 1024
_MAX_MESSAGE: Final = 1024
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_IN_CONTEXT: Final = "in the context of inline volumes"
_STATUS_KEEPS: Final = ("labels", "annotations", "finalizers", "ownerReferences")
"""The metadata that a request to the status does not change."""


class AttachmentStrategy(CheckedAnewStrategy):
    """The rules."""

    def prepare_create(self, obj: Object) -> None:
        _complete(obj["spec"]["source"])
        obj["status"] = {"attached": False}

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if not subresource:
            _complete(new["spec"]["source"])
            new["status"] = copy_json(old["status"])
            return
        new["spec"] = copy_json(old["spec"])
        for field in _STATUS_KEEPS:
            new["metadata"].pop(field, None)
            if field in old["metadata"]:
                new["metadata"][field] = copy_json(old["metadata"][field])

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_causes(obj)]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        if new["spec"] != old["spec"]:
            causes.append(invalid_value("spec", attachment_spec(new["spec"]), IMMUTABLE))
        return causes


def _complete(source: dict[str, Any]) -> None:
    host_path = (source.get("inlineVolumeSpec") or {}).get("hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")


def _causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    source, node = spec["source"], spec["nodeName"]
    causes = driver_name_causes(spec["attacher"], "spec.attacher")
    causes += _source_causes(source)
    causes += [invalid_value("spec.nodeName", node, text) for text in subdomain_problems(node)]
    causes += _status_causes(obj["status"])
    name = source.get("persistentVolumeName")
    for text in subdomain_problems(name) if name is not None else ():
        causes.append(invalid_value("spec.source.persistentVolumeName", name, text))
    return causes


def _source_causes(source: dict[str, Any]) -> list[Cause]:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        return [required("spec.source", _ONE_SOURCE)]
    if inline is None:
        text = "must specify non empty persistentVolumeName"
        return [] if name else [required("spec.source.persistentVolumeName", text)]
    if name is not None:
        return [forbidden_field("spec.source", _ONE_SOURCE)]
    return _inline_causes(inline, "spec.source.inlineVolumeSpec")


def _inline_causes(spec: dict[str, Any], path: str) -> list[Cause]:
    """Causes for a volume given in the attachment itself: it must be one of CSI, with few
    fields."""

    def unwanted(field: str) -> list[Cause]:
        text = f"may not be specified {_IN_CONTEXT}"
        return [forbidden_field(f"{path}.{field}", text)] if spec.get(field) else []

    def only(field: str, value: str, text: str) -> list[Cause]:
        wrong = spec.get(field, value) != value
        return [forbidden_field(f"{path}.{field}", f"{text} {value} {_IN_CONTEXT}")] * wrong

    causes = [*unwanted("claimRef"), *unwanted("capacity")]
    if spec.get("csi") is None:
        causes.append(required(f"{path}.csi", f"has to be specified {_IN_CONTEXT}"))
    causes += access_mode_causes(spec, path)
    causes += only("persistentVolumeReclaimPolicy", "Retain", "may only be")
    if spec.get("nodeAffinity") is not None:
        text = f"may not be specified {_IN_CONTEXT}"
        causes.append(forbidden_field(f"{path}.nodeAffinity", text))
    causes += source_causes(spec, path)
    causes += unwanted("storageClassName")
    return causes + only("volumeMode", "Filesystem", "may not specify volumeMode other than")


def _status_causes(status: dict[str, Any]) -> list[Cause]:
    causes: list[Cause] = []
    metadata = status.get("attachmentMetadata") or {}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > _MAX_METADATA:
        causes.append(too_long("status.attachmentMetadata", _MAX_METADATA))
    for field in ("attachError", "detachError"):
        error, path = status.get(field) or {}, f"status.{field}"
        if len(error.get("message", "").encode()) > _MAX_MESSAGE:
            causes.append(too_long(f"{path}.message", _MAX_METADATA))
        code = error.get("errorCode")
        if code is not None and code < 0:
            text = "must be between 0 and 2147483647, inclusive"
            causes.append(invalid_value(f"{path}.errorCode", code, text))
    return causes
