"""`test` and `[`: conditions about texts, numbers and files, as busybox decides them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from typing import Final

from fakecri.fakesh.invocations.invocation import USAGE, Invocation

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
_TEXTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "=": str.__eq__,
    "==": str.__eq__,
    "!=": str.__ne__,
}
_CLOSING: Final = {"[": "]", "[[": "]]"}
_OF_FILES: Final = frozenset("-" + letter for letter in "defrswxhLpSbc")


async def test(run: Invocation) -> int:
    """`test`, `[` and `[[`: 0 for true, 1 for false, 2 for a condition that makes no sense."""
    words = list(run.command[1:])
    name = run.command[0].rsplit("/", 1)[-1]
    if name in _CLOSING:
        if words[-1:] != [_CLOSING[name]]:
            await run.err(f"{name}: missing {_CLOSING[name]}\n")
            return USAGE
        words.pop()
    try:
        return int(not _Expression(run, words, patterns=name == "[[").whole())
    except ValueError as error:
        await run.err(f"sh: {error}\n")
        return USAGE


class _Expression:
    def __init__(self, run: Invocation, words: list[str], *, patterns: bool = False) -> None:
        self._patterns = patterns
        self._run = run
        self._words = words
        self._at = 0

    def whole(self) -> bool:
        """Whether the whole condition holds. Raises ValueError for one that makes no sense."""
        if not self._words:
            return False
        value = self._or()
        if self._at < len(self._words):
            raise ValueError(f"{self._words[self._at]}: unknown operand")
        return value

    def _peek(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else None

    def _or(self) -> bool:
        value = self._and()
        while self._peek() == "-o":
            self._at += 1
            value = self._and() or value
        return value

    def _and(self) -> bool:
        value = self._not()
        while self._peek() == "-a":
            self._at += 1
            value = self._not() and value
        return value

    def _not(self) -> bool:
        if self._peek() == "!" and self._peek(1) is not None:
            self._at += 1
            return not self._not()
        return self._primary()

    def _primary(self) -> bool:
        first, second, third = self._peek(), self._peek(1), self._peek(2)
        if first is None:
            raise ValueError("argument expected")
        if second is not None and third is not None and second in (*_TEXTS, *_NUMBERS):
            self._at += 3
            if second in _TEXTS and self._patterns:
                return fnmatch.fnmatchcase(first, third) == (second != "!=")
            if second in _TEXTS:
                return _TEXTS[second](first, third)
            return _NUMBERS[second](_number(first), _number(third))
        if first == "(" and second is not None:
            self._at += 1
            value = self._or()
            if self._peek() != ")":
                raise ValueError("closing paren expected")
            self._at += 1
            return value
        if second is not None and (first in ("-n", "-z", "-t") or first in _OF_FILES):
            self._at += 2
            return self._unary(first, second)
        self._at += 1
        return bool(first)

    def _unary(self, operator: str, word: str) -> bool:
        if operator in ("-n", "-z"):
            return bool(word) == (operator == "-n")
        if operator == "-t":
            return self._run.tty
        files, path, lenient = self._run.files, self._run.path(word), self._run.lenient
        if operator == "-d":
            return files.is_directory(path)
        if operator in ("-f", "-s") or not files.is_directory(path):
            there = files.is_file(path, lenient=lenient) and operator not in ("-h", "-L", "-p")
            return there and (operator != "-s" or files.size(path) > 0)
        return operator in ("-e", "-r", "-w", "-x")


def _number(text: str) -> int:
    try:
        return int(text.strip()[:40])
    except ValueError:
        raise ValueError(f"bad number '{text}'") from None
