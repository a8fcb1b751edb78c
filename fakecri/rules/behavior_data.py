"""Behaviours as plain data, for script files, control requests and records.

What must never happen here: a behaviour changes on its way out and in, or a mistake passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from fakecri.rules.behavior import KINDS, Behavior, BehaviorError, Reply
from fakecri.rules.curves import Curve, curve, ramp

PYTHON_FIELDS: Final = frozenset({"handler", "program"})
"""Fields that hold code and have no plain form."""


def to_dict(behavior: Behavior) -> dict[str, Any]:
    """Plain data: `{"exits": {"code": 1, "after_s": 2.0}}`; fields at their default are left out.

    Raises: BehaviorError for a behaviour that holds Python code.
    """
    name = next(n for n, kind in KINDS.items() if type(behavior) is kind)
    for code in PYTHON_FIELDS:
        if getattr(behavior, code, None) is not None:
            raise BehaviorError(f"{name}({code}=...) is Python code and has no plain-data form")
    return {name: _given(behavior)}


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


def from_dict(value: Mapping[str, Any]) -> Behavior:
    """The behaviour of `{"exits": {"code": 1}}`. Raises BehaviorError, which names the place."""
    if len(value) != 1:
        raise BehaviorError(f"wanted one behaviour, got the keys {sorted(value)}")
    name, given = next(iter(value.items()))
    if name not in KINDS:
        raise BehaviorError(f"unknown behaviour {name!r}; wanted one of {', '.join(KINDS)}")
    if not isinstance(given, Mapping):
        raise BehaviorError(f"{name}: wanted a mapping of its fields, got {given!r}")
    kind = KINDS[name]
    known = {f.name: f for f in fields(kind) if f.name not in PYTHON_FIELDS}
    for key in given:
        if key not in known:
            raise BehaviorError(f"{name}: unknown field {key!r}; wanted one of {', '.join(known)}")
    try:
        behavior: Behavior = kind(**{key: _typed(name, key, item) for key, item in given.items()})
    except TypeError as error:
        raise BehaviorError(f"{name}: {error}") from None
    return behavior


_INTEGERS: Final = frozenset({"port", "status", "lost_bytes"})


def _typed(name: str, key: str, value: Any) -> Any:
    if key == "code" or key.endswith("_s"):
        return value  # the behaviour itself is strict about these
    if key in _INTEGERS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BehaviorError(f"{name}.{key}: wanted a whole number, got {value!r}")
        return value
    if name == "uses":
        return _typed_curve(name, key, value)
    if key == "answers":
        return tuple(_typed_reply(name, item) for item in value)
    if key == "command":
        return tuple(value.split() if isinstance(value, str) else value)
    if not isinstance(value, str):
        raise BehaviorError(f"{name}.{key}: wanted a text, got {value!r}")
    return value


_RAMP_FIELDS: Final = {"from": "start", "to": "end"}


def _typed_curve(name: str, key: str, value: Any) -> Curve:
    try:
        if isinstance(value, Mapping):
            return ramp(**{_RAMP_FIELDS.get(str(key), str(key)): value[key] for key in value})
        return curve(value if isinstance(value, int) else [(p[0], p[1]) for p in value])
    except (TypeError, IndexError, ValueError):
        wanted = "a number, a list of [seconds, number] or a ramp {from, to, over_s}"
        raise BehaviorError(f"{name}.{key}: wanted {wanted}, got {value!r}") from None


def _typed_reply(name: str, value: Any) -> Reply:
    try:
        return Reply(**value)
    except TypeError:
        wanted = ", ".join(f.name for f in fields(Reply))
        raise BehaviorError(
            f"{name}.answers: wanted mappings with {wanted}, got {value!r}"
        ) from None
