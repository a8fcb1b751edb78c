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
