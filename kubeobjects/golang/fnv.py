"""FNV-1a, the hash of Go's hash/fnv that the kubelet uses for names, UIDs and checksums. No I/O."""

from __future__ import annotations

from typing import Final

_FNV_32: Final = (0x811C9DC5, 0x01000193, 32)
_FNV_128: Final = (0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B, 128)

_PIECE: Final = 512


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


class Fnv32:
    """`fnv1a_32` of one text after another: what a text begins with as the last one did is not
    hashed again.

    >>> hash_of = Fnv32().of
    >>> [hex(hash_of(text)) for text in (b"foo", b"foobar")]
    ['0xa9f37ed7', '0xbf9cf968']
    """

    def __init__(self) -> None:
        self._last = b""
        self._values = [_FNV_32[0]]  # after so many pieces of the last text

    def of(self, data: bytes) -> int:
        """The hash of `data`."""
        values, same = self._values, 0
        while same + 1 < len(values) and _piece(data, same) == _piece(self._last, same):
            same += 1
        del values[same + 1 :]
        for number in range(same, len(data) // _PIECE):
            values.append(_fnv1a(_piece(data, number), (values[-1], *_FNV_32[1:])))
        self._last = data
        return _fnv1a(data[len(data) // _PIECE * _PIECE :], (values[-1], *_FNV_32[1:]))


def _piece(data: bytes, number: int) -> bytes:
    return data[number * _PIECE : (number + 1) * _PIECE]


def fnv1a_128(data: bytes) -> int:
    """FNV-1a, 128 bits.

    >>> hex(fnv1a_128(b"foobar"))
    '0x343e1662793c64bf6f0d3597ba446f18'
    """
    return _fnv1a(data, _FNV_128)
