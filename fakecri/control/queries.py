"""Reads the query of a control request, strictly, into arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakecri.cri.services import require_method

SELECTORS: Final = ("pod", "container", "image")


def call_query(query: Mapping[str, str]) -> tuple[dict[str, Any], int | None]:
    """The arguments of `Recorder.calls`, and the `limit` on their number; None: no limit. Raises
    ValueError for unknown or wrong parameters."""
    readers: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(("method", *SELECTORS), str),
        **dict.fromkeys(("attempt", "limit"), int),
        "since_s": float,
    }
    found: dict[str, Any] = {}
    for name, text in query.items():
        if name not in readers:
            raise ValueError(f"unknown parameter {name!r}, wanted one of: {', '.join(readers)}")
        try:
            found[name] = readers[name](text)
        except ValueError:
            raise ValueError(f"parameter {name}: wanted a number, got {text!r}") from None
    if "method" in found:
        require_method(found["method"])
    limit = found.pop("limit", None)
    return found, limit


def names(query: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a query under other names: `known` maps each parameter to the name of its
    argument. Raises ValueError for a parameter that is not in it."""
    for name in query:
        if name not in known:
            raise ValueError(f"unknown parameter {name!r}, wanted one of: {', '.join(known)}")
    return {known[name]: value for name, value in query.items()}
