"""What is wrong with a field of an object: causes, as a refusal lists them. Pure.

The functions make the causes of upstream's kinds; messages, kinds and order are what clients and
tools match. Upstream: apimachinery pkg/util/validation/field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubeobjects.golang.json import go_json
from kubeobjects.golang.strconv import quoted


@dataclass(frozen=True, slots=True)
class Cause:
    """One wrong field of an object, as an entry of `details.causes` of a Status."""

    field: str
    """The path of the field, such as `spec.containers[0].name`."""
    message: str
    """What is wrong with it."""
    kind: str = "FieldValueInvalid"
    """The `reason` of the entry."""

    @property
    def text(self) -> str:
        """Field and message, as the message of the whole Status lists them."""
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as messages show it: a text in quotes as Go writes them, others as JSON.

    >>> shown("a\\x7f"), shown(["<", 1])
    ('"a\\\\x7f"', '["\\\\u003c",1]')
    """
    return quoted(value) if isinstance(value, str) else go_json(value)


def required(field: str, message: str = "") -> Cause:
    """The field is missing or empty."""
    return Cause(
        field, "Required value" + (f": {message}" if message else ""), "FieldValueRequired"
    )


def invalid_value(field: str, value: Any, message: str) -> Cause:
    """The field has a value that it may not have; `message` says why."""
    return Cause(field, f"Invalid value: {shown(value)}: {message}")


def forbidden_field(field: str, message: str) -> Cause:
    """The field may not be set or changed here; `message` says why."""
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    """The value is there already, in a list where it may be once."""
    return Cause(field, duplicate_text(value), "FieldValueDuplicate")


def duplicate_text(value: Any) -> str:
    """What is said of a value that is there twice."""
    return f"Duplicate value: {shown(value)}"


def unsupported_value(field: str, value: Any, allowed: Sequence[str]) -> Cause:
    """The value is none of the `allowed` ones."""
    known = ", ".join(f'"{item}"' for item in allowed)
    message = f"Unsupported value: {shown(value)}: supported values: {known}"
    return Cause(field, message, "FieldValueNotSupported")
