"""Every field of an object broken in every way that its value allows: the changes for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pod_changes import escaped

LONG: Final = "a" * 70
"""Longer than a label, shorter than a subdomain."""
TEXTS: Final = ("", "Bad_<\x7f!", "../up", "/abs", LONG)
_NUMBERS: Final = (-1, 0, 256, 70000)


def breakings(value: Any, place: str) -> Iterator[dict[str, Any]]:
    """The changes that break one field each of the value, which is at `place`, and of all in it:
    taken away, empty, wrong, too long, too small, too large, twice."""
    todo = [(value, place)]
    while todo:
        inner, here = todo.pop(0)
        yield {here: None}
        for other in _others(inner):
            if other != inner:
                yield {here: other}
        if isinstance(inner, list):
            todo += [(one, f"{here}/{i}") for i, one in enumerate(inner)]
        elif isinstance(inner, Mapping):
            todo += [(one, f"{here}/{escaped(key)}") for key, one in inner.items()]


def _others(value: Any) -> list[Any]:
    """Other values of the same type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return list(_NUMBERS)
    if isinstance(value, str):
        return list(TEXTS)
    if isinstance(value, list):
        return [[], value + value[-1:]]
    return [{}]
