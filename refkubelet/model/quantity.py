"""Kubernetes quantities, exactly: text to integers of nano units and back.

Both common Python parsers accept or reject the wrong texts (`1K`, `NaN`, `1E3`), hence this one.
Nothing here uses floating point. Upstream: apimachinery pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from typing import Final

NANO: Final = 1_000_000_000
MAX_LENGTH: Final = 1000  # of a text; Python reads no number of more than 4300 digits
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE](?P<exponent>[+-]?[0-9]{1,3}))\Z"
)


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_nano(text: str) -> int:
    """The value in nano units, rounded away from zero below one nano.

    >>> parse_nano("1500m"), parse_nano("1E3") == parse_nano("1k"), parse_nano("0.5Ki") // NANO
    (1500000000, True, 512)
    """
    if isinstance(text, str) and len(text) > MAX_LENGTH:
        raise QuantityError(f"{text[:20]!r}... is no quantity: it has {len(text)} characters")
    match = _GRAMMAR.match(text) if isinstance(text, str) else None
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(
            f"{text!r} is no quantity: wanted a number with an optional suffix, "
            "such as 100Mi, 500m, 2, 1.5G or 1e3"
        )
    part = match["part"] or ""
    digits = int((match["whole"] or "") + part or "0")
    suffix = match["suffix"]
    numerator: int = digits * NANO
    denominator: int = 10 ** len(part)
    if suffix in _BINARY:
        numerator <<= _BINARY[suffix]
    else:
        power = int(match["exponent"]) if match["exponent"] else _DECIMAL[suffix]
        numerator *= int(10 ** max(power, 0))
        denominator *= int(10 ** max(-power, 0))
    value = -(-numerator // denominator)
    return -value if match["sign"] == "-" else value


def parse_integer(text: str) -> int:
    """The value in whole units (bytes, inodes, pods), rounded up.

    >>> parse_integer("100Mi"), parse_integer("1500m")
    (104857600, 2)
    """
    return -(-parse_nano(text) // NANO)


def format_binary(value: int) -> str:
    """Whole units in canonical BinarySI form: the largest power of 1024 that divides (EVIC-092).

    Between -1024 and 1024 the decimal form is used, as upstream does.

    >>> format_binary(100 * 1024 * 1024), format_binary(1500), format_binary(83452 * 1024)
    ('100Mi', '1500', '83452Ki')
    """
    if -1024 < value < 1024:
        return format_decimal(value)
    suffix = ""
    for name, bits in _BINARY.items():
        if value % (1 << bits):
            break
        suffix = name
    return f"{value >> _BINARY[suffix]}{suffix}" if suffix else str(value)


def format_decimal(value: int) -> str:
    """Whole units in canonical DecimalSI form.

    >>> format_decimal(5000), format_decimal(5001), format_decimal(0)
    ('5k', '5001', '0')
    """
    return format_decimal_nano(value * NANO)


def format_decimal_nano(nano: int) -> str:
    """Nano units in canonical DecimalSI form.

    >>> format_decimal_nano(1_500_000_000), format_decimal_nano(2 * NANO)
    ('1500m', '2')
    """
    if nano == 0:
        return "0"
    for suffix, power in sorted(_DECIMAL.items(), key=lambda item: -item[1]):
        unit = 10 ** (power + 9)
        if nano % unit == 0:
            return f"{nano // unit}{suffix}"
    raise AssertionError("every integer is a multiple of one nano")


def canonical(text: str) -> str:
    """A quantity as Kubernetes prints it back, in the family of suffixes it was written in.

    >>> canonical("1024Mi"), canonical("20275Mi"), canonical("1000M"), canonical("0.5")
    ('1Gi', '20275Mi', '1G', '500m')
    """
    if text.endswith("i"):
        return format_binary(parse_nano(text) // NANO)
    return format_decimal_nano(parse_nano(text))
