"""Label selectors: from text to what they ask of the labels of an object. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from fakekubeapi.errors import bad_request
from kubeobjects.causes import shown
from kubeobjects.names import label_value_problems, qualified_name_problems

Labels = dict[str, str]
Term = Callable[[Labels], bool]
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!<>,()]|[^\s=!<>,()]+)")
_OPERATORS: Final = ("=", "==", "!=", "in", "notin", ">", "<")
_SPECIAL: Final = ("=", "==", "!=", "!", ">", "<", ",", "(", ")")


def parse_label_selector(text: str) -> list[Term]:
    """The terms of a selector such as `a=b,c!=d,e,!f,g in (x,y),h notin (z)`. Raises: StatusError
    400 that says what was expected."""
    return _Parser(_TOKEN.findall(text)).terms()


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def terms(self) -> list[Term]:
        parsed: list[Term] = []
        while self._peek():
            parsed.append(self._term())
            token = self._next()
            if token not in ("", ","):
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
            if token == "," and (
                not self._peek() or self._peek() in ("=", "==", "!=", ",", "(", ")")
            ):
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
        return parsed

    def _term(self) -> Term:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if not key or key in _SPECIAL:
            raise _unparsed(f"found '{key}', expected: identifier")
        _require("key", key, qualified_name_problems(key))
        if absent:
            return lambda labels: key not in labels
        if self._peek() in ("", ","):
            return lambda labels: key in labels
        operator = self._next()
        if operator not in _OPERATORS:
            words = "in, notin, =, ==, !=, gt, lt"
            raise _unparsed(f"found '{operator}', expected: {words}")
        values = self._set() if operator in ("in", "notin") else [self._value()]
        for i, value in enumerate(values):
            if operator in (">", "<"):
                _require_number(key, value, i)
            _require(f"values[{i}][{key}]", value, label_value_problems(value))
        return _matcher(key, operator, values)

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if token in _SPECIAL:
            raise _unparsed(f"found '{token}', expected: identifier")
        return token

    def _set(self) -> list[str]:
        token = self._next()
        if token != "(":
            raise _unparsed(f"found '{token}' expected: '('")
        values = [""]
        while True:
            token = self._next()
            if token == ")":
                return values
            if token == ",":
                values.append("")
            elif not token or token in _SPECIAL:
                raise _unparsed(f"found '{token}', expected: ',' or ')'")
            else:
                values[-1] = token


def _matcher(key: str, operator: str, values: list[str]) -> Term:
    value = values[0]
    if operator == "in":
        return lambda labels: labels.get(key) in values
    if operator == "notin":
        return lambda labels: labels.get(key) not in values
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    if operator == ">":
        return lambda labels: _number(labels.get(key)) > int(value)
    if operator == "<":
        return lambda labels: key in labels and -_number(labels[key], -1) > -int(value)
    return lambda labels: labels.get(key) == value


def _number(text: str | None, sign: int = 1) -> float:
    """The number in a label; less than all others (with `sign` -1: more) where there is none."""
    fine = text is not None and re.fullmatch("[+-]?[0-9]+", text)
    return float(text) if fine and text is not None else -sign * float("inf")


def _require(path: str, value: str, problems: list[str]) -> None:
    if problems:
        raise _unparsed(f"{path}: Invalid value: {shown(value)}: {problems[0]}")


def _require_number(key: str, value: str, index: int) -> None:
    if not re.fullmatch("[+-]?[0-9]+", value):
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _unparsed(f"values[{index}][{key}]: Invalid value: {shown(value)}: {text}")


def _unparsed(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")
