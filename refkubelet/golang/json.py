"""JSON as Go's encoding/json writes it. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def go_json(value: Any) -> str:
    """The value without blanks, other letters than ASCII as they are, and escaped what HTML or
    JavaScript would misread. The order of keys is the dict's own.

    >>> go_json({"b": "a<b", "a": ["é"]})
    '{"b":"a\\\\u003cb","a":["é"]}'
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPES)
