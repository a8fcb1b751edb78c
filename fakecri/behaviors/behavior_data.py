"""Behaviours as plain data, as script files and control requests hold them (the way back:
`fakecri.scripts.behavior_shapes`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from fakecri.behaviors.behavior import KINDS, Behavior, Reply
from fakecri.behaviors.checked import BehaviorError

PYTHON_FIELDS: Final = frozenset({"handler", "program"})
"""Fields that hold code and have no plain form."""


def to_dict(behavior: Behavior) -> dict[str, Any]:
    """Plain data: `{"exits": {"code": 1, "after_s": 2.0}}`; fields at their default are left out.

    Raises BehaviorError for a behaviour that holds Python code.
    """
    name = next(n for n, kind in KINDS.items() if type(behavior) is kind)
    for code in PYTHON_FIELDS:
        if getattr(behavior, code, None) is not None:
            raise BehaviorError(f"{name}({code}=...) is Python code and has no plain-data form")
    return {name: _given(behavior)}


def shown(behavior: Behavior) -> str:
    """A behaviour as a sentence has it: `exits(code=1, after_s=2.0)`; code is shown as `...`."""
    name = next(n for n, kind in KINDS.items() if type(behavior) is kind)
    given = (
        f"{f.name}={'...' if f.name in PYTHON_FIELDS else _repr(getattr(behavior, f.name))}"
        for f in fields(behavior)
        if getattr(behavior, f.name) != f.default
    )
    return f"{name}({', '.join(given)})"


def _repr(value: Any) -> str:
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _given(value: Any) -> dict[str, Any]:
    """The fields that are not at their default."""
    return {
        f.name: _plain(getattr(value, f.name))
        for f in fields(value)
        if getattr(value, f.name) != f.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Reply):
        return _given(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
