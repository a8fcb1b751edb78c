"""The wire format of protocol buffers: a message is a row of fields, each a key (its number and
how its value is written) and a value. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
FIXED_64: Final = 1
BYTES: Final = 2
FIXED_32: Final = 5
"""The wire types that are in use: a number of any length, 8 bytes, a length with that number of
bytes, 4 bytes."""
_FIXED: Final = {FIXED_64: 8, FIXED_32: 4}
_MAX_SHIFT: Final = 64
_SMALL: Final = tuple(bytes((number,)) for number in range(128))


class WireError(ValueError):
    """Bytes that are no message; the text is what Go says of them."""


def varint(number: int) -> bytes:
    """A whole number of 64 bits; negative ones are written as their two's complement.

    >>> varint(300), len(varint(-1))
    (b'\\xac\\x02', 10)
    """
    if 0 <= number < 128:
        return _SMALL[number]
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def key(number: int, wire_type: int) -> bytes:
    """What is before the value of a field."""
    return varint(number << 3 | wire_type)


def with_length(content: bytes) -> bytes:
    """The value of a field of wire type `BYTES`."""
    return varint(len(content)) + content


def text(number: int, value: str | bytes) -> bytes:
    """A whole field of wire type `BYTES`."""
    content = value.encode() if isinstance(value, str) else value
    return key(number, BYTES) + with_length(content)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at that place, as 64 bits without a sign, and the place behind it. Raises:
    WireError."""
    if at < len(data) and data[at] < 128:
        return data[at], at + 1
    number = shift = 0
    while True:
        if shift >= _MAX_SHIFT:
            raise WireError("proto: integer overflow")
        if at >= len(data):
            raise WireError("unexpected EOF")
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & ((1 << 64) - 1), at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, wire type, value. Raises: WireError."""
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        if tag < 128:
            at += 1
        else:
            tag, at = read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"proto: illegal tag 0 (wire type {tag})")
        if wire_type == VARINT:
            value, at = read_varint(data, at)
            yield number, wire_type, value
            continue
        if wire_type == BYTES and at < end and data[at] < 128:
            length, at = data[at], at + 1
        elif wire_type == BYTES:
            length, at = read_varint(data, at)
        elif wire_type in _FIXED:
            length = _FIXED[wire_type]
        else:  # groups, which nobody sends any more
            raise WireError(f"proto: illegal wireType {wire_type}")
        if at + length > end:
            raise WireError("unexpected EOF")
        yield number, wire_type, data[at : at + length]
        at += length


def signed(number: int, bits: int) -> int:
    """The lower `bits` of a number as one with a sign."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number
