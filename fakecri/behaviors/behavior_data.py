"""Behaviours as plain data, for script files, control requests and records.

What must never happen here: a behaviour changes on its way out and in, or a mistake passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from fakecri.behaviors.behavior import KINDS, Behavior, Reply
from fakecri.behaviors.checked import BehaviorError
from fakecri.behaviors.curves import Curve, curve, ramp

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
        f"{f.name}={'...' if f.name in PYTHON_FIELDS else repr(getattr(behavior, f.name))}"
        for f in fields(behavior)
        if getattr(behavior, f.name) != f.default
    )
    return f"{name}({', '.join(given)})"


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
    for key, field in known.items():
        if key not in given and field.default is MISSING and field.default_factory is MISSING:
            raise BehaviorError(f"{name}: the field {key!r} is missing")
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
        if not isinstance(value, list | tuple):
            raise BehaviorError(f"{name}.answers: wanted a list of mappings, got {value!r}")
        return tuple(_typed_reply(name, item) for item in value)
    if key == "command":
        return _typed_command(name, value)
    if not isinstance(value, str):
        raise BehaviorError(f"{name}.{key}: wanted a text, got {value!r}")
    return value


def _typed_command(name: str, value: Any) -> tuple[str, ...]:
    words = value.split() if isinstance(value, str) else value
    plain = isinstance(words, list | tuple) and all(type(word) in (str, int) for word in words)
    if not plain:
        raise BehaviorError(f"{name}.command: wanted a text or a list of texts, got {value!r}")
    return tuple(str(word) for word in words)


_RAMP_FIELDS: Final = {"from": "start", "to": "end"}


def _typed_curve(name: str, key: str, value: Any) -> Curve:
    try:
        if isinstance(value, Mapping):
            return ramp(**{_RAMP_FIELDS.get(str(key), str(key)): value[key] for key in value})
        if isinstance(value, int):
            return curve(value)
        if any(not isinstance(point, list | tuple) or len(point) != 2 for point in value):
            raise TypeError
        return curve([(at_s, amount) for at_s, amount in value])
    except (TypeError, ValueError, OverflowError):
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
