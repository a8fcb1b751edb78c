"""FNV-1a, the hash of Go's hash/fnv that the kubelet uses for names, UIDs and checksums. Pure."""

from __future__ import annotations

from typing import Final

_FNV_32: Final = (0x811C9DC5, 0x01000193, 32)
_FNV_128: Final = (0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B, 128)


def _fnv1a(data: bytes, parameters: tuple[int, int, int]) -> int:
    value, prime, bits = parameters
    mask = (1 << bits) - 1
    rest = len(data) % 4
    fours = iter(data[: len(data) - rest])
    for a, b, c, d in zip(fours, fours, fours, fours, strict=True):
        # Higher bits never change lower ones, so those beyond the hash may wait to be cut off.
        value = ((((value ^ a) * prime ^ b) * prime ^ c) * prime ^ d) * prime & mask
    for byte in data[len(data) - rest :]:
        value = (value ^ byte) * prime & mask
    return value


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits.

    >>> hex(fnv1a_32(b"foobar"))
    '0xbf9cf968'
    """
    return _fnv1a(data, _FNV_32)


def fnv1a_128(data: bytes) -> int:
    """FNV-1a, 128 bits.

    >>> hex(fnv1a_128(b"foobar"))
    '0x343e1662793c64bf6f0d3597ba446f18'
    """
    return _fnv1a(data, _FNV_128)
