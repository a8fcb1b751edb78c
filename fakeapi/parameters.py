"""The query of a request: numbers, switches and what is allowed together (ListOptions and others).

Codes and texts are the API server's, which parses numbers as Go does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapi.errors import (
    Cause,
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    unsupported_value,
)

_SIGNED: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED: Final = re.compile(r"[0-9]+", re.ASCII)
_META: Final = "meta.k8s.io"
_MATCHES: Final = ("Exact", "NotOlderThan")
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_KINDS: Final = {"POST": "Create", "PUT": "Update", "PATCH": "Patch", "DELETE": "Delete"}


def whole_number(params: Mapping[str, str], name: str) -> int:
    """A signed number of 64 bits; 0 for none. Raises: StatusError 400."""
    text = params.get(name, "") or "0"
    if not _SIGNED.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 40 or not -(1 << 63) <= int(text) < 1 << 63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def resource_version(params: Mapping[str, str]) -> int:
    """The version that is asked for; 0 for none. Raises: StatusError 400."""
    text = params.get("resourceVersion", "") or "0"
    why = ""
    if not _UNSIGNED.fullmatch(text):
        why = "invalid syntax"
    elif len(text) > 40 or int(text) >= 1 << 64:
        why = "value out of range"
    if why:
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": {why}'
        )
    return int(text)


def is_true(text: str | None) -> bool:
    """A switch: anything but `false` and `0` switches on, as with the API server."""
    return text is not None and text.lower() not in ("false", "0")


def check_list_options(params: Mapping[str, str]) -> None:
    """Raises: StatusError 422 for what does not go together in a list or watch."""
    match, causes = params.get("resourceVersionMatch", ""), list[Cause]()
    field = "resourceVersionMatch"
    if match and not params.get("resourceVersion") and not is_true(params.get("sendInitialEvents")):
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(forbidden_field(field, text))
    if match and match not in _MATCHES:
        causes.append(unsupported_value(field, match, ("Exact", "NotOlderThan", "")))
    initial = is_true(params.get("sendInitialEvents")) and is_true(params.get("watch"))
    if initial and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(forbidden_field(field, text))
    _refuse("ListOptions", causes)


def dry_run(method: str, params: Mapping[str, str]) -> bool:
    """Whether nothing is to be stored. Raises: StatusError 422 for another wish, and for a
    `fieldValidation` that is none."""
    causes, asked = list[Cause](), params.get("dryRun")
    if asked not in (None, "", "All"):
        message = f'Unsupported value: ["{asked}"]: supported values: "All"'
        causes.append(Cause("dryRun", message, "FieldValueNotSupported"))
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS and method != "DELETE":
        causes.append(unsupported_value("fieldValidation", validation, _VALIDATIONS))
    _refuse(f"{_KINDS.get(method, 'Create')}Options", causes)
    return asked == "All"


def _refuse(kind: str, causes: Sequence[Cause]) -> None:
    if causes:
        raise invalid(kind, _META, "", causes)


def include_object(params: Mapping[str, Any]) -> str:
    """What of each object goes into the rows of a Table: None, Metadata or Object."""
    asked = str(params.get("includeObject", "")) or "Metadata"
    if asked not in ("None", "Metadata", "Object"):
        raise StatusError(
            400,
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{asked}": '
            "must be 'Metadata', 'Object', 'None', or empty",
        )
    return asked
