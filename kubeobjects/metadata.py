"""What is wrong with names, labels and other metadata, in the order in which the API server says
it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubeobjects.causes import (
    MOST_ALIKE,
    Cause,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from kubeobjects.names import byte_length, qualified_name_problems
from kubeobjects.selectors import label_causes

Object = dict[str, Any]
NameRule = Callable[[str], list[str]]

DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
IMMUTABLE: Final = "field is immutable"


def name_causes(metadata: Object, rule: NameRule) -> list[Cause]:
    """What is wrong with name and generateName."""
    causes: list[Cause] = []
    begin, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if begin:
        ends = len(begin) > 1 and begin.endswith("-")  # more follows
        problems = rule(f"{begin[:-2]}a" if ends else begin)
        causes += [invalid_value("metadata.generateName", begin, text) for text in problems]
    if not name:
        return [*causes, required("metadata.name", "name or generateName is required")]
    return causes + [invalid_value("metadata.name", name, text) for text in rule(name)]


def metadata_causes(metadata: Object) -> list[Cause]:
    """What is wrong with generation, labels, annotations and owners: with new objects and changed
    ones."""
    causes: list[Cause] = []
    causes += label_causes(metadata.get("labels"), "metadata.labels")
    causes += annotation_causes(metadata.get("annotations") or {}, "metadata.annotations")
    causes += _owner_causes(metadata.get("ownerReferences") or [])
    return causes


def annotation_causes(annotations: Mapping[str, str], path: str) -> list[Cause]:
    """What is wrong with annotations at `path`: their keys, in which case does not matter, and
    their size."""
    causes = [
        invalid_value(path, key, text)
        for key in annotations
        for text in qualified_name_problems(key.lower())
    ]
    size = sum(byte_length(key) + byte_length(value or "") for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        causes.append(too_long(path, _MAX_ANNOTATIONS_BYTES))
    return causes


def _owner_causes(owners: Sequence[Object]) -> list[Cause]:
    causes: list[Cause] = []
    field, first, more = "metadata.ownerReferences", "", 0
    for owner in owners:
        causes += _reference_causes(owner, field)
        if owner.get("controller"):
            name = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            more += bool(first)
            if first and more <= MOST_ALIKE:
                text = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {first} and {name}'
                )
                causes.append(invalid_value(field, [*map(_shown_owner, owners)], text))
            first = first or name
    return causes


def _reference_causes(owner: Object, field: str) -> list[Cause]:
    """What is wrong with one owner."""
    causes: list[Cause] = []
    api = owner.get("apiVersion") or ""
    if not api.rpartition("/")[2] or api.count("/") > 1:
        causes.append(invalid_value(f"{field}.apiVersion", api, "version must not be empty"))
    causes += [
        invalid_value(f"{field}.{key}", "", "must not be empty")
        for key in ("kind", "name", "uid")
        if not owner.get(key)
    ]
    if (api, owner.get("kind")) == ("v1", "Event"):
        text = "/v1, Kind=Event is disallowed from being an owner"
        causes.append(invalid_value(field, _shown_owner(owner), text))
    return causes


def _shown_owner(owner: Object) -> Object:
    """An owner with its fields in the API's order."""
    needed = {field: owner.get(field) or "" for field in ("apiVersion", "kind", "name", "uid")}
    optional = ("controller", "blockOwnerDeletion")
    return {**needed, **{field: owner[field] for field in optional if owner.get(field) is not None}}


def server_owned_causes(new: Object, old: Object) -> list[Cause]:
    """What is wrong if an update says of the UID or of a deletion what is not so: only the server
    does."""
    return [
        invalid_value(f"metadata.{field}", new[field], IMMUTABLE)
        for field in ("uid", *DELETION)
        if field in new and new[field] != old.get(field)
    ]


def finalizer_causes(metadata: Object, *, core: bool) -> list[Cause]:
    """What is wrong with the finalizers. `core`: of an object of the core group, in which those
    without a domain have to be known."""
    causes: list[Cause] = []
    finalizers = metadata.get("finalizers") or []
    for name in finalizers:
        for text in qualified_name_problems(name):
            causes.append(invalid_value("metadata.finalizers", name, text))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value("metadata.finalizers", finalizers, text))
    for i, name in enumerate(finalizers if core else ()):
        field = f"metadata.finalizers[{i}]"
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(field, name, text))
    return causes


def new_finalizer_causes(new: Object, old: Object) -> list[Cause]:
    """What is wrong if an update adds finalizers to an object that is being deleted."""
    if "deletionTimestamp" not in old:
        return []
    was = set(old.get("finalizers") or ())
    added = [name for name in new.get("finalizers") or () if name not in was]
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    text = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{listed}}}"
    )
    return [forbidden_field("metadata.finalizers", text)]
