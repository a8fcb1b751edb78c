"""How refusals show a patch."""

from __future__ import annotations

from typing import Any


def as_go_prints(value: Any) -> str:
    """How Go prints a value that it read from JSON.

    >>> as_go_prints({"b": [1, True, None], "a": {"c": "d"}})
    'map[a:map[c:d] b:[1 true <nil>]]'
    """
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{as_go_prints(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(as_go_prints, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
