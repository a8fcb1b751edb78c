"""Values of a JSON text that remember how they were written. Pure.

Upstream's amounts are decoded from the bytes of a value, not from its meaning (SRC-036.9).
"""

from __future__ import annotations


class WrittenFloat(float):
    """A number with a fraction or an exponent, or of very many digits."""

    written: str

    def __new__(cls, text: str) -> WrittenFloat:
        """`text`: the number as JSON has it."""
        number = super().__new__(cls, text)
        number.written = text
        return number


class EscapedText(str):
    """A text that was written with at least one escape, such as `\\u0031`."""

    __slots__ = ()
