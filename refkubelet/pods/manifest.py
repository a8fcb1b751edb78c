"""Parses a manifest into a static pod with all its defaults, or raises one error. Pure.

Rules: SRC-004, SRC-030..038. Upstream: pkg/kubelet/config/common.go: tryDecodeSinglePod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubeobjects.causes import invalid_value
from kubeobjects.pods.validation import pod_causes
from kubeobjects.yaml.document import Document, Path, YamlError, dotted, read_json_or_yaml
from refkubelet.model.conversions import convert
from refkubelet.model.defaults import apply_static_defaults
from refkubelet.model.names import name_problem
from refkubelet.model.objects import Pod, decode_pod, to_dict
from refkubelet.model.pod_amounts import AmountError, with_amounts
from refkubelet.model.pod_schema import fit_to_version, wide_fields
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.api_references import api_object_reference

_MSGSPEC: Final = re.compile(r"(?P<what>.*?) - at `\$(?P<path>[^`]*)`\Z", re.DOTALL)
_TYPES: Final = {"str": "a text", "int": "an integer", "bool": "true or false", "array": "a list"}
_TYPES_FOUND: Final = {**_TYPES, "object": "a mapping", "null": "nothing", "float": "a number"}
_JSON_TYPES: Final = {bool: "bool", int: "int", list: "array", dict: "object"}


class ManifestError(ValueError):
    """A manifest without a valid pod; the text names line and field, not the file."""


def read_manifest(data: bytes, *, source: PodSource, origin: str, node_name: str) -> Pod:
    """The pod of a YAML or JSON manifest, with defaults, UID and name. `origin`: path or URL.

    Of several YAML documents the first counts, unknown fields are ignored (SRC-004). Raises
    `ManifestError`.
    """
    document = read_document(data)
    return pod_of(document, source=source, origin=origin, node_name=node_name)


def read_document(data: bytes) -> Document:
    """The value of a text in YAML or JSON, not yet a pod. Raises `ManifestError`."""
    try:
        return read_json_or_yaml(data)
    except YamlError as e:
        raise ManifestError(str(e)) from None


def pod_of(document: Document, *, source: PodSource, origin: str, node_name: str) -> Pod:
    """Like `read_manifest`, of a text that was read. The document stays as it is."""
    pod = convert(_decode(document))
    if not pod.metadata.name:
        raise ManifestError("invalid pod: name is needed for the pod")
    own_uid = pod.metadata.uid or ""
    pod = apply_static_defaults(pod, source=source, origin=origin, node_name=node_name)
    causes = pod_causes(to_dict(pod), static=True)  # of the final name, with the node's name in it
    if causes:
        raise ManifestError(f"invalid pod: [{', '.join(cause.text for cause in causes)}]")
    reference = api_object_reference(pod)
    if reference is not None:
        raise ManifestError(f"static pods may not reference {reference}")
    _check_uid(own_uid)
    return pod


def _check_uid(uid: str) -> None:
    """Refuse a UID that cannot be part of a path (SRC-025)."""
    why = name_problem(uid) if uid else None
    if why is not None:
        cause = invalid_value("metadata.uid", uid, why)
        raise ManifestError(f"invalid pod: [{cause.text}]")


def _decode(document: Document) -> Pod:
    """The pod as it is written, with checked types. Raises `ManifestError`."""
    value = document.value
    if value is None:
        raise ManifestError("the file is empty; wanted one v1 Pod")
    if not isinstance(value, dict):
        raise ManifestError("wanted one v1 Pod, found no mapping")
    for field, expected_value in (("apiVersion", "v1"), ("kind", "Pod")):
        if value.get(field) != expected_value:
            actual_value = value.get(field, "nothing")
            place = _place(document, (field,))
            raise ManifestError(f"{place}{field}: wanted {expected_value}, found {actual_value}")
    try:
        value = with_amounts(value)
    except AmountError as e:
        raise ManifestError(f"{_place(document, e.path)}{dotted(e.path)}: {e}") from None
    fit_to_version(value)
    try:
        pod = decode_pod(value)
    except msgspec.ValidationError as e:
        raise ManifestError(_explain(str(e), document)) from None
    _refuse_large(_large_number(msgspec.to_builtins(pod), 32), document)
    _check_times(pod, document)
    return _with_texts(pod, document)


def _with_texts(pod: Pod, document: Document) -> Pod:
    """The pod with checked maps of texts, which the decoder does not check; null becomes ""."""
    marks = {
        field: _texts(getattr(pod.metadata, field), ("metadata", field), document)
        for field in ("labels", "annotations")
    }
    selector = _texts(pod.spec.nodeSelector, ("spec", "nodeSelector"), document)
    return replace(
        pod,
        metadata=replace(pod.metadata, **marks),
        spec=replace(pod.spec, nodeSelector=selector),
    )


def _texts(values: dict[str, Any] | None, path: Path, document: Document) -> dict[str, str] | None:
    for key, value in (values or {}).items():
        if value is not None and not isinstance(value, str):
            where = (*path, key)
            type_found = _TYPES_FOUND.get(_JSON_TYPES.get(type(value), ""), "a number")
            raise ManifestError(
                f"{_place(document, where)}{dotted(where)}: wanted a text, found {type_found}"
            )
    return {key: value or "" for key, value in values.items()} if values else values


def _check_times(pod: Pod, document: Document) -> None:
    """Refuse times without a zone: they are not RFC 3339, and cannot be compared with others."""
    for field in ("creationTimestamp", "deletionTimestamp"):
        time = getattr(pod.metadata, field, None)
        if time is not None and time.tzinfo is None:
            place = _place(document, ("metadata", field))
            expected_form = "wanted a time with its zone, such as 2026-01-02T03:04:05Z"
            raise ManifestError(f"{place}metadata.{field}: {expected_form}")


def _refuse_large(found: tuple[Path, int, int] | None, document: Document) -> None:
    if found is not None:
        path, number, bits = found
        digits = str(number)
        why = f"{digits if len(digits) < 40 else digits[:40] + '...'} does not fit into {bits} bits"
        raise ManifestError(f"{_place(document, path)}{dotted(path)}: {why}")


def _large_number(value: Any, bits: int) -> tuple[Path, int, int] | None:
    """The first integer with more bits than its field: its path, itself, and the bits; or None.
    `wide_fields` have 64 bits, other fields `bits`; what `fieldsV1` holds nobody decodes."""
    if isinstance(value, int) and not -(1 << bits - 1) <= value < 1 << bits - 1:
        return (), value, bits
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for name, item in parts:
        if name == "fieldsV1":
            continue
        large = _large_number(item, 64 if name in wide_fields() else bits)
        if large is not None:
            path, number, width = large
            return (name, *path), number, width
    return None


def _place(document: Document, path: Path) -> str:
    line = document.line_of(path)
    return f"line {line}: " if line is not None else ""


def _explain(text: str, document: Document) -> str:
    """The decoder's error in plain words, with the line.

    `Expected `str | null`, got `int` - at `$.metadata.name`` reads
    `line 4: metadata.name: wanted a text, found an integer`.
    """
    match = _MSGSPEC.match(text)
    if match is None:
        return text
    path = _path(match["path"])
    words = re.match(r"Expected `([^`]*)`, got `([^`]*)`\Z", match["what"])
    why = match["what"]
    if words is not None:
        expected_types = [_TYPES.get(t, t) for t in words[1].split(" | ") if t != "null"]
        found_type = _TYPES_FOUND.get(words[2], words[2])
        why = f"wanted {' or '.join(expected_types)}, found {found_type}"
        why = why.replace("wanted object", "wanted a mapping")
    missing = re.match(r"Object missing required field `([^`]*)`\Z", match["what"])
    if missing is not None:
        why = f"{missing[1]} is missing"
    field = match["path"].lstrip(".")
    return f"{_place(document, path)}{field}: {why}" if field else why


def _path(text: str) -> Path:
    parts: list[Any] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d*|\.\.\.)\]", text):
        parts.append(name or (int(index) if index.isdigit() else "..."))
    return tuple(parts)
