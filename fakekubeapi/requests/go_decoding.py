"""What Go's JSON decoder says of a body whose parts have other types than the API has.

The types are those of `kubeobjects.schema`. The decoder goes on
after a wrong part and tells the first one: by the Go struct that it is a field of, its path without
numbers and keys, and the Go type that it should have. Pure.

Not told as Go does: times that are texts, and null in a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from msgspec import Struct

from kubeobjects.quantity import WRONG_FORM
from kubeobjects.schema.messages import SCALARS, Field, Message, Schema, Shape

GO_NAMES: Final = {
    **dict.fromkeys(("string", "Time", "MicroTime"), "string"),
    "bytes": "[]uint8",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "IntOrString": "int32",
    "Quantity": "resource.Quantity",
}
"""How the decoder names types that have no table of fields; it takes anything for the others."""
BITS: Final = {"int32": 32, "int64": 64, "IntOrString": 32}
AMOUNTS: Final = "v1.ResourceList"
"""The name of every map of quantities."""


class _Place(Struct, frozen=True):
    """A field: the Go struct that has it, and its path in the body."""

    struct: str
    path: str
    schema: Schema

    def wrong(self, value: Any, wanted: str) -> str:
        """The decoder's words for a value there of another type than `wanted`."""
        kind = _json_kind(value)
        if kind == "number" and wanted in BITS:
            kind = f"number {value}" if isinstance(value, int) else f"number {_digits(value)}"
        return (
            f"json: cannot unmarshal {kind} into Go struct field {self.struct}.{self.path} "
            f"of type {wanted}"
        )


def decoding_error(body: Any, of: Message) -> str:
    """What the decoder says of the first part of the body that has a wrong type; "" if none has.

    `of`: the type that it should have. The body is an object, else nothing is said.

    >>> from kubeobjects.schema.messages import message
    >>> decoding_error({"spec": {"hostNetwork": 1}}, message("core.v1.Pod"))
    'json: cannot unmarshal number into Go struct field PodSpec.spec.hostNetwork of type bool'
    """
    if not isinstance(body, dict):
        return ""
    return next(_in_message(body, of, ""), "")


@cache
def _fields(of: Message) -> dict[str, tuple[Field, str]]:
    """The fields of a message by their names in JSON, with the names of the Go structs around those
    that stand inline, as the decoder puts them before the field's: `VolumeSource.`."""
    fields: dict[str, tuple[Field, str]] = {}
    for field in of.fields:
        if field.inline:
            inner = _fields(of.schema.message(field.type)).items()
            fields |= {key: (part, f"{field.name}.{way}") for key, (part, way) in inner}
        else:
            fields[field.name] = (field, "")
    return fields


def _in_message(value: dict[str, Any], of: Message, path: str) -> Iterator[str]:
    if of.itself:
        return
    fields_by_name = _fields(of)
    for key, item in value.items():
        if key in fields_by_name and item is not None:
            field, way = fields_by_name[key]
            field_path = ".".join(part for part in (path, f"{way}{key}") if part)
            yield from _in_field(item, field, _Place(of.kind, field_path, of.schema))


def _in_field(value: Any, field: Field, place: _Place) -> Iterator[str]:
    if field.shape is Shape.LIST:
        items, fits = value, isinstance(value, list)
        kind = f"[]{_go_name(field)}"
    elif field.shape is Shape.MAP:
        fits = isinstance(value, dict)
        items = list(value.values()) if fits else ()
        kind = f"map[{field.go_key}]{_go_name(field)}"
        kind = AMOUNTS if (field.go_key, field.type) == ("string", "Quantity") else kind
    else:
        items, fits, kind = [value], True, ""
    if not fits:
        yield place.wrong(value, kind)
        return
    for item in items:
        if item is not None:
            yield from _in_item(item, field, place)


def _in_item(value: Any, field: Field, place: _Place) -> Iterator[str]:
    kind = field.type
    if kind not in SCALARS:
        message = place.schema.message(kind)
        if isinstance(value, dict):
            yield from _in_message(value, message, place.path)
        elif not message.itself:
            yield place.wrong(value, _go_name(field))
    elif kind == "Quantity":
        if isinstance(value, bool | dict | list):
            yield WRONG_FORM
    elif kind in GO_NAMES and not _fits(value, kind):
        yield place.wrong(value, _go_name(field))


def _fits(value: Any, kind: str) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "IntOrString" and isinstance(value, str):
        return True
    if kind in BITS:
        limit = 1 << BITS[kind] - 1
        return type(value) is int and -limit <= value < limit
    return isinstance(value, str)


def _go_name(field: Field) -> str:
    """The name of a field's type in Go: that of a message has its package's, the version, before
    it."""
    return field.go_type or GO_NAMES.get(field.type) or ".".join(field.type.split(".")[-2:])


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _digits(value: float) -> str:
    """A number as clients write it: large ones without an exponent."""
    return str(int(value)) if value.is_integer() and abs(value) >= 1e15 else repr(value)
