"""What the fields of behaviours may hold: times, exit codes, texts, numbers."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, Final


class BehaviorError(ValueError):
    """A behaviour is not one the fake knows; the text names the field and what was wanted."""


MAX_EXIT_CODE: Final = 255
_TIMES: Final = frozenset({"after_s", "for_s", "at_s", "from_s", "until_s", "delay_s"})
_CODES: Final = frozenset({"code", "exit_code"})
_TEXTS: Final = frozenset(
    {"text", "reason", "message", "stdout", "stderr", "location", "body", "signal"}
)
_TEXTS_OR_NONE: Final = frozenset({"path", "service"})
_NUMBERS: Final = frozenset({"port", "status", "lost_bytes"})


class Checked:
    """Refuses impossible codes, times and texts where they are written."""

    __slots__ = ()

    def __post_init__(self) -> None:
        word = re.sub(r"(?<=.)([A-Z])", r"_\1", type(self).__name__).lower()
        for name in (field.name for field in fields(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            problem = ""
            if name in _TIMES:
                problem = _not_a_time(value)
            elif name in _CODES and value is not None:
                problem = _not_a_code(value)
            elif name in _TEXTS and not isinstance(value, str):
                problem = "a text"
            elif name in _TEXTS_OR_NONE and not isinstance(value, str | None):
                problem = "a text or None"
            elif name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
                problem = "a whole number"
            if problem:
                raise BehaviorError(f"{word}.{name}: wanted {problem}, got {value!r}")


def _not_a_time(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    return "" if value >= 0 else "0 or more"


def _not_a_code(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a number"
    return "" if value in range(MAX_EXIT_CODE + 1) else f"0 to {MAX_EXIT_CODE}"
