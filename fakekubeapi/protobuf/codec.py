"""Messages: from the JSON of an object to its bytes in protobuf and back. Pure.

Bytes are written as Go writes them for the API server and its clients: fields in order of their
numbers, maps in order of their keys, fields that are no pointers even when they are empty. What is
read has the JSON that the sender would have sent instead: empty values are there where Go writes
them (`"resources": {}`, `"containers": null`), and nowhere else. Unknown fields are left out, in
both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fakekubeapi.protobuf.values import KINDS, Kind
from fakekubeapi.protobuf.wire import (
    BYTES,
    VARINT,
    WireError,
    fields,
    key,
    read_varint,
    with_length,
)
from kubeobjects.schema.messages import Field, Message, Schema, Shape

Object: TypeAlias = dict[str, Any]
Found: TypeAlias = list[tuple[int, Any]]
"""Wire type and value of each time a field is in a message."""
_KEY, _VALUE = 1, 2
"""The fields of an entry of a map."""
_TEXT: Final = KINDS["string"]


def encode_message(message: Message, value: Mapping[str, Any] | None) -> bytes:
    """The bytes of an object of that type, of its JSON. Raises: ValueError, TypeError or
    AttributeError for JSON that is of another type."""
    return _kind(message.schema, message.name).encode(value)


def decode_message(message: Message, data: bytes) -> Any:
    """The JSON of an object of that type, of its bytes. Raises: WireError."""
    return _kind(message.schema, message.name).decode(data)


@cache
def _kind(schema: Schema, name: str) -> Kind:
    """How the type of that name is written and read, a message or not."""
    scalar = KINDS.get(name)
    if scalar is not None:
        return scalar
    message = schema.message(name)
    if message.itself:
        only = _codec(schema, message.itself)
        return Kind(
            BYTES, only.write, lambda raw: only.read(_found(raw).get(only.number, [])) or []
        )
    codec = _MessageCodec(message)
    return Kind(BYTES, codec.encode, codec.decode)


class _FieldCodec(Struct, frozen=True):
    number: int
    name: str
    inline: bool
    write: Callable[[Any], bytes]
    """The whole field, with its key; empty where it is not written."""
    read: Callable[[Found], Any]
    """The JSON of what was found; None where there is none."""
    shown: Callable[[Any], bool]
    """Whether that JSON is among the fields of the object."""


class _MessageCodec:
    """Writes and reads one message."""

    def __init__(self, message: Message) -> None:
        self._fields = tuple(_codec(message.schema, field) for field in message.fields)
        self._by_number = {field.number: field for field in self._fields}
        self._zero: Object = {}
        for field in self._fields:
            self._set(self._zero, field, field.read([]))

    def encode(self, value: Mapping[str, Any] | None) -> bytes:
        fields_of = value or {}
        return b"".join(
            [
                field.write(fields_of if field.inline else fields_of.get(field.name))
                for field in self._fields
            ]
        )

    def decode(self, data: bytes) -> Object:
        value = _copied(self._zero)
        for number, occurrences in _found(data).items():
            field = self._by_number.get(number)
            if field is not None:
                self._set(value, field, field.read(occurrences))
        return value

    @staticmethod
    def _set(value: Object, field: _FieldCodec, item: Any) -> None:
        if field.inline:
            value |= item
        elif field.shown(item):
            value[field.name] = item


def _copied(zero: Object) -> Object:
    """A copy of a zero value, which has no lists."""
    return {k: _copied(v) if isinstance(v, dict) else v for k, v in zero.items()}


def _found(data: bytes) -> dict[int, Found]:
    by_number: dict[int, Found] = {}
    for number, wire_type, raw in fields(data):
        by_number.setdefault(number, []).append((wire_type, raw))
    return by_number


def _codec(schema: Schema, field: Field) -> _FieldCodec:
    kind = _kind(schema, field.type)
    make = {
        Shape.ONE: _one,
        Shape.POINTER: _pointer,
        Shape.LIST: _list,
        Shape.MAP: _map,
    }[field.shape]
    write, read = make(field, kind)
    return _FieldCodec(
        number=field.number,
        name=field.name,
        inline=field.inline,
        write=write,
        read=read,
        shown=_shown(field),
    )


_Pair: TypeAlias = tuple[Callable[[Any], bytes], Callable[[Found], Any]]


def _one(field: Field, kind: Kind) -> _Pair:
    """A value that is always there, but for bytes, which may be missing."""
    write = _writer(field, kind)
    absent = b"" if field.type == "bytes" else write(None)
    read = _reader(field, kind)
    zero = None if field.type == "bytes" else kind.zero

    def value_of(found: Found) -> Any:
        return read(found) if found else zero and zero()

    return (lambda value: absent if value is None else write(value)), value_of


def _pointer(field: Field, kind: Kind) -> _Pair:
    write, read = _writer(field, kind), _reader(field, kind)
    return (
        lambda value: b"" if value is None else write(value),
        lambda occurrences: read(occurrences) if occurrences else None,
    )


def _list(field: Field, kind: Kind) -> _Pair:
    write = _writer(field, kind)

    def read(found: Found) -> Any:
        raws = [raw for item in found for raw in _unpacked(field, kind, item)]
        return [kind.decode(raw) for raw in raws] or None

    return (lambda value: b"".join(map(write, value or ()))), read


def _map(field: Field, kind: Kind) -> _Pair:
    start, of_key, of_value = key(field.number, BYTES), key(_KEY, BYTES), key(_VALUE, BYTES)

    def entry(name: str, value: Any) -> bytes:
        content = of_key + with_length(_TEXT.encode(name))
        if value is not None or field.type != "bytes":
            content += of_value + with_length(kind.encode(value))
        return start + with_length(content)

    def read(found: Found) -> Any:
        items: Object = {}
        for wire_type, raw in found:
            parts = _found(_of_type(field, BYTES, wire_type, raw))
            (_, name), (_, value) = (parts.get(part, [(BYTES, b"")])[-1] for part in (_KEY, _VALUE))
            items[_TEXT.decode(name)] = kind.decode(value)
        return items or None

    return (lambda value: b"".join(entry(*item) for item in sorted((value or {}).items()))), read


def _writer(field: Field, kind: Kind) -> Callable[[Any], bytes]:
    start, encode = key(field.number, kind.wire_type), kind.encode
    if kind.wire_type == VARINT:
        return lambda value: start + encode(value)
    return lambda value: start + with_length(encode(value))


def _reader(field: Field, kind: Kind) -> Callable[[Found], Any]:
    """Reads a field that is there once; of several the last counts, messages are merged."""
    merges = field.type not in KINDS

    def read(found: Found) -> Any:
        raws = [_of_type(field, kind.wire_type, *item) for item in found]
        return kind.decode(b"".join(raws) if merges else raws[-1])

    return read


def _of_type(field: Field, wanted: int, wire_type: int, raw: Any) -> Any:
    if wire_type != wanted:
        name = field.name[:1].upper() + field.name[1:]
        raise WireError(f"proto: wrong wireType = {wire_type} for field {name}")
    return raw


def _unpacked(field: Field, kind: Kind, item: tuple[int, Any]) -> list[Any]:
    """The values of one occurrence of a list's field: one, or numbers that are packed."""
    wire_type, raw = item
    if kind.wire_type != VARINT or wire_type != BYTES:
        return [_of_type(field, kind.wire_type, wire_type, raw)]
    at, numbers = 0, []
    while at < len(raw):
        number, at = read_varint(raw, at)
        numbers.append(number)
    return numbers


def _shown(field: Field) -> Callable[[Any], bool]:
    """Whether Go writes a value of this field into JSON (None: there is none)."""
    if field.filled:
        return lambda item: True
    return bool if field.shape is Shape.ONE else lambda item: item is not None
