"""The rules of volumes that are attached to nodes (VolumeAttachment): what shall be attached where
never changes; whether it is, is told through /status.

Upstream: pkg/apis/storage/validation, pkg/registry/storage/volumeattachment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.common.go_spelling import attachment_spec
from fakekubeapi.resources.common.strategy import Object
from fakekubeapi.resources.storage.drivers import CheckedAnewStrategy
from fakekubeapi.resources.storage.volumes import access_mode_causes, source_causes
from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_texts,
    invalid_value,
    required,
    too_long,
)
from kubeobjects.csi_sources import driver_name_causes
from kubeobjects.metadata import IMMUTABLE
from kubeobjects.names import subdomain_problems
from kubeobjects.pods.common.checks import between

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

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _causes(obj)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        if new["spec"] != old["spec"]:
            yield invalid_value("spec", attachment_spec(new["spec"]), IMMUTABLE)


def _complete(source: dict[str, Any]) -> None:
    host_path = (source.get("inlineVolumeSpec") or {}).get("hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")


def _causes(obj: Object) -> Iterator[Cause]:
    spec = obj["spec"]
    source, node = spec["source"], spec["nodeName"]
    yield from driver_name_causes(spec["attacher"], "spec.attacher")
    yield from _source_causes(source)
    yield from invalid_texts("spec.nodeName", node, subdomain_problems(node))
    yield from _status_causes(obj["status"])
    name = source.get("persistentVolumeName")
    if name is not None:
        field = "spec.source.persistentVolumeName"
        yield from invalid_texts(field, name, subdomain_problems(name))


def _source_causes(source: dict[str, Any]) -> Iterator[Cause]:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        yield required("spec.source", _ONE_SOURCE)
        return
    if inline is None:
        text = "must specify non empty persistentVolumeName"
        if not name:
            yield required("spec.source.persistentVolumeName", text)
    elif name is not None:
        yield forbidden_field("spec.source", _ONE_SOURCE)
    else:
        yield from _inline_causes(inline, "spec.source.inlineVolumeSpec")


def _inline_causes(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Causes for a volume given in the attachment itself: it must be one of CSI, with few
    fields."""

    def unwanted(field: str) -> Iterator[Cause]:
        text = f"may not be specified {_IN_CONTEXT}"
        if spec.get(field):
            yield forbidden_field(f"{path}.{field}", text)

    def only(field: str, value: str, text: str) -> Iterator[Cause]:
        if spec.get(field, value) != value:
            yield forbidden_field(f"{path}.{field}", f"{text} {value} {_IN_CONTEXT}")

    yield from unwanted("claimRef")
    yield from unwanted("capacity")
    if spec.get("csi") is None:
        yield required(f"{path}.csi", f"has to be specified {_IN_CONTEXT}")
    yield from access_mode_causes(spec, path)
    yield from only("persistentVolumeReclaimPolicy", "Retain", "may only be")
    if spec.get("nodeAffinity") is not None:
        text = f"may not be specified {_IN_CONTEXT}"
        yield forbidden_field(f"{path}.nodeAffinity", text)
    yield from source_causes(spec, path)
    yield from unwanted("storageClassName")
    yield from only("volumeMode", "Filesystem", "may not specify volumeMode other than")


def _status_causes(status: dict[str, Any]) -> Iterator[Cause]:
    metadata = status.get("attachmentMetadata") or {}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > _MAX_METADATA:
        yield too_long("status.attachmentMetadata", _MAX_METADATA)
    for field in ("attachError", "detachError"):
        error, path = status.get(field) or {}, f"status.{field}"
        if len(error.get("message", "").encode()) > _MAX_MESSAGE:
            yield too_long(f"{path}.message", _MAX_METADATA)
        code = error.get("errorCode")
        yield from between(code, f"{path}.errorCode", 0, (1 << 31) - 1)
