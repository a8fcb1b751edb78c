"""Backslashes in the words of programs, and the formats of `printf`. No I/O."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(0[0-7]{1,3}|[1-7][0-7]{0,2}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_NAMED: Final = dict(zip("abfnrtv0\\", "\a\b\f\n\r\t\v\0\\", strict=True))
_SPECIFIER: Final = re.compile(r"%([-0+ #]*)(\d*)(\.\d*)?([sdiuxXocb%])")
WIDEST: Final = 1 << 16
"""Columns of one field of a format."""


def unescaped(text: str) -> str:
    """`\\n`, `\\101`, `\\x41` and the like as what they stand for; `\\c` ends the text. Bytes above
    127 come as surrogates, as `os.fsdecode` has them.

    >>> unescaped(r"a\\tb\\x41\\q")
    'a\\tbA\\\\q'
    """
    return _ESCAPE.sub(_one, text.partition("\\c")[0])


def _one(found: re.Match[str]) -> str:
    word = found[1]
    if word in _NAMED:
        return _NAMED[word]
    if word[0] == "x" and len(word) > 1:
        number = int(word[1:], 16)
    elif word[0].isdecimal() and word.isascii() and word[0] < "8":
        number = int(word, 8) & 0xFF
    else:
        return found[0]
    return bytes((number,)).decode("utf-8", "surrogateescape")


def formatted(shape: str, words: list[str]) -> str:
    """One round through a format; what it uses is taken from `words`. Raises ValueError with what
    is wrong.

    >>> formatted("%-3s|%02x\\\\n", ["a", "10"])
    'a  |0a\\n'
    """

    def filled(found: re.Match[str]) -> str:
        flags, width, precision, kind = found.groups()
        if kind == "%":
            return "%"
        if len(width) > 9 or int(width or 0) > WIDEST or len(precision or "") > 5:
            raise ValueError("a field is too wide for the fake")
        word = words.pop(0) if words else ""
        value = _whole(word) if kind in "diuxXo" else unescaped(word) if kind == "b" else word
        plain = {"b": "s", "u": "d", "c": "s"}.get(kind, kind)
        cut = ".1" if kind == "c" else precision or ""
        return str(f"%{flags}{width}{cut}{plain}" % value)

    parts = re.split(r"((?:%[-0+ #]*\d*(?:\.\d*)?[sdiuxXocb%]))", shape)
    return "".join(
        _SPECIFIER.sub(filled, part) if i % 2 else unescaped(part) for i, part in enumerate(parts)
    )


def _whole(word: str) -> int:
    """`10`, `0x10`, `010`, none at all is 0. Raises ValueError."""
    digits = word.lstrip("+-")
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[:1] == "0" else 10
    try:
        return int(word or "0", base)
    except ValueError:
        raise ValueError(f"invalid number '{word[:40]}'") from None
