"""Random objects of any message of the Kubernetes API, and Google's library as another reader and
writer of their bytes."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from fakekubeapi.protobuf.envelope import decode_object
from fakekubeapi.protobuf.values import KINDS
from fakekubeapi.protobuf.wire import fields
from kubeobjects.schema.messages import Field, Message, Shape, message, schema_of
from simclock import Rng

LENGTH_BYTES = 4
LETTERS = "abc-ß/漢\U0001f600 "


def decode_events(data: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """The watch events that are complete, and the bytes that are left."""
    events = []
    while len(data) >= LENGTH_BYTES:
        end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
        if len(data) < end:
            break
        parts = bytes_in(data[LENGTH_BYTES:end])
        kind = parts.get(1, b"").decode(errors="replace")
        events.append({"type": kind, "object": decode_object(bytes_in(parts[2])[1])})
        data = data[end:]
    return events, data


def bytes_in(data: bytes) -> dict[int, bytes]:
    """The fields of a message that are bytes, by number."""
    return {number: value for number, _, value in fields(data) if isinstance(value, bytes)}


def all_messages() -> list[Message]:
    return [each for package in sorted(schema_of().packages) for each in messages_in(package)]


def messages_in(package: str) -> list[Message]:
    """Those of one group and version: `core.v1`."""
    return [message(f"{package}.{kind}") for kind in schema_of().kinds(package)]


class RandomObjects:
    """Fills messages with values that are not empty, each field with the probability `chance`."""

    def __init__(self, seed: int, *, chance: float = 0.6, levels: int = 4) -> None:
        self._random = Rng(seed).stream("objects")
        self._chance = chance
        self._levels = levels

    def of(self, name: str, level: int = 0) -> Any:
        """The JSON of a random message of that name."""
        fields = message(name).fields
        if message(name).itself:
            return [self._text(), self._text()]
        found: dict[str, Any] = {}
        for field in fields:
            if field.inline:
                found |= self.of(field.type, level)
            elif self._random.random() < self._chance:
                found[field.name] = self._field(field, level + 1)
        return found

    def _field(self, field: Field, level: int) -> Any:
        count = self._random.randint(1, 2)
        if field.shape is Shape.LIST:
            return [self._value(field.type, level) for _ in range(count)]
        if field.shape is Shape.MAP:
            return {f"{self._text()}{i}": self._value(field.type, level) for i in range(count)}
        return self._value(field.type, level)

    def _value(self, name: str, level: int) -> Any:
        if name not in KINDS:
            return self.of(name, level) if level < self._levels else {}
        day = f"{self._random.randint(1969, 2031)}-02-{self._random.randint(10, 28)}"
        text, half = self._text(), self._random.random() < 0.5
        values = {
            "string": text,
            "bool": True,
            "bytes": base64.b64encode(text.encode()).decode(),
            "int32": self._number(31),
            "int64": self._number(63),
            "Quantity": f"{self._number(31)}m",
            "IntOrString": text if half else self._number(31),
            "Time": f"{day}T10:20:30Z",
            "MicroTime": f"{day}T10:20:30.000045Z",
            "FieldsV1": {f"f:{text}": {".": {}}},
            "RawExtension": {text: [1, None, {}]},
        }
        return values[name]

    def _text(self) -> str:
        return "".join(self._random.choices(LETTERS, k=self._random.randint(1, 4)))

    def _number(self, bits: int) -> int:
        number = self._random.getrandbits(self._random.randint(1, bits)) or 1
        return self._random.choice((number, -number))


FULL_VALUES = {
    "bool": True,
    "bytes": "/wA=",
    "int32": -1,
    "int64": 1 << 40,
    "Quantity": "100m",
    "IntOrString": "http",
    "Time": "2026-01-02T03:04:05Z",
    "MicroTime": "2026-01-02T03:04:05.000006Z",
    "FieldsV1": {"f:a": {}},
    "RawExtension": {"a": [1]},
}


def full(name: str) -> Any:
    """The JSON of a message each field of which has a value, and each message below it none."""
    found: dict[str, Any] = {}
    for field in message(name).fields:
        value = field.name if field.type == "string" else FULL_VALUES.get(field.type, {})
        if field.type not in KINDS and message(field.type).itself:
            value = [field.name]
        if field.inline:
            found |= full(field.type)
        elif field.shape is Shape.LIST:
            found[field.name] = [value]
        else:
            found[field.name] = {field.name: value} if field.shape is Shape.MAP else value
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values differ in nothing but what is empty: null, 0, "", {}, [] or missing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return _emptied(one) == _emptied(other)


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        value = {name: item for name, each in value.items() if (item := _emptied(each)) is not None}
    return value if value not in (None, 0, "", {}, [], "0") else None


# -- Google's library ----------------------------------------------------------------------------

_TYPES = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
}
_SMALL = {
    "Quantity": ["string"],
    "IntOrString": ["int64", "int32", "string"],
    "Time": ["int64", "int32"],
    "MicroTime": ["int64", "int32"],
    "FieldsV1": ["bytes"],
    "RawExtension": ["bytes"],
}
"""The messages that have no table, as the types of their fields 1, 2, ..."""


@cache
def google_class(name: str) -> Any:
    """Google's class of a message, made of the tables alone."""
    return GetMessageClass(_pool().FindMessageTypeByName(f"k.{_flat(name)}"))


@cache
def _pool() -> DescriptorPool:
    file = FileDescriptorProto(name="k.proto", package="k", syntax="proto2")
    for name, types in _SMALL.items():
        made = file.message_type.add(name=name)
        for number, kind in enumerate(types, start=1):
            _add(made, f"f{number}", number, kind)
    for described in all_messages():
        made = file.message_type.add(name=_flat(described.name))
        for field in described.fields:
            _add_field(made, field)
    pool = DescriptorPool()
    pool.Add(file)
    return pool


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _add_field(made: DescriptorProto, field: Field) -> None:
    name = f"f{field.number}"
    if field.shape is Shape.MAP:
        entry = made.nested_type.add(name=f"F{field.number}Entry")
        entry.options.map_entry = True
        _add(entry, "key", 1, "string")
        _add(entry, "value", 2, field.type)
        place = f".k.{made.name}.{entry.name}"
        made.field.add(
            name=name,
            number=field.number,
            label=FieldDescriptorProto.LABEL_REPEATED,
            type=FieldDescriptorProto.TYPE_MESSAGE,
            type_name=place,
        )
        return
    _add(made, name, field.number, field.type, repeated=field.shape is Shape.LIST)


def _add(
    made: DescriptorProto, name: str, number: int, kind: str, *, repeated: bool = False
) -> None:
    label = "LABEL_REPEATED" if repeated else "LABEL_OPTIONAL"
    made.field.add(
        name=name,
        number=number,
        label=getattr(FieldDescriptorProto, label),
        type=_TYPES.get(kind, FieldDescriptorProto.TYPE_MESSAGE),
        type_name=None if kind in _TYPES else f".k.{_flat(kind)}",
    )
