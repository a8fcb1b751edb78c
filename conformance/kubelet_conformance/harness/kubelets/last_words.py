"""What is kept of the log of a kubelet that died: why, if its last words say so. Pure.

A Go program that ends by a panic says so first and where it was last, as does one whose runtime
gives up, klog when it ends its program, and a Python program whose error nobody caught.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

LAST_LINES: Final = 15
"""Kept at least, where no line tells why it died."""
MOST_LINES: Final = 80
"""Kept from the line that tells why. A fatal error shows where every goroutine was."""
_ENDS_IT: Final = re.compile(r"panic: |fatal error: |Fatal Python error: |F\d{4} ")
"""With such a line a program ends, whatever its other threads still write."""
_GIVES_UP: Final = re.compile(
    r'E\d{4} .*"command failed" err="((?:[^"\\]|\\.)*)"|^ *refkubelet: error: (.*)$', re.MULTILINE
)
_UNCAUGHT: Final = "Traceback (most recent call last):"
_ORDINARY: Final = re.compile(r"[IWED]\d{4} |\d{4}-\d\d-\d\d |\{\"")
"""A line of a log: klog's, Python's, or one in JSON. Its program goes on."""


def last_words(lines: Sequence[str]) -> list[str]:
    """The end of a log, from the first line that tells why its program died; where none does, what
    was written after the last line of a log (up to MOST_LINES), and LAST_LINES lines at least.

    >>> last_words(["I1128 starting", "panic: no", "", "goroutine 1 [running]:", *"abc"])
    ['panic: no', '', 'goroutine 1 [running]:', 'a', 'b', 'c']
    """
    first = _why(lines)
    if first is None:
        behind_log = len(lines) - _log_ends(lines)
        return list(lines[-max(LAST_LINES, behind_log if behind_log <= MOST_LINES else 0) :])
    last_lines = list(lines[first : first + MOST_LINES])
    remaining = len(lines) - first - len(last_lines)
    return [*last_lines, f"({remaining} more lines)"] if remaining else last_lines


def own_error(text: str) -> str:
    """What a kubelet says of itself when it gives up; "" when it says nothing.

    >>> own_error('E1129 1:2 run.go:72] "command failed" err="unknown flag: \\\\"--x\\\\""')
    'unknown flag: "--x"'
    """
    found = _GIVES_UP.findall(text)
    return re.sub(r"\\(.)", r"\1", "".join(found[-1])) if found else ""


def says_that_it_ends(lines: Sequence[str]) -> bool:
    """Whether a line of the log is one with which a program ends.

    >>> says_that_it_ends(["I1128 x", "panic: no"]), says_that_it_ends(["I1128 panic: no"])
    (True, False)
    """
    return any(map(_ENDS_IT.match, lines))


def _log_ends(lines: Sequence[str]) -> int:
    """The index behind the last line that is one of a log: errors of several lines stand there."""
    behind = (number for number in range(len(lines), 0, -1) if _ORDINARY.match(lines[number - 1]))
    return next(behind, 0)


def _why(lines: Sequence[str]) -> int | None:
    """The index of the first line that tells why it died; None: no line does."""
    for number, line in enumerate(lines):
        if _ENDS_IT.match(line):
            return number
    uncaught = None
    for number in range(len(lines) - 1, -1, -1):
        if _ORDINARY.match(lines[number]):
            break
        if lines[number] == _UNCAUGHT:
            uncaught = number  # of errors that led to one another the first
    return uncaught
