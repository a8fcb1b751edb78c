"""Reading booleans and numbers, and quoting texts, as Go does, with Go's error texts. Pure.

Policy options and thresholds are texts in the configuration, and the kubelet reads them with Go's
strconv: what is accepted there, and what the error says, is part of the interface. Upstream: Go's
strconv: ParseBool, Atoi, ParseFloat with 32 bits, Quote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Final

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
INT64: Final = range(-(2**63), 2**63)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INFINITY: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(
    r"(?P<sign>[+-]?)0[xX](?=\.?[0-9a-fA-F])(?P<whole>[0-9a-fA-F]*)\.?(?P<part>[0-9a-fA-F]*)"
    r"[pP](?P<power>[+-]?[0-9]+)"
)
LONE_UNDERSCORE: Final = re.compile(r"(?<![0-9])_|_(?![0-9])")
_LONE_UNDERSCORE_IN_HEX: Final = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])")
_MANTISSA_BITS: Final = 24  # of a 32 bit float, with the first one, which is not written
_MANTISSA_DIGITS: Final = 9  # are enough to tell all 32 bit floats apart
_LEAST_POWER: Final = -149
_GREATEST: Final = (2**_MANTISSA_BITS - 1) * 2**104
_FAR: Final = 400  # no 32 bit float has that many powers of ten or two, up or down
_ESCAPED: Final = re.compile(r'["\\]')  # of what can be printed
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def parse_bool(text: str) -> bool:
    """True or False. Raises ValueError with Go's text.

    >>> parse_bool("T"), parse_bool("false")
    (True, False)
    """
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")


def atoi(text: str) -> int:
    """A decimal number of 64 bits. Raises ValueError with Go's text.

    >>> atoi("-7")
    -7
    """
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("+-").lstrip("0") or "0"
    # Python reads no number of more than 4300 digits.
    value = int(digits[:20]) * (-1 if text.startswith("-") else 1)
    if value not in INT64:
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return value


def parse_float32(text: str) -> float:
    """The 32 bit float that is nearest to a number, decimal or hexadecimal; also `NaN` and
    `infinity`. Raises ValueError with Go's text.

    >>> parse_float32("10"), parse_float32("1_0"), parse_float32("0x1p-2"), parse_float32("1e-46")
    (10.0, 10.0, 0.25, 0.0)
    """
    if text.lower() == "nan":
        return math.nan
    if _INFINITY.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    plain = text.replace("_", "")
    hexadecimal = _HEX.fullmatch(plain)
    lone = _LONE_UNDERSCORE_IN_HEX if hexadecimal else LONE_UNDERSCORE
    if lone.search(text) or not (hexadecimal or _DECIMAL.fullmatch(plain)):
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    exact = _of_hex(hexadecimal) if hexadecimal else _of_decimal(plain)
    if abs(nearest := _nearest(exact)) > _GREATEST:
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    value = float(nearest)
    return -value if not value and text.startswith("-") else value


def _of_decimal(text: str) -> Fraction:
    """The exact value. Numbers far above or below all 32 bit floats are replaced by ones that give
    the same result: `1e999999999` written out would fill the memory."""
    number = Decimal(text[:1] + text[1:].lower())
    power = number.adjusted() if number else 0
    return Fraction(number) if -_FAR < power < _FAR else _far(power, negative=number < 0)


def _of_hex(match: re.Match[str]) -> Fraction:
    digits = int((match["whole"] + match["part"]) or "0", 16)
    power = max(-(10**6), min(int(match["power"][:8]), 10**6)) - 4 * len(match["part"])
    negative = match["sign"] == "-"
    magnitude = power + digits.bit_length()
    if digits and not -_FAR < magnitude < _FAR:
        return _far(magnitude, negative=negative)
    exact = Fraction(digits) * Fraction(2) ** power if digits else Fraction(0)
    return -exact if negative else exact


def _far(power: int, *, negative: bool) -> Fraction:
    """Stands for a number that is far too small (0) or far too large."""
    if power < 0:
        return Fraction(0)
    return Fraction(-(10**_FAR) if negative else 10**_FAR)


def _nearest(exact: Fraction) -> Fraction:
    """Rounded to 24 bits, half to even, or to the smallest step there is."""
    if not exact:
        return exact
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** power:
        power -= 1
    step = Fraction(2) ** max(power - _MANTISSA_BITS + 1, _LEAST_POWER)
    return round(exact / step) * step


def format_float32(value: float) -> str:
    """The fewest digits that mean the 32 bit float nearest to a number, with an exponent below 1e-4
    and from 1e6 on.

    >>> [format_float32(value) for value in (1.5, 0.1, 30.0, 1e6, 1234567.0, 1e-5, math.inf)]
    ['1.5', '0.1', '30', '1e+06', '1.234567e+06', '1e-05', '+Inf']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value) or abs(nearest := _nearest(Fraction(value))) > _GREATEST:
        return "-Inf" if value < 0 else "+Inf"
    rounded = math.copysign(float(nearest), value)
    texts = (f"{rounded:.{digits}e}" for digits in range(_MANTISSA_DIGITS))
    shortest = next(text for text in texts if _nearest(Fraction(text)) == nearest)
    digits, _, power = shortest.partition("e")
    return format(Decimal(shortest), "f") if -4 <= int(power) < 6 else f"{digits}e{power}"


def quoted(text: str) -> str:
    r"""The text in double quotes, as Go's %q writes it: what cannot be printed is escaped.

    >>> print(quoted('a"b\x00\u200b'))
    "a\"b\x00\u200b"
    """
    if text.isprintable() and not _ESCAPED.search(text):
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def quoted_list(words: Iterable[str]) -> str:
    """Several texts as Go shows them with %q.

    >>> quoted_list(["kubepods", "besteffort"])
    '["kubepods" "besteffort"]'
    """
    return f"[{' '.join(map(quoted, words))}]"


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if char.isprintable():
        return char
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
