"""Changes answers of the runtime: what a scenario says of them is merged into the message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from kubelet_conformance.scenarios.shape.ranges import is_in
from kubeobjects.strict.errors import did_you_mean


def change_of(given: Mapping[str, Any], where: Mapping[str, Any]) -> Callable[[Message], None]:
    """A function that merges `given` into an answer, in place. What is said of a list by a mapping
    goes into those of its items that `where` is in; a list takes the place of the one that is
    there; null takes a field away."""

    def change(answer: Message) -> None:
        _merge(answer, given, where)

    return change


def _merge(message: Message, given: Mapping[str, Any], where: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is None or isinstance(value, list):
            message.ClearField(name)
        if not isinstance(value, Mapping) or not _has_fields(message, name):
            ParseDict({name: value}, message)
        elif isinstance(inner := getattr(message, name), Message):
            inner.SetInParent()
            _merge(inner, value, where)
        else:
            for item in inner:
                if is_in(where, MessageToDict(item, preserving_proto_field_name=True)):
                    _merge(item, value, where)


def mistakes_in(message: Message, given: Mapping[str, Any]) -> Iterator[str]:
    """What of `given` such a message cannot have. The message is changed."""
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in given.items():
        if name not in fields:
            hint = did_you_mean(name, fields)
            yield f"no field {name!r} in {message.DESCRIPTOR.name}{hint}"
        elif isinstance(value, Mapping) and _has_fields(message, name):
            inner = getattr(message, name)
            yield from mistakes_in(inner if isinstance(inner, Message) else inner.add(), value)
        else:
            try:
                ParseDict({name: value}, message)
            except ParseError as error:
                yield f"{name}: {error}"


def _has_fields(message: Message, name: str) -> bool:
    """Whether the field has messages; what maps is none."""
    kind = message.DESCRIPTOR.fields_by_name[name].message_type
    return kind is not None and not kind.GetOptions().map_entry
