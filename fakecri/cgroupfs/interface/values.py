"""How the kernel reads what is written into interface files. Pure.

Three families of readers: strict integers (no blanks, at most one newline at the end), sizes with
suffixes, and lists of CPUs or nodes. Which file uses which is in the tables of the controllers.
What must never happen here: a text that the kernel refuses is accepted, or the other way round.
Rules CG-104, CG-105, CG-130, CG-143.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

PAGE_BYTES: Final = 4096
UNLIMITED: Final = (2**63 - 1) // PAGE_BYTES * PAGE_BYTES
"""What a counter without a limit reads as, in bytes (CG-130)."""
MAX_WRITE_BYTES: Final = 4096
U64_MAX: Final = 2**64 - 1
I64_MAX: Final = 2**63 - 1
U32_MAX: Final = 2**32 - 1
I32_MAX: Final = 2**31 - 1

_BLANK: Final = " \t\n\v\f\r"
_STRICT: Final = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(.*)", re.DOTALL)
_LOOSE: Final = re.compile(r"(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*|)([eptgmkEPTGMK]?)")
_SHIFT: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50, "e": 60}
_REGION: Final = re.compile(r"(N|\d+)(?:-(N|\d+)(?::(\d+)/(\d+))?)?")


def refuse(code: int) -> OSError:
    """An error to raise; it gets its path from `named`, where the path is known."""
    return OSError(code, os.strerror(code))


def require_amounts(**amounts: object) -> None:
    """Check that all are whole numbers from 0 on. Raises ValueError, which names the argument."""
    for name, amount in amounts.items():
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            raise ValueError(f"{name}: wanted a whole number from 0, got {amount!r}")


def named(error: OSError, path: str) -> OSError:
    """The same error with the path of the file."""
    code = error.errno or errno.EIO
    return OSError(code, os.strerror(code), path)


def stripped(text: str) -> str:
    """A text without the blanks around it."""
    return text.strip(_BLANK)


def _number(text: str) -> int:
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        value = int(digits, 16)
    else:
        value = int(digits, 8 if digits.startswith("0") else 10)
    return -value if text.startswith("-") else value


def _strict(text: str, low: int, high: int, *, signed: bool) -> int:
    """A number within bounds. That it is too large counts before garbage behind its digits:
    `99999999999999999999x` is ERANGE."""
    match = _STRICT.match(text)
    if match is None or (match[1] == "-" and not signed):
        raise refuse(errno.EINVAL)
    value = _number(match[1] + match[2])
    if abs(value) > U64_MAX:
        raise refuse(errno.ERANGE)
    if match[3] not in ("", "\n"):
        raise refuse(errno.EINVAL)
    if not low <= value <= high:
        raise refuse(errno.ERANGE)
    return value


def unsigned(text: str) -> int:
    """An unsigned 64-bit integer; decimal, `0x` or leading-0 octal, no blanks (CG-105)."""
    return _strict(text, 0, U64_MAX, signed=False)


def signed(text: str) -> int:
    """A signed 64-bit integer with the same grammar."""
    return _strict(text, -(2**63), I64_MAX, signed=True)


def small(text: str) -> int:
    """A signed 32-bit integer; there may be blanks around it, as for cgroup.freeze."""
    return _strict(stripped(text), -(2**31), I32_MAX, signed=True)


def one_of(text: str, *wanted: int) -> int:
    """An integer that must be one of these. Raises ERANGE for another, EINVAL for a text (CG-123,
    CG-124, CG-126)."""
    value = small(text)
    if value not in wanted:
        raise refuse(errno.ERANGE)
    return value


def flag(text: str) -> int:
    """0 or 1: any unsigned integer but 0 is 1."""
    return int(unsigned(text) != 0)


def size(text: str, *, unlimited: str) -> int:
    """Bytes: a number with a suffix K, M, G, T, P or E or none, rounded down to pages; the text
    `unlimited` is all there is. As in the kernel an empty text is 0, and what needs more than 64
    bits wraps (CG-130)."""
    text = stripped(text)
    if text == unlimited:
        return UNLIMITED
    match = _LOOSE.match(text)
    if match is None or match.end() != len(text):
        raise refuse(errno.EINVAL)
    value = _number(match[1] or "0") & U64_MAX
    value = (value << _SHIFT[match[2].lower()]) & U64_MAX
    return min(value // PAGE_BYTES * PAGE_BYTES, UNLIMITED)


def int_list(text: str, count: int) -> frozenset[int]:
    """A list like `0-1,3` or `0-7:2/4` of numbers below `count`; blanks and commas part regions.

    Raises EINVAL for bad grammar, ERANGE for a number that cannot be, EOVERFLOW beyond 31 bits.
    """
    members: set[int] = set()
    for part in re.split(r"[\s,]+", stripped(text).split("\n")[0]):
        if part:
            members |= _region(part, count)
    return frozenset(members)


def _region(part: str, count: int) -> set[int]:
    if part[:3].lower() == "all":
        part = "0-N" + part[3:]
    match = _REGION.match(part)
    if match is None:
        raise refuse(errno.EINVAL)
    first, last = (_member(n, count) for n in (match[1], match[2] or match[1]))
    used, group = (int(n) for n in (match[3] or "1", match[4] or "1"))
    if match.end() != len(part):
        raise refuse(errno.EINVAL)
    if first > last or group == 0 or used > group:
        raise refuse(errno.EINVAL)
    if last >= count:
        raise refuse(errno.ERANGE)
    return {n for n in range(first, last + 1) if (n - first) % group < used}


def _member(text: str, count: int) -> int:
    value = count - 1 if text == "N" else int(text)
    if value > I32_MAX:
        raise refuse(errno.EOVERFLOW)
    return value


def list_text(members: frozenset[int]) -> str:
    """The numbers as the kernel writes them: `0-1,3`."""
    regions: list[list[int]] = []
    for n in sorted(members):
        if regions and regions[-1][1] == n - 1:
            regions[-1][1] = n
        else:
            regions.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in regions)
