"""The query of a request: numbers, switches, and which go together (ListOptions and others).

Status codes and messages are those of the API server, which parses numbers as Go does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekubeapi.errors import StatusError, bad_request, invalid
from kubeobjects.causes import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    shown,
    unsupported_value,
)

_SIGNED: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_META: Final = "meta.k8s.io"
_MAX_MANAGER_BYTES: Final = 128
_MATCH: Final = "resourceVersionMatch"
_WITH_CONTINUE: Final = "resourceVersionMatch is forbidden when continue is provided"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_MATCHES: Final = ("Exact", "NotOlderThan")
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_KINDS: Final = {"POST": "Create", "PUT": "Update", "PATCH": "Patch", "DELETE": "Delete"}


def whole_number(params: Mapping[str, str], name: str) -> int:
    """The parameter of that name as a signed 64-bit number; 0 if it is missing. Raises: StatusError
    400 if it is not such a number."""
    text = params.get(name, "") or "0"
    if not _SIGNED.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 40 or not -(1 << 63) <= int(text) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def resource_version(params: Mapping[str, str]) -> int:
    """The parameter resourceVersion, an unsigned 64-bit number; 0 if it is missing. Raises:
    StatusError 400 if it is not such a number."""
    text = params.get("resourceVersion", "") or "0"
    why = ""
    if not _UNSIGNED.fullmatch(text):
        why = "invalid syntax"
    elif len(text) > 40 or int(text) >= 1 << 64:
        why = "value out of range"
    if why:
        complaint = (
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
        )
        if is_true(params.get("watch")):
            raise StatusError(500, complaint, reason="")
        raise bad_request(f"invalid resource version: {complaint}")
    return int(text)


def is_true(text: str | None) -> bool:
    """Whether a switch is on: any text but `false` and `0` means yes, as in the API server; None
    (no such parameter) means no."""
    return text is not None and text.lower() not in ("false", "0")


def check_list_options(params: Mapping[str, str]) -> None:
    """Check that the parameters of a list or watch go together. Raises: StatusError 422."""
    causes = _watch_causes(params) if is_true(params.get("watch")) else _list_causes(params)
    _refuse("ListOptions", causes)


def _list_causes(params: Mapping[str, str]) -> list[Cause]:
    match, causes = params.get("resourceVersionMatch", ""), list[Cause]()
    if match:
        if not params.get("resourceVersion"):
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(forbidden_field(_MATCH, text))
        if params.get("continue"):
            causes.append(forbidden_field(_MATCH, _WITH_CONTINUE))
        if match not in _MATCHES:
            causes.append(unsupported_value(_MATCH, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and params.get("resourceVersion") == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(forbidden_field(_MATCH, text))
    if "sendInitialEvents" in params:
        text = "sendInitialEvents is forbidden for list"
        causes.append(forbidden_field("sendInitialEvents", text))
    return causes


def _watch_causes(params: Mapping[str, str]) -> list[Cause]:
    match, causes = params.get("resourceVersionMatch", ""), list[Cause]()
    initial = "sendInitialEvents" in params
    if not initial and not match and params.get("continue"):
        # a watch of the current state is one with initial events, by default
        current = params.get("resourceVersion", "") in ("", "0")
        return [forbidden_field(_MATCH, _WITH_CONTINUE)] if current else []
    if initial and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(forbidden_field(_MATCH, text))
    if not match:
        return causes
    if not initial:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden_field(_MATCH, text))
    if match != "NotOlderThan":
        causes.append(unsupported_value(_MATCH, match, ("NotOlderThan",)))
    if params.get("continue"):
        causes.append(forbidden_field(_MATCH, _WITH_CONTINUE))
    return causes


def check_delete_options(options: Mapping[str, Any]) -> bool:
    """Check the options of a deletion; returns whether it is a trial run (`dryRun`). Raises:
    StatusError 400 for an object of another kind, 422."""
    kind, version = options.get("kind") or "DeleteOptions", options.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
        )
    policy, causes = options.get("propagationPolicy"), list[Cause]()
    if options.get("orphanDependents") is not None and policy is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid_value("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        causes.append(unsupported_value("propagationPolicy", policy, (*_POLICIES, "nil")))
    trial = options.get("dryRun") or []
    if trial not in ([], ["All"]):
        message = f'Unsupported value: {shown(trial)}: supported values: "All"'
        causes.append(Cause("dryRun", message, "FieldValueNotSupported"))
    _refuse("DeleteOptions", causes)
    return bool(trial)


def dry_run(method: str, params: Mapping[str, str]) -> bool:
    """Whether the request is to be checked, but nothing stored (`dryRun=All`). Raises: StatusError
    422 for another value of dryRun, and for an unknown one of fieldValidation."""
    causes, value = list[Cause](), params.get("dryRun")
    if value not in (None, "", "All"):
        message = f'Unsupported value: ["{value}"]: supported values: "All"'
        causes.append(Cause("dryRun", message, "FieldValueNotSupported"))
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS and method != "DELETE":
        causes.append(unsupported_value("fieldValidation", validation, _VALIDATIONS))
    _refuse(f"{_KINDS.get(method, 'Create')}Options", causes)
    return value == "All"


def field_manager(params: Mapping[str, str], method: str, *, applies: bool) -> str:
    """The parameter fieldManager, "" if there is none. `applies`: whether this is a server-side
    apply. Raises: StatusError 422 if it is missing in an apply, too long or not printable, and for
    `force` in anything else."""
    causes, name = list[Cause](), params.get("fieldManager", "")
    if applies and not name:
        causes.append(required("fieldManager", "is required for apply patch"))
    if "force" in params and method == "PATCH" and not applies:
        causes.append(forbidden_field("force", "may not be specified for non-apply patch"))
    if len(name.encode()) > _MAX_MANAGER_BYTES:
        message = f"Too long: may not be more than {_MAX_MANAGER_BYTES} bytes"
        causes.append(Cause("fieldManager", message, "FieldValueTooLong"))
    if not name.isprintable():
        text = "should only contain printable characters"
        causes.append(invalid_value("fieldManager", name, text))
    _refuse(f"{_KINDS.get(method, 'Create')}Options", causes)
    return name


def _refuse(kind: str, causes: Sequence[Cause]) -> None:
    if causes:
        raise invalid(kind, _META, "", causes)


def include_object(params: Mapping[str, Any]) -> str:
    """The parameter includeObject: what the rows of a Table hold of their objects, `None`,
    `Metadata` (the default) or `Object`. Raises: StatusError 400 for another value."""
    choice = str(params.get("includeObject", "")) or "Metadata"
    if choice not in ("None", "Metadata", "Object"):
        raise StatusError(
            400,
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{choice}": '
            "must be 'Metadata', 'Object', 'None', or empty",
        )
    return choice
