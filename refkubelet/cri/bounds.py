"""Bounds of what a runtime tells: numbers, texts and lists, where they are read (CRI-011). Pure.

A runtime is another program, and has bugs of its own. What it tells goes into API objects, metrics,
files and calls, whose fields are narrower than the wire's: a size of 2^64-1 in the Node's status
makes the API server refuse every status from then on. So an impossible value becomes the nearest
possible one, here and nowhere else; whoever works with records need not ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

MOST: Final = 2**63 - 1
"""The largest number of the API: it has signed integers, the wire unsigned ones, too."""
MOST_TRIES: Final = 2**30
"""Of attempts and restarts, 32 bits in the API and on the wire: there is room to count on."""
NAME_BYTES: Final = 1024  # of an image, a user, a reason, an ID
PATH_BYTES: Final = 4096
TEXT_BYTES: Final = 32 * 1024  # of a message; an API object has room for 1.5 MB
MOST_NAMES: Final = 1000  # of one image, of handlers, of groups


def number(value: int) -> int:
    """The amount, from 0 to `MOST`.

    >>> number(2**64 - 1) == MOST, number(-1), number(7)
    (True, 0, 7)
    """
    return value if 0 <= value <= MOST else MOST if value > 0 else 0


def tries(value: int) -> int:
    """A count of attempts or restarts, from 0 to `MOST_TRIES`."""
    return value if 0 <= value <= MOST_TRIES else MOST_TRIES if value > 0 else 0


def counted(text: str | None, default: int) -> int:
    """The count that a text of decimal digits stands for, else `default`.

    >>> counted("12", 3), counted("9" * 5000, 3), counted("x", 3), counted(None, 3)
    (12, 1073741824, 3, 3)
    """
    if text is None or not (text.isascii() and text.isdecimal()):
        return tries(default)
    return tries(int(text)) if len(text) <= len(str(MOST)) else MOST_TRIES


def decimal(value: float) -> float:
    """The number, or 0 for what JSON has no form of.

    >>> decimal(0.5), decimal(math.nan), decimal(math.inf)
    (0.5, 0.0, 0.0)
    """
    return value if math.isfinite(value) else 0.0


def text(value: str, most_bytes: int = TEXT_BYTES) -> str:
    """The beginning of a text, of at most so many bytes of UTF-8.

    >>> text("abc"), text("aé", 2)
    ('abc', 'a')
    """
    if len(value) * 4 <= most_bytes:
        return value
    return value.encode()[:most_bytes].decode(errors="ignore")


def name(value: str) -> str:
    """A short text, cut like any other: one of a reason, a version, a user."""
    return value if len(value) * 4 <= NAME_BYTES else text(value, NAME_BYTES)


def whole(value: str, most_bytes: int = NAME_BYTES) -> str:
    """A text that is of no use when it is cut, as a path is; "" for one that is too long, or has a
    NUL, which no path can have.

    >>> whole("/a"), whole("/a" * 5000), whole("/a" + chr(0))
    ('/a', '', '')
    """
    fits = len(value) * 4 <= most_bytes or len(value.encode()) <= most_bytes
    return value if fits and "\0" not in value else ""


def names(values: Iterable[str]) -> tuple[str, ...]:
    """The first `MOST_NAMES` of the names that are not too long."""
    fitting_names: list[str] = []
    for value in values:
        if len(fitting_names) == MOST_NAMES:
            break
        if fitting := whole(value):
            fitting_names.append(fitting)
    return tuple(fitting_names)
