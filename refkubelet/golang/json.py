"""JSON as Go's encoding/json writes it. Pure."""

from __future__ import annotations

import json
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
