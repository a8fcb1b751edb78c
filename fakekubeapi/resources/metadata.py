"""What is wrong with names, labels and other metadata, in the order in which the API server says
it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from fakekubeapi.errors import Cause, forbidden_field, invalid_value, required

Object = dict[str, Any]
NameRule = Callable[[str], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS: Final = "and must start and end with an alphanumeric character"
_OF_KEYS: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
IMMUTABLE: Final = "field is immutable"


def explained(rule: str, expression: str, *examples: str) -> str:
    """A rule with examples and its regular expression, as the API server words it."""
    shown = " or ".join(f"'{one}', " for one in examples)
    begin = f"e.g. {shown}" if examples else ""
    return f"{rule} ({begin}regex used for validation is '{expression}')"


SUBDOMAIN_RULE: Final = explained(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
LABEL_RULE: Final = explained(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_VALUE_RULE: Final = explained(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_ENDS}",
    f"({_PART})?",
    "MyValue",
    "my_value",
    "12345",
)
_KEY_RULE: Final = explained(_OF_KEYS, _PART, "MyName", "my.name", "123-abc")


def too_long(limit: int) -> str:
    """What is wrong with a text of more bytes."""
    return f"must be no more than {limit} bytes"


def subdomain_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a subdomain of RFC 1123."""
    problems = ["must be no more than 253 characters"] if len(name) > 253 else []
    return problems if re.fullmatch(_SUBDOMAIN, name) else [*problems, SUBDOMAIN_RULE]


def label_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a label of RFC 1123."""
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    if re.fullmatch(_LABEL, name):
        return problems
    dotted = re.fullmatch(_SUBDOMAIN, name) is not None
    return [*problems, "must not contain dots" if dotted else LABEL_RULE]


def path_segment_problems(name: str) -> list[str]:
    """What is wrong with a name that has to be a part of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{one}'" for one in "/%" if one in name]


def qualified_name_problems(name: str) -> list[str]:
    """What is wrong with the key of a label or annotation."""
    prefix, slash, rest = name.rpartition("/")
    problems: list[str] = []
    if "/" in prefix:
        rule = explained("a qualified name " + _OF_KEYS, _PART, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"{rule} {optional}"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {text}" for text in subdomain_problems(prefix)]
    if not rest:
        problems.append("name part must be non-empty")
    elif len(rest) > 63:
        problems.append(f"name part {too_long(63)}")
    return problems if re.fullmatch(_PART, rest) else [*problems, f"name part {_KEY_RULE}"]


def label_value_problems(value: str) -> list[str]:
    """What is wrong with the value of a label."""
    problems = [too_long(63)] if len(value) > 63 else []
    return problems if re.fullmatch(f"({_PART})?", value) else [*problems, _VALUE_RULE]


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
