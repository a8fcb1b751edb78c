"""Field and label selectors: which objects of a list or a watch a client wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from fakekubeapi.errors import bad_request
from fakekubeapi.storage.label_selectors import parse_label_selector

Object = dict[str, Any]
Predicate = Callable[[Object], bool]


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
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def field_selector(text: str, supported: Sequence[str], *, own: bool = True) -> Predicate:
    """Whether an object matches a field selector such as `a.b=x,c!=y`; "" matches all.

    `supported`: the dotted paths it may name; `own`: whether the kind has some of its own, which
    decides the words of a refusal. Raises: StatusError 400 for another path or for text
    that is not a selector.
    """
    terms = []
    for raw in filter(None, (part.strip() for part in text.split(","))):
        key, operator, value = _split_term(raw)
        if key not in supported:
            names = ", ".join(f'"{name}"' for name in supported)
            raise bad_request(
                f"field label not supported: {key}"
                if own
                else f'"{key}" is not a known field selector: only {names}'
            )
        terms.append((key, operator == "!=", value))
    return lambda obj: all((field_value(obj, k) != v) is negated for k, negated, v in terms)


_NARROW: Final = ("metadata.name", "spec.nodeName")
"""Fields whose values few objects share; the first is the narrowest."""


def required_value(text: str) -> tuple[str, str]:
    """The dotted path and value that a field selector wants of every object, of several those of
    the narrowest; two empty texts where it wants none. Raises as `field_selector`.

    >>> required_value("a.b!=x,status.phase=Running,spec.nodeName=n1"), required_value("")
    (('spec.nodeName', 'n1'), ('', ''))
    """
    terms = [_split_term(raw) for raw in filter(None, (part.strip() for part in text.split(",")))]
    required = [(path, value) for path, operator, value in terms if operator != "!="]
    return min(required, key=_width, default=("", ""))


def _width(term: tuple[str, str]) -> int:
    return _NARROW.index(term[0]) if term[0] in _NARROW else len(_NARROW)


def label_selector(text: str) -> Predicate:
    """Whether an object matches a label selector such as `a=b,c!=d,e,!f,g in (x,y),h notin (z)`; ""
    matches all. Raises: StatusError 400 for text that is not a selector."""
    terms = parse_label_selector(text)
    return lambda obj: all(term(obj.get("metadata", {}).get("labels") or {}) for term in terms)
