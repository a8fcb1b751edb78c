"""Resource quantities (`100m`, `1Gi`, `1e3`) as exact integers, in billionths of the unit."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

NANO: Final = 1_000_000_000
_FORM: Final = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d{1,3})?"
)
_SUFFIXES: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000 ** (i + 1)) for i, suffix in enumerate("kMGTPE")},
    **{suffix + "i": Fraction(1024 ** (i + 1)) for i, suffix in enumerate("KMGTPE")},
}


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse_quantity(text: str) -> int:
    """The amount in billionths of the unit, rounded away from zero as the API server does. Raises:
    QuantityError.

    >>> parse_quantity("100m"), parse_quantity("1Ki") // NANO
    (100000000, 1024)
    """
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise QuantityError(
            f"{text!r} is no quantity; wanted a number with an optional suffix such as m, k, Mi, Gi"
        )
    sign, number, suffix = matched.group(1), matched.group(2), matched.group(3) or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix[1] != "i":
        factor = Fraction(10) ** int(suffix[1:])
    else:
        factor = _SUFFIXES[suffix]
    whole = number.strip(".") if number.endswith(".") else number
    amount = Fraction(whole) * factor * NANO
    rounded = -(-amount.numerator // amount.denominator)
    return -rounded if sign == "-" else rounded


WRONG_QUANTITY: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_CANONICAL: Final = re.compile(r"0|[1-9]\d{0,2}m?")


def canonical_quantity(value: object) -> str:
    """The one form in which the API server writes an amount: no fraction, the largest suffix that
    leaves none, of the kind (binary, decimal or exponent) that it was given with. Raises:
    QuantityError.

    >>> [canonical_quantity(text) for text in ("1000m", "1024Mi", "0.5", "1.5Gi", "1e3", 2)]
    ['1', '1Gi', '500m', '1536Mi', '1e3', '2']
    """
    text = value if isinstance(value, str) else str(value)
    if _CANONICAL.fullmatch(text):
        return text
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise QuantityError(WRONG_QUANTITY)
    amount, suffix = parse_quantity(text), matched.group(3) or ""
    if suffix.endswith("i") and amount % NANO == 0 and abs(amount) >= 1024 * NANO:
        return _binary(amount // NANO)
    exponent = suffix[:1] in ("e", "E") and len(suffix) > 1 and not suffix.endswith("i")
    return _decimal(amount, exponent=exponent)


def _binary(amount: int) -> str:
    power = 0
    while amount and amount % 1024 == 0 and power < len(_BINARY) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_BINARY[power]}"


def _decimal(nano: int, *, exponent: bool) -> str:
    if nano == 0:
        return "0"
    power = -9
    while nano % 1000 == 0 and power < 18:
        nano, power = nano // 1000, power + 3
    if exponent:
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL[power]}"
