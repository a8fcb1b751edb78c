"""Name/value blocks of SPDY/3.1 before compression (SPDY draft 3.1, 2.6.10). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Lower-case names with their values, in order; a name may come more than once."""
U32: Final = Struct("!I")


def pack_headers(headers: Headers) -> bytes:
    """The name/value block before compression; values of one name are joined with NUL."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value)
    block = [U32.pack(len(values))]
    for name, texts in values.items():
        for part in (name.encode(), "\0".join(texts).encode()):
            block += (U32.pack(len(part)), part)
    return b"".join(block)


def unpack_headers(block: bytes) -> Headers:
    """The headers of a name/value block. Raises ValueError for one that is cut or has a name
    twice."""
    at = U32.size

    def text() -> str:
        nonlocal at
        start = at + U32.size
        at = start + word(block, at)
        if at > len(block):
            raise ValueError("the header block is cut")
        return block[start:at].decode()

    headers: list[tuple[str, str]] = []
    names_seen: set[str] = set()
    for _ in range(word(block, 0)):
        name = text()
        if not name or name != name.lower() or name in names_seen:
            raise ValueError(f"header name {name!r} is empty, not in lower case, or there twice")
        names_seen.add(name)
        headers += ((name, value) for value in text().split("\0"))
    return tuple(headers)


def header(headers: Iterable[tuple[str, str]], name: str) -> str:
    """The first value of a header; `name` may be in any case. "": there is none."""
    return next((value for key, value in headers if key == name.lower()), "")


def word(payload: bytes, at: int) -> int:
    if len(payload) < at + 4:
        raise ValueError(f"wanted at least {at + 4} bytes, got {len(payload)}")
    return int(U32.unpack_from(payload, at)[0])
