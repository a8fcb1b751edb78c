"""Go durations: `1m30s`, `500ms`, `-1.5h`. Text to seconds and back. Pure.

Upstream: Go's time: ParseDuration, Duration.String.
"""

from __future__ import annotations

import re
from typing import Final

NANO: Final = 10**9
_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": NANO,
    "m": 60 * NANO,
    "h": 3600 * NANO,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:(?=\.?[0-9]){_PART.pattern})+)\Z")
_MOST_NS: Final = (1 << 63) - 1
_FRACTION_DIGITS: Final = 18  # a fraction of 64 bits has 18 or 19 digits; the rest is ignored


class DurationError(ValueError):
    """The text is no Go duration."""


def parse_duration_s(text: str) -> float:
    """Seconds of a Go duration; a bare `0` is the only number without unit. Raises `DurationError`.

    >>> parse_duration_s("1m30s"), parse_duration_s("-0.5s"), parse_duration_s("0")
    (90.0, -0.5, 0.0)
    """
    return parse_duration_ns(text) / NANO


def parse_duration_ns(text: str) -> int:
    """Whole nanoseconds of a Go duration. Each of its numbers is cut to whole nanoseconds before
    they are added up; the sum must fit into 64 bits, some 292 years. Raises `DurationError`.

    >>> parse_duration_ns("1.5us"), parse_duration_ns("0.9ns")
    (1500, 0)
    """
    if not isinstance(text, str) or not _WHOLE.match(text):
        raise DurationError(
            f"{text!r} is no duration: wanted numbers with units, such as 10s, 1m30s or 500ms"
        )
    total = sum(_part_ns(*part) for part in _PART.findall(text))
    negative = text.startswith("-")
    if total > _MOST_NS + negative:
        raise DurationError(f"{text[:40]!r} is no duration: it is longer than 2562047h47m16s")
    return -total if negative else total


def _part_ns(whole: str, part: str, unit: str) -> int:
    """Nanoseconds of one number and its unit. Upstream multiplies the fraction as a float, and so
    does this. Of a whole part with too many digits the answer only says that it is too long."""
    if len(whole.lstrip("0")) > len(str(_MOST_NS)):
        return 2 * _MOST_NS
    size = _UNITS_NS[unit]
    part = _counted(part)
    return int(whole or "0") * size + int(float(int(part or "0")) * (size / 10.0 ** len(part)))


def _counted(part: str) -> str:
    """The digits of a fraction that count: as many as 64 bits can hold."""
    if len(part) <= _FRACTION_DIGITS or int(part[: _FRACTION_DIGITS + 1]) > _MOST_NS:
        return part[:_FRACTION_DIGITS]
    return part[: _FRACTION_DIGITS + 1]


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
