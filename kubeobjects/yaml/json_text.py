"""JSON whose numbers and texts remember how they were written.

Upstream: Go's encoding/json, sigs.k8s.io/json.

What must never happen here: an exception other than `YamlError` for any text, or work or memory
that grows faster than the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from kubeobjects.yaml.errors import TooDeepError, TooLargeError, YamlError
from kubeobjects.yaml.nodes import Limits
from kubeobjects.yaml.words import whole_text
from kubeobjects.yaml.written import EscapedText, WrittenFloat

MAX_DIGITS: Final = 1000  # of an integer: Python reads no more than 4300
MUST_BE_JSON: Final = "a text that begins with a brace must be JSON"
_LITERAL: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_MARK: Final = "\ud800"  # before a text with an escape


def read_json(text: str, limits: Limits) -> tuple[Any, str | None]:
    """The value of a JSON text, and its first key that is given twice, or None. Raises
    `YamlError`."""
    repeated: list[str] = []
    value = _parsed(text, repeated)
    _check_limits(value, limits)
    return _with_escapes(value, text), repeated[0] if repeated else None


def _check_limits(value: Any, limits: Limits) -> None:
    level, count = [value], 0
    for _ in range(limits.depth + 1):
        count += len(level)
        if count > limits.values:
            raise TooLargeError(f"more than {limits.values} values")
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise TooDeepError(f"nested more than {limits.depth} deep")


def _parsed(text: str, repeated: list[str]) -> Any:
    """The value of a JSON text. The first key given twice is appended to `repeated`."""

    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs) and not repeated:
            often = Counter(key for key, _ in pairs)
            repeated.append(next(key for key, count in often.items() if count > 1))
        return mapping

    try:
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=WrittenFloat,
            parse_constant=_no_json,
            object_pairs_hook=of_pairs,
        )
    except json.JSONDecodeError as e:
        raise YamlError(f"{MUST_BE_JSON}: {e.msg}", e.lineno, e.colno) from None
    except RecursionError:
        raise TooDeepError("nested too deeply") from None


def _with_escapes(value: Any, text: str) -> Any:
    """The value of a valid JSON text, in which texts with an escape are `EscapedText`. Python's
    parser does not tell them; a half of a pair of surrogates before each of them does, because a
    text that was decoded has none but in escapes. Nothing grows faster than the text."""
    if "\\" not in text:
        return value

    def marked(literal: re.Match[str]) -> str:
        return f'"{_MARK}{literal[0][1:]}' if "\\" in literal[0] else literal[0]

    return _unmarked(
        json.loads(_LITERAL.sub(marked, text), parse_int=_integer, parse_float=WrittenFloat)
    )


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(_unmarked(key)): _unmarked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, str) and value.startswith(_MARK):
        return EscapedText(whole_text(value[1:]))
    return value


def _integer(digits: str) -> int | WrittenFloat:
    """An integer; one with more than `MAX_DIGITS` digits becomes a float."""
    return int(digits) if len(digits) <= MAX_DIGITS else WrittenFloat(digits)


def _no_json(word: str) -> Any:
    raise YamlError(f"{MUST_BE_JSON}: it has no {word}")
