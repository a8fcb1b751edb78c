"""What is wrong with names, labels and other metadata, in the order in which the API server says
it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.names import label_value_problems, qualified_name_problems

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
        problems = rule(f"{begin[:-1]}a" if begin.endswith("-") else begin)
        causes += [invalid_value("metadata.generateName", begin, text) for text in problems]
    if not name:
        return [*causes, required("metadata.name", "name or generateName is required")]
    return causes + [invalid_value("metadata.name", name, text) for text in rule(name)]


def metadata_causes(metadata: Object) -> list[Cause]:
    """What is wrong with generation, labels, annotations and owners: with new objects and changed
    ones."""
    causes: list[Cause] = []
    for key, value in (metadata.get("labels") or {}).items():
        for text in qualified_name_problems(key):
            causes.append(invalid_value("metadata.labels", key, text))
        for text in label_value_problems(value):
            causes.append(invalid_value("metadata.labels", value, text))
    causes += _annotation_causes(metadata.get("annotations") or {})
    causes += _owner_causes(metadata.get("ownerReferences") or [])
    return causes


def _annotation_causes(annotations: Object) -> list[Cause]:
    causes = [
        invalid_value("metadata.annotations", key, text)
        for key in annotations
        for text in qualified_name_problems(key.lower())
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {_MAX_ANNOTATIONS_BYTES} bytes"
        causes.append(Cause("metadata.annotations", message, "FieldValueTooLong"))
    return causes


def _owner_causes(owners: Sequence[Object]) -> list[Cause]:
    causes: list[Cause] = []
    field, first = "metadata.ownerReferences", ""
    for owner in owners:
        version = owner.get("apiVersion", "").rpartition("/")[2]
        if not version:
            text = "version must not be empty"
            causes.append(invalid_value(f"{field}.apiVersion", owner.get("apiVersion", ""), text))
        causes += [
            invalid_value(f"{field}.{key}", "", "must not be empty")
            for key in ("kind", "name", "uid")
            if not owner.get(key)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            text = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid_value(field, owner, text))
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if first:
                text = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {first} and {name}'
                )
                causes.append(invalid_value(field, list(owners), text))
            first = first or name
    return causes


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
