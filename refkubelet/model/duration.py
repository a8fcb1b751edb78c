"""Go durations: `1m30s`, `500ms`, `-1.5h`. Text to seconds and back."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_UNITS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)\Z")


class DurationError(ValueError):
    """The text is no Go duration."""


def parse_duration_s(text: str) -> float:
    """Seconds of a Go duration; a bare `0` is the only number without unit.

    >>> parse_duration_s("1m30s"), parse_duration_s("-0.5s"), parse_duration_s("0")
    (90.0, -0.5, 0.0)
    """
    if not isinstance(text, str) or not _WHOLE.match(text):
        raise DurationError(
            f"{text!r} is no duration: wanted numbers with units, such as 10s, 1m30s or 500ms"
        )
    total = sum((Fraction(n) * _UNITS[unit] for n, unit in _PART.findall(text)), Fraction(0))
    return float(-total if text.startswith("-") else total)


def format_duration(seconds: float) -> str:
    """Seconds as Go prints them.

    >>> format_duration(90), format_duration(0.5), format_duration(3600), format_duration(0)
    ('1m30s', '500ms', '1h0m0s', '0s')
    """
    nanos = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanos else ""
    if nanos == 0:
        return "0s"
    if nanos < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if nanos >= size:
                return f"{sign}{_trimmed(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * 10**9)
    text = f"{_trimmed(rest, 10**9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _trimmed(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    digits = f"{part:0{len(str(unit)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
