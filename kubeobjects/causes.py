"""What is wrong with a field of an object: causes, as a refusal lists them. Pure.

The functions make the causes of upstream's kinds; messages, kinds and order are what clients and
tools match. Upstream: apimachinery pkg/util/validation/field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from kubeobjects.golang.json import go_json
from kubeobjects.golang.strconv import quoted

MOST_ALIKE: Final = 10
"""How often it is said at most that one of many parts is wrong, where each time the whole is shown.
Kubernetes says it for each part, which takes the square of what was written."""


class Cause(Struct, frozen=True):
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


class Word(str):
    """A text that is one of a few words, or that may be absent: messages show it as JSON, since it
    has a type of its own upstream."""


def shown(value: Any) -> str:
    """A value as messages show it: a text in quotes as Go writes them, words and others as JSON.

    >>> shown("a\\x7f"), shown(["<", 1])
    ('"a\\\\x7f"', '["\\\\u003c",1]')
    """
    free = isinstance(value, str) and not isinstance(value, Word)
    return quoted(value) if free else go_json(value)


def required(field: str, message: str = "") -> Cause:
    """The field is missing or empty."""
    return Cause(
        field, "Required value" + (f": {message}" if message else ""), "FieldValueRequired"
    )


def invalid_value(field: str, value: Any, message: str) -> Cause:
    """The field has a value that it may not have; `message` says why."""
    return Cause(field, f"Invalid value: {shown(value)}: {message}")


def invalid_texts(path: str, value: Any, problems: Iterable[str]) -> Iterator[Cause]:
    """A cause for each problem of the value."""
    for problem in problems:
        yield invalid_value(path, value, problem)


def forbidden_field(field: str, message: str) -> Cause:
    """The field may not be set or changed here; `message` says why."""
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    """The value is there already, in a list where it may be once."""
    return Cause(field, duplicate_text(value), "FieldValueDuplicate")


def duplicate_text(value: Any) -> str:
    """What is said of a value that is there twice."""
    return f"Duplicate value: {shown(value)}"


def unsupported_value(
    field: str, value: Any, allowed: Sequence[str], *, free: bool = False
) -> Cause:
    """The value is none of the `allowed` words. `free`: by its type, it may be any text."""
    allowed_text = ", ".join(f'"{item}"' for item in allowed)
    text = Word(value) if isinstance(value, str) and not free else value
    message = f"Unsupported value: {shown(text)}: supported values: {allowed_text}"
    return Cause(field, message, "FieldValueNotSupported")


def not_found(field: str, value: str, message: str = "") -> Cause:
    """The field names something that is not there; `message` says where it would have to be."""
    text = f"Not found: {shown(value)}" + (f": {message}" if message else "")
    return Cause(field, text, "FieldValueNotFound")


def too_many(field: str, number: int, most: int) -> Cause:
    """The list has more items than it may have."""
    text = f"Too many: {number}: must have at most {most} items"
    return Cause(field, text, "FieldValueTooMany")


def too_long(field: str, most: int) -> Cause:
    """The text, or all texts of a map together, has more bytes than it may have."""
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")
