"""JSON as Go's encoding/json writes it. Pure."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def go_json(value: Any) -> str:
    """The value as compact JSON: letters beyond ASCII stay as they are, and the characters that
    HTML or JavaScript would misread are escaped. Keys come in the order of the dict.

    >>> go_json({"b": "a<b", "a": ["é"]})
    '{"b":"a\\\\u003cb","a":["é"]}'
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPES)


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true, which Python takes for equal,
    are not."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def go_number(value: float) -> str:
    """A finite number as JSON: an exponent only below 1e-6 and from 1e21 on.

    >>> [go_number(value) for value in (1000, 0.00001, 1e-7, 1e20, 1e21)]
    ['1000', '0.00001', '1e-7', '100000000000000000000', '1e+21']
    """
    text = repr(value)
    if "e" not in text:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    return text.replace("e-0", "e-")
