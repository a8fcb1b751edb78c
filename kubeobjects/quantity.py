"""Kubernetes quantities, exactly: text to integers of nano units and back. Pure.

A quantity is shown with the family of suffixes in which it was written. The two common Python
parsers are wrong about some texts (`1K`, `NaN`, `1E3`), hence this one. It uses no floating point.
Rules: SRC-036, EVIC-092. Upstream: apimachinery pkg/api/resource: quantity.go.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from kubeobjects.golang.json import go_number
from kubeobjects.structs import replace

NANO: Final = 1_000_000_000
MILLI: Final = NANO // 1000  # of a unit, in nano units
MAX_LENGTH: Final = 1000  # of a text; Python parses at most 4300 digits
MAX_BINARY: Final = (1 << 63) - 1  # whole units with a binary suffix are never more
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
_DECIMAL_SUFFIXES: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE](?P<exponent>[+-]?0*[0-9]{1,3}))\Z"
)
WANTED: Final = "wanted a number with an optional suffix, such as 100Mi, 500m, 2, 1.5G or 1e3"
_BLANKS: Final = " \u0085\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What may stand around an amount. Go writes tabs and line ends of a text as escapes."""
_REMEMBERED: Final = 4096
"""The number of texts with a cached result."""


WRONG_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_FORM: Final = re.compile(r"(?=.)[+-]?[0-9]*(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)


class QuantityError(ValueError):
    """The text is not a quantity. `upstream`: what an API server says of it."""

    def __init__(self, message: str, *, upstream: str = WRONG_FORM) -> None:
        super().__init__(message)
        self.upstream = upstream


class Form(Enum):
    """The family of suffixes that a quantity is shown with."""

    DECIMAL = "k, M, G, m"
    BINARY = "Ki, Mi, Gi"
    EXPONENT = "e3, e6, e-3"


class Quantity(Struct, frozen=True):
    """An amount, and how to show it."""

    nano: int = 0
    """The amount in nano units."""
    form: Form = Form.DECIMAL
    written: str | None = None
    """The written text, if that is the canonical one. None: the text is made of amount and form."""

    def __str__(self) -> str:
        """The canonical text: as written, or without plus sign, fraction and leading zeros, and
        with the largest suffix of its form that divides the amount.

        >>> str(parse("1024Mi")), str(parse("0.1Gi")), str(parse("10e8")), str(parse("+5"))
        ('1Gi', '107374182400m', '1e9', '+5')
        """
        if self.written is not None:
            return self.written
        if self.nano == 0:
            return "0"
        if self.form is Form.BINARY and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            return _with_binary_suffix(self.nano // NANO)
        mantissa, power = _without_zeros(self.nano)
        if self.form is Form.EXPONENT:
            return f"{mantissa}e{power}" if power else str(mantissa)
        # Above 999E no suffix is left: such amounts are shown without one, as upstream does.
        return f"{mantissa}{_DECIMAL_SUFFIXES.get(power, '')}"

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the form of the first operand that is not 0."""
        return Quantity(self.nano + other.nano, self.form if self.nano else other.form)

    def in_thousandths(self) -> Quantity:
        """The amount rounded to thousandths, away from 0, as an API server does (SRC-036)."""
        if self.nano % MILLI == 0:
            return self
        return replace(self, nano=_away_from_zero(self.nano, MILLI) * MILLI, written=None)


def parse(text: str) -> Quantity:
    """The quantity of a text, rounded away from zero to whole nano units. A text without digits (a
    lone sign, point or suffix) is 0. Raises `QuantityError`."""
    if not isinstance(text, str):
        raise QuantityError(f"{text!r} is no quantity: {WANTED}")
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"{text[:20]!r}... is no quantity: it has {len(text)} characters")
    return _parsed(text)


def from_json(value: str | float) -> Quantity:
    """The quantity of a value in JSON: of a text without the blanks around it, or of a number.
    Raises `QuantityError`."""
    return parse(value.strip(_BLANKS) if isinstance(value, str) else go_number(value))


@lru_cache(_REMEMBERED)
def _parsed(text: str) -> Quantity:
    match = _GRAMMAR.match(text) if text else None
    if match is None or not _has_number(match):
        upstream = WRONG_NUMBER if match else WRONG_SUFFIX if _FORM.fullmatch(text) else WRONG_FORM
        raise QuantityError(f"{text!r} is no quantity: {WANTED}", upstream=upstream)
    amount = _amount(match)
    nano = -amount if match["sign"] == "-" else amount
    form = _form(match)
    if form is Form.BINARY and 0 < amount < NANO:
        form = Form.DECIMAL
    return Quantity(nano, form, text if _shown_as_written(match) else None)


def _amount(match: re.Match[str]) -> int:
    """Nano units, without the sign."""
    part, suffix = match["part"] or "", match["suffix"]
    numerator: int = int((match["whole"] or "") + part or "0") * NANO
    denominator: int = 10 ** len(part)
    if suffix in _BINARY:
        numerator <<= _BINARY[suffix]
    else:
        power = _power(match)
        numerator *= int(10 ** max(power, 0))
        denominator *= int(10 ** max(-power, 0))
    amount = _away_from_zero(numerator, denominator)
    return min(amount, MAX_BINARY * NANO) if suffix in _BINARY else amount


def _form(match: re.Match[str]) -> Form:
    if match["suffix"] in _BINARY:
        return Form.BINARY
    return Form.EXPONENT if match["exponent"] else Form.DECIMAL


def _power(match: re.Match[str]) -> int:
    """The power of ten that a decimal suffix or an exponent stands for."""
    return int(match["exponent"]) if match["exponent"] else _DECIMAL[match["suffix"]]


def _digits(match: re.Match[str]) -> str:
    """The significant digits: without leading zeros, except one before a fraction."""
    return ((match["whole"] or "").lstrip("0") or "0") + (match["part"] or "")


def _is_small(match: re.Match[str]) -> bool:
    """Whether upstream parses the number with 64 bits: few digits, none below one nano unit. Only
    such numbers are shown as written, and only they may have no digits."""
    digits, bits = len(_digits(match)), _BINARY.get(match["suffix"])
    if bits is None:
        return digits <= 18 and _power(match) - len(match["part"] or "") >= -9
    return not match["part"] and digits <= 14 - 3 * bits // 10


def _has_number(match: re.Match[str]) -> bool:
    if match["whole"] or match["part"]:
        return True
    # Upstream takes the end of the text for a number before it searches for a suffix.
    only_sign = match["part"] is None and not match["suffix"]
    return only_sign or _is_small(match)


def _shown_as_written(match: re.Match[str]) -> bool:
    """Whether the written text is canonical: a small number for which no larger suffix of the same
    form fits. Signs, leading zeros and fractions do not matter."""
    digits = _digits(match)
    if not _is_small(match):
        return False
    if match["suffix"] in _BINARY:
        return int(digits) % 8 != 0
    power = _power(match) - len(match["part"] or "")
    return power % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def _away_from_zero(numerator: int, denominator: int) -> int:
    whole = -(-abs(numerator) // denominator)
    return -whole if numerator < 0 else whole


def _without_zeros(nano: int) -> tuple[int, int]:
    """Mantissa and the largest power of 1000 that divides the amount."""
    power = -9
    while nano % 1000 == 0:
        nano, power = nano // 1000, power + 3
    return nano, power


def _with_binary_suffix(value: int) -> str:
    suffix = ""
    for name, bits in _BINARY.items():
        if value % (1 << bits):
            break
        suffix = name
    return f"{value >> _BINARY[suffix]}{suffix}" if suffix else str(value)


def parse_nano(text: str) -> int:
    """The value in nano units, rounded away from zero below one nano.

    >>> parse_nano("1500m"), parse_nano("1E3") == parse_nano("1k"), parse_nano("0.5Ki") // NANO
    (1500000000, True, 512)
    """
    return parse(text).nano


def parse_integer(text: str) -> int:
    """The value in whole units (bytes, inodes, pods), rounded away from zero.

    >>> parse_integer("100Mi"), parse_integer("1500m")
    (104857600, 2)
    """
    return _away_from_zero(parse(text).nano, NANO)


def format_binary(value: int) -> str:
    """Whole units in canonical BinarySI form: the largest power of 1024 that divides (EVIC-092).

    Between -1024 and 1024 the decimal form is used, as upstream does.

    >>> format_binary(100 * 1024 * 1024), format_binary(1500), format_binary(83452 * 1024)
    ('100Mi', '1500', '83452Ki')
    """
    return str(Quantity(value * NANO, Form.BINARY))


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
    return str(Quantity(nano))


def canonical(text: str) -> str:
    """A quantity as Kubernetes prints it back, in the family of suffixes it was written in.

    >>> canonical("1024Mi"), canonical("20275Mi"), canonical("1000M"), canonical("0.5")
    ('1Gi', '20275Mi', '1G', '500m')
    """
    return str(parse(text))
