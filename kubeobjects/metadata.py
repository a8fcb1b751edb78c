"""What is wrong with names, labels and other metadata, in the order in which the API server says
it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubeobjects.causes import (
    MOST_ALIKE,
    Cause,
    forbidden_field,
    invalid_texts,
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


def name_causes(metadata: Object, rule: NameRule) -> Iterator[Cause]:
    """What is wrong with name and generateName."""
    begin, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if begin:
        ends = len(begin) > 1 and begin.endswith("-")  # more follows
        problems = rule(f"{begin[:-2]}a" if ends else begin)
        yield from invalid_texts("metadata.generateName", begin, problems)
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    yield from invalid_texts("metadata.name", name, rule(name))


def metadata_causes(metadata: Object) -> Iterator[Cause]:
    """What is wrong with generation, labels, annotations and owners: with new objects and changed
    ones."""
    yield from label_causes(metadata.get("labels"), "metadata.labels")
    yield from annotation_causes(metadata.get("annotations") or {}, "metadata.annotations")
    yield from _owner_causes(metadata.get("ownerReferences") or [])


def annotation_causes(annotations: Mapping[str, str], path: str) -> Iterator[Cause]:
    """What is wrong with annotations at `path`: their keys, in which case does not matter, and
    their size."""
    for key in annotations:
        yield from invalid_texts(path, key, qualified_name_problems(key.lower()))
    size = sum(byte_length(key) + byte_length(value or "") for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        yield too_long(path, _MAX_ANNOTATIONS_BYTES)


def _owner_causes(owners: Sequence[Object]) -> Iterator[Cause]:
    field, first, more = "metadata.ownerReferences", "", 0
    for owner in owners:
        yield from _reference_causes(owner, field)
        if owner.get("controller"):
            name = f"{owner.get('kind') or ''}/{owner.get('name') or ''}"
            more += bool(first)
            if first and more <= MOST_ALIKE:
                text = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {first} and {name}'
                )
                yield invalid_value(field, [*map(_shown_owner, owners)], text)
            first = first or name


def _reference_causes(owner: Object, field: str) -> Iterator[Cause]:
    """What is wrong with one owner."""
    api = owner.get("apiVersion") or ""
    if not api.rpartition("/")[2] or api.count("/") > 1:
        yield invalid_value(f"{field}.apiVersion", api, "version must not be empty")
    for key in ("kind", "name", "uid"):
        if not owner.get(key):
            yield invalid_value(f"{field}.{key}", "", "must not be empty")
    if (api, owner.get("kind")) == ("v1", "Event"):
        text = "/v1, Kind=Event is disallowed from being an owner"
        yield invalid_value(field, _shown_owner(owner), text)


def _shown_owner(owner: Object) -> Object:
    """An owner with its fields in the API's order."""
    needed = {field: owner.get(field) or "" for field in ("apiVersion", "kind", "name", "uid")}
    optional = ("controller", "blockOwnerDeletion")
    return {**needed, **{field: owner[field] for field in optional if owner.get(field) is not None}}


def server_owned_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update says of the UID or of a deletion what is not so: only the server
    does."""
    for field in ("uid", *DELETION):
        if field in new and new[field] != old.get(field):
            yield invalid_value(f"metadata.{field}", new[field], IMMUTABLE)


def finalizer_causes(metadata: Object, *, core: bool) -> Iterator[Cause]:
    """What is wrong with the finalizers. `core`: of an object of the core group, in which those
    without a domain have to be known."""
    finalizers = metadata.get("finalizers") or []
    for name in finalizers:
        yield from invalid_texts("metadata.finalizers", name, qualified_name_problems(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, text)
    for i, name in enumerate(finalizers if core else ()):
        field = f"metadata.finalizers[{i}]"
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(field, name, text)


def new_finalizer_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What is wrong if an update adds finalizers to an object that is being deleted."""
    if "deletionTimestamp" not in old:
        return
    was = set(old.get("finalizers") or ())
    added = [name for name in new.get("finalizers") or () if name not in was]
    if not added:
        return
    listed = ", ".join(f'"{name}"' for name in added)
    text = (
        "no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{listed}}}"
    )
    yield forbidden_field("metadata.finalizers", text)
