"""`$(( ))`: whole numbers of 64 bits, with the operators and assignments of C."""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from typing import Final

from fakecri.fakesh.shell.scan import ScriptError

_TOKEN: Final = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|"
    r"(\*\*|<<=|>>=|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|[-+*/%&|^<>=!~?:()]))"
)
_LEVELS: Final = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_ASSIGNS: Final = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise ScriptError("divide by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_DO: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
}


def evaluate(text: str, names: MutableMapping[str, str]) -> int:
    """The value; assignments change `names`. Raises ScriptError.

    >>> evaluate("2 * (3 + x)", {"x": "4"})
    14
    """
    try:
        return _Reader(text, names).whole()
    except RecursionError:
        raise ScriptError("arithmetic syntax error") from None


class _Reader:
    """Reads an expression by the precedence of its operators.

    `dry`: read a part that does not count, such as the right side of `1 || x=2`, without its
    effects.
    """

    def __init__(self, text: str, names: MutableMapping[str, str]) -> None:
        self._names = names
        self._tokens: list[str] = []
        self._at = 0
        self._dry = 0
        at, end = 0, len(text.rstrip())
        while at < end:
            matched = _TOKEN.match(text, at)
            if matched is None:
                raise ScriptError("arithmetic syntax error")
            self._tokens.append(matched[0].strip())
            at = matched.end()

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        token = self._peek()
        if token and token in wanted:
            self._at += 1
            return token
        return ""

    def whole(self) -> int:
        if not self._tokens:
            return 0
        value = self._assignment()
        if self._peek():
            raise ScriptError("arithmetic syntax error")
        return value

    def _assignment(self) -> int:
        ahead = self._tokens[self._at + 1 : self._at + 2]
        if ahead and ahead[0] in _ASSIGNS and self._peek().isidentifier():
            name, sign = self._peek(), ahead[0]
            self._at += 2
            value = self._assignment()
            if sign != "=":
                value = _DO[sign[:-1]](self._value(name), value) if not self._dry else 0
            return self._set(name, value)
        return self._choice()

    def _choice(self) -> int:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        first = self._counted(bool(condition), self._assignment)
        if not self._take(":"):
            raise ScriptError("arithmetic syntax error")
        second = self._counted(not condition, self._assignment)
        return first if condition else second

    def _counted(self, counts: bool, read: Callable[[], int]) -> int:
        self._dry += not counts
        try:
            return read()
        finally:
            self._dry -= not counts

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            counts = not ((sign == "||" and value) or (sign == "&&" and not value))
            other = self._counted(counts, lambda: self._binary(level + 1))
            value = _wrapped(_DO[sign](value, other)) if not self._dry else 0
        return value

    def _unary(self) -> int:
        sign = self._take("!", "~", "-", "+", "++", "--")
        if sign in ("++", "--") and self._peek().isidentifier():
            name = self._peek()
            self._at += 1
            return self._set(name, self._value(name) + (1 if sign == "++" else -1))
        if sign:
            value = self._unary()
            return {"!": int(not value), "~": ~value, "-": -value, "--": value}.get(sign, value)
        return self._power()

    def _power(self) -> int:
        value = self._atom()
        if not self._take("**"):
            return value
        power = self._unary()
        if power < 0:
            raise ScriptError("exponent less than 0")
        return _wrapped(pow(value, power, 1 << 64))

    def _atom(self) -> int:
        token = self._peek()
        self._at += 1
        if token == "(":
            value = self._assignment()
            if not self._take(")"):
                raise ScriptError("arithmetic syntax error")
            return value
        if token.isidentifier():
            value = self._value(token)
            if sign := self._take("++", "--"):
                self._set(token, value + (1 if sign == "++" else -1))
            return value
        return _number(token)

    def _value(self, name: str) -> int:
        return _number(self._names.get(name, "").strip() or "0")

    def _set(self, name: str, value: int) -> int:
        value = _wrapped(value)
        if not self._dry:
            self._names[name] = str(value)
        return value


def _number(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.removeprefix("-")
    try:
        if digits.lower().startswith("0x"):
            return _wrapped(sign * int(digits, 16))
        if digits.startswith("0"):
            return _wrapped(sign * int(digits, 8))
        return _wrapped(sign * int(digits[:40]))
    except ValueError:
        raise ScriptError("arithmetic syntax error") from None


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
