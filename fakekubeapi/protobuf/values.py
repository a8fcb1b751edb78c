"""The values of fields that are no messages in JSON: text, numbers, bytes, times, quantities. Pure.

`Kind` says how a type is written and read. What is not there (None) is written as Go's zero value,
as the API server and its clients do.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from fakekubeapi.protobuf.wire import (
    BYTES,
    VARINT,
    WireError,
    fields,
    key,
    signed,
    text,
    varint,
)
from simclock.clock import EPOCH

_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_NANOS_OF_MICRO: Final = 1000
_AS_TEXT: Final = 1
"""`type` of an IntOrString that is a text."""


class Kind(Struct, frozen=True):
    """How the values of one type are on the wire, and how in JSON."""

    wire_type: int
    encode: Callable[[Any], bytes]
    """The value on the wire without key and length; None: the zero value."""
    decode: Callable[[Any], Any]
    """The JSON of what was on the wire: a number, or bytes. Raises: WireError."""

    def zero(self) -> Any:
        """The JSON of the zero value."""
        return self.decode(0 if self.wire_type == VARINT else b"")


def _encode_text(value: Any) -> bytes:
    return str(value or "").encode(errors="replace")


def _decode_text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _encode_bytes(value: Any) -> bytes:
    return base64.b64decode(value or "")


def _decode_bytes(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _encode_number(value: Any) -> bytes:
    return varint(int(value or 0))


def _last(raw: bytes, number: int, otherwise: Any) -> Any:
    """The value of the last field of that number in a small message."""
    result = otherwise
    for field_number, _, value in fields(raw):
        if field_number == number:
            result = value
    return result


def _encode_quantity(value: Any) -> bytes:
    return text(1, "0" if value is None else str(value))


def _decode_quantity(raw: bytes) -> str:
    return _decode_text(_bytes(_last(raw, 1, b""))) or "0"


def _encode_int_or_string(value: Any) -> bytes:
    is_text = isinstance(value, str)
    kind = varint(_AS_TEXT if is_text else 0)
    number = varint(0 if is_text else int(value or 0))
    return key(1, VARINT) + kind + key(2, VARINT) + number + text(3, value if is_text else "")


def _decode_int_or_string(raw: bytes) -> int | str:
    if _last(raw, 1, 0) == _AS_TEXT:
        return _decode_text(_bytes(_last(raw, 3, b"")))
    return signed(_number(_last(raw, 2, 0)), 32)


def _encode_json(value: Any) -> bytes:
    return b"" if value is None else text(1, msgspec.json.encode(value))


def _decode_json(raw: bytes) -> Any:
    text = _bytes(_last(raw, 1, b""))
    try:
        return msgspec.json.decode(text) if text else None
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"what should be JSON is not: {error}") from None


def _encode_time(value: Any, *, micro: bool) -> bytes:
    if value is None:
        return b""
    when = datetime.fromisoformat(value)
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - EPOCH
    if since == _ZERO_TIME - EPOCH:
        return b""
    nanos = since.microseconds * _NANOS_OF_MICRO if micro else 0
    return key(1, VARINT) + varint(since // _SECOND) + key(2, VARINT) + varint(nanos)


def _decode_time(raw: bytes, *, micro: bool) -> str | None:
    if not raw:
        return None
    seconds = signed(_number(_last(raw, 1, 0)), 64)
    nanos = signed(_number(_last(raw, 2, 0)), 32) if micro else 0
    try:
        since = timedelta(seconds=seconds, microseconds=nanos // _NANOS_OF_MICRO)
        when = EPOCH + since
    except OverflowError:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from None
    if when == _ZERO_TIME:
        return None
    local = when.replace(tzinfo=None)
    return local.isoformat(timespec="microseconds" if micro else "seconds") + "Z"


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("proto: wrong wireType = 0")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise WireError("proto: wrong wireType = 2")
    return value


KINDS: Final = {
    "string": Kind(BYTES, _encode_text, _decode_text),
    "bytes": Kind(BYTES, _encode_bytes, _decode_bytes),
    "bool": Kind(VARINT, _encode_number, bool),
    "int32": Kind(VARINT, _encode_number, partial(signed, bits=32)),
    "int64": Kind(VARINT, _encode_number, partial(signed, bits=64)),
    "Quantity": Kind(BYTES, _encode_quantity, _decode_quantity),
    "IntOrString": Kind(BYTES, _encode_int_or_string, _decode_int_or_string),
    "Time": Kind(BYTES, partial(_encode_time, micro=False), partial(_decode_time, micro=False)),
    "MicroTime": Kind(BYTES, partial(_encode_time, micro=True), partial(_decode_time, micro=True)),
    "FieldsV1": Kind(BYTES, _encode_json, _decode_json),
    "RawExtension": Kind(BYTES, _encode_json, _decode_json),
}
"""Each type that has no table of fields."""
