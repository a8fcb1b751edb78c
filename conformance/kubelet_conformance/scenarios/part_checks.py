"""Finds parts of messages and objects that a scenario asks for and that nothing can have: fields
that their type does not have, values of another kind. They would never be found, and what must not
be there would be missing for nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from kubelet_conformance.scenarios.shape.ranges import text_fits
from kubeobjects.schema.messages import TYPE_META, Message, Shape
from kubeobjects.schema.messages import Field as ObjectField
from kubeobjects.strict.errors import did_you_mean


def empty_parts(wanted: Any, path: str = "") -> Iterator[str]:
    """Where nothing is asked for at all: a mapping or list that holds nothing."""
    if isinstance(wanted, Mapping | list | tuple) and not wanted:
        yield f"{path}: wanted something in it; null is for what is not there"
    elif isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from empty_parts(value, f"{path}.{key}")
    elif isinstance(wanted, list | tuple):
        for value in wanted:
            yield from empty_parts(value, path)


def not_in_message(wanted: Any, kind: Any, path: str) -> Iterator[str]:
    """What no message of the CRI, or of device plug-ins, can have of what is wanted. `kind`: the
    descriptor of the message."""
    if not isinstance(wanted, Mapping):
        yield f"{path}: wanted fields of {kind.name}, not {wanted!r}"
        return
    for name, value in wanted.items():
        field = kind.fields_by_name.get(name)
        if field is None:
            hint = did_you_mean(str(name), kind.fields_by_name)
            yield f"{path}: no field {name!r} in {kind.name}{hint}"
        elif value or value is False:
            yield from _not_in_field(value, field, f"{path}.{name}")


def _not_in_field(value: Any, field: FieldDescriptor, path: str) -> Iterator[str]:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return
    if field.is_repeated is not isinstance(value, list | tuple):
        yield f"{path}: wanted {'a list' if field.is_repeated else 'no list'}"
        return
    for each in value if isinstance(value, list | tuple) else (value,):
        if message is not None:
            yield from not_in_message(each, message, path)
        elif isinstance(each, Mapping | list | tuple):
            yield f"{path}: wanted one value"
        elif field.enum_type is not None:
            yield from _not_in_enum(str(each), field.enum_type, path)


def _not_in_enum(text: str, kind: EnumDescriptor, path: str) -> Iterator[str]:
    fitting = [value for value in kind.values if text_fits(value.name, text)]
    if not fitting:
        yield f"{path}: {text!r} is none of {', '.join(value.name for value in kind.values)}"
    elif not any(value.number for value in fitting):
        yield f"{path}: {text} is what messages leave out; say null"


def not_in_object(
    wanted: Any, kind: Message, path: str, *, directives: bool = False
) -> Iterator[str]:
    """What no object of the API can have of what is wanted. `directives`: keys with `$` are those
    of a strategic patch."""
    if not isinstance(wanted, Mapping):
        yield f"{path}: wanted fields of a {kind.kind}, not {wanted!r}"
        return
    fields = kind.in_json
    for name, value in wanted.items():
        if name in fields:
            if value or value is False:
                yield from _not_in_object_field(
                    value, fields[name], kind, f"{path}.{name}", directives=directives
                )
        elif not (kind.typed and name in TYPE_META) and not (directives and name[:1] == "$"):
            hint = did_you_mean(str(name), fields)
            yield f"{path}: no field {name!r} in {kind.kind}{hint}"


def _not_in_object_field(
    value: Any, field: ObjectField, owner: Message, path: str, *, directives: bool
) -> Iterator[str]:
    is_list = isinstance(value, list | tuple)
    if is_list is not (field.shape is Shape.LIST) and field.type not in ("FieldsV1", "bytes"):
        yield f"{path}: wanted {'no list' if is_list else 'a list'}"
        return
    parts: Any = value if is_list else (value,)
    if field.shape is Shape.MAP:
        if not isinstance(value, Mapping):
            yield f"{path}: wanted a mapping"
            return
        parts = tuple(each for each in value.values() if each is not None)
    inner = owner.of(field)
    for each in parts:
        if inner is not None:
            yield from not_in_object(each, inner, path, directives=directives)
        elif field.type == "bool" and not isinstance(each, bool):
            yield f"{path}: wanted true or false, not {each!r}"
