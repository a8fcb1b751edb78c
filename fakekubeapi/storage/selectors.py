"""Field and label selectors: which objects of a list or a watch a client wants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from fakekubeapi.errors import bad_request

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

_SET_TERM: Final = re.compile(r"^\s*([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_KEY: Final = re.compile(r"^[\w./-]+$")
_VALUE: Final = re.compile(r"^[\w.-]*$")


def field_value(obj: Object, path: str) -> str:
    """The value at a dotted path as text; "" where there is none. Booleans are true/false."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _split_term(term: str) -> tuple[str, str, str]:
    """Key, operator and value of `key=value`, `key==value` or `key!=value`."""
    for operator in ("!=", "==", "="):
        if operator in term:
            key, value = term.split(operator, 1)
            return key.strip(), operator, value.strip()
    raise bad_request(f"invalid selector: {term!r}; can't understand it: wanted key=value")


def field_selector(text: str, supported: Sequence[str]) -> Predicate:
    """Whether an object matches a field selector such as `a.b=x,c!=y`; "" matches all.

    `supported`: the dotted paths it may name. Raises: StatusError 400 for another path or for text
    that is not a selector.
    """
    terms = []
    for raw in filter(None, (part.strip() for part in text.split(","))):
        key, operator, value = _split_term(raw)
        if key not in supported:
            raise bad_request(
                f"field label not supported: {key} (supported: {', '.join(supported)})"
            )
        terms.append((key, operator == "!=", value))
    return lambda obj: all((field_value(obj, k) != v) is negated for k, negated, v in terms)


def label_selector(text: str) -> Predicate:
    """Whether an object matches a label selector such as `a=b,c!=d,e,!f,g in (x,y),h notin (z)`; ""
    matches all. Raises: StatusError 400 for text that is not a selector."""
    terms = [_label_term(term) for term in _split_top_level(text)]
    return lambda obj: all(term(obj.get("metadata", {}).get("labels") or {}) for term in terms)


def _split_top_level(text: str) -> list[str]:
    """The terms between the commas, of which those in parentheses do not count."""
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    if len(parts) > 1 and not all(parts):
        raise bad_request("unable to parse requirement: found '', expected: identifier after ','")
    return [part for part in parts if part]


def _label_term(term: str) -> Callable[[dict[str, str]], bool]:
    if matched := _SET_TERM.match(term):
        key, operator, listed = matched.groups()
        values = [value.strip() for value in listed.split(",")]
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if _KEY.match(term):
        return lambda labels: term in labels
    if term.startswith("!") and _KEY.match(term[1:].strip()):
        absent = term[1:].strip()
        return lambda labels: absent not in labels
    key, operator, value = _split_term(term)
    if not _KEY.match(key) or not _VALUE.match(value):
        raise bad_request(f"invalid selector: {term!r}; can't understand it: wanted key=value")
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value
