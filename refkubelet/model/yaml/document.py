"""YAML as people write manifests and configurations, with the line of every value.

A text that begins with a brace can be read as JSON only, as kubelets do with manifests. Unlike in
Kubernetes, duplicate keys are errors, and texts are bounded in bytes, values (aliases resolved) and
depth (docs/gaps.md, SRC-004). The bounds are checked while the text is read, because all pods wait
while a manifest is read.

What must never happen here: an exception other than `YamlError` for any bytes, or work or memory
that grows faster than the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from refkubelet.model.yaml.builder import (
    DUPLICATE,
    Builder,
    Lines,
    Path,
    YamlError,
    check_count,
    line_of,
)
from refkubelet.model.yaml.written import EscapedText, WrittenFloat

MAX_BYTES: Final = 1024 * 1024  # SRC-004
MAX_JSON_DIGITS: Final = 1000  # of an integer: Python reads no more than 4300

_LITERAL: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_MARK: Final = "\ud800"  # before a text with an escape
TOO_DEEP: Final = "nested too deeply"
TOO_LARGE: Final = f"the file is larger than {MAX_BYTES // 1024} KiB"
MUST_BE_JSON: Final = "a text that begins with a brace must be JSON"


@dataclass(frozen=True, slots=True)
class Document:
    """A value; `more`: another document follows in the text."""

    value: Any
    lines: Callable[[], Lines | None] = lambda: None
    more: bool = False

    def line_of(self, path: Path) -> int | None:
        """The line (from 1) of that part, `("spec", "containers", 0)`, or of the nearest part
        around it."""
        lines = self.lines()
        return line_of(lines, path) if lines is not None else None

    def part(self, value: Any, path: Path) -> Document:
        """`value`, which stands at that path of this document, with its lines."""

        def lines() -> Lines | None:
            found = self.lines()
            for step in path:
                found = found.parts.get(step) if found is not None else None
            return found

        return Document(value, lines)


def dotted(path: Path) -> str:
    """A path as a text.

    >>> dotted(("registerWithTaints", 0, "key"))
    'registerWithTaints[0].key'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(data: bytes | str) -> Document:
    """The first document of `data`. Raises `YamlError`; an empty text gives the value None."""
    text = _decoded(data)
    try:
        loader = yaml.CSafeLoader(text)
        try:
            builder = Builder(loader)
            value, lines = builder.document()
            more = builder.more()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        raise YamlError(_problem(e), e.problem_mark.line + 1 if e.problem_mark else None) from None
    except yaml.reader.ReaderError as e:
        line = text.encode()[: e.position].count(b"\n") + 1
        raise YamlError(f"the control character 0x{e.character:02x} is no text", line) from None
    except yaml.YAMLError as e:
        raise YamlError(" ".join(str(e).split()) or "unreadable") from None
    return Document(value, lambda: lines, more)


def read_json_or_yaml(data: bytes) -> Document:
    """Like `read_yaml`, but a text that begins with a brace must be JSON, as in upstream for
    manifests (SRC-004); its numbers and texts remember how they were written, where that says more
    than their values (`WrittenFloat`, `EscapedText`). Raises `YamlError`."""
    if not data.lstrip().startswith(b"{"):
        return read_yaml(data)
    text = _decoded(data)
    twice: list[str] = []
    value = _json_value(text, twice)
    check_count(value)
    if twice:
        _lines_of_json(text)  # if YAML can parse the text, its error has the lines
        raise YamlError(f"{DUPLICATE} {twice[0]!r}")

    def lines() -> Lines | None:
        try:
            return _lines_of_json(text)
        except YamlError:
            return None  # YAML knows not all escapes and characters that JSON does

    return Document(_with_escapes(value, text), lines)


def _decoded(data: bytes | str) -> str:
    if len(data) > MAX_BYTES:
        raise YamlError(TOO_LARGE)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise YamlError(f"not UTF-8 text: byte {e.start} is 0x{data[e.start]:02x}") from None


def _lines_of_json(text: str) -> Lines | None:
    """The lines of a JSON text, by parsing it as YAML; None if YAML cannot parse it. Tabs become
    blanks, because YAML forbids them between values (within JSON texts they are escaped).
    Raises `YamlError` for a duplicate key, naming its lines."""
    try:
        return read_yaml(text.replace("\t", " ")).lines()
    except YamlError as e:
        if e.problem.startswith(DUPLICATE):
            raise
        return None


def _json_value(text: str, twice: list[str]) -> Any:
    """The value of a JSON text. The first duplicate key is appended to `twice`."""

    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs) and not twice:
            often = Counter(key for key, _ in pairs)
            twice.append(next(key for key, count in often.items() if count > 1))
        return found

    try:
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=WrittenFloat,
            parse_constant=_no_json,
            object_pairs_hook=of_pairs,
        )
    except json.JSONDecodeError as e:
        what = f"{MUST_BE_JSON}: {e.msg}"
        raise YamlError(what, e.lineno) from None
    except RecursionError:
        raise YamlError(TOO_DEEP) from None


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
        return EscapedText(_without_surrogates(value[1:]))
    return value


def _without_surrogates(text: str) -> str:
    """The text with U+FFFD for halves of pairs, as in Go."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _integer(digits: str) -> int | WrittenFloat:
    """An integer; one with more than `MAX_JSON_DIGITS` digits becomes a float."""
    return int(digits) if len(digits) <= MAX_JSON_DIGITS else WrittenFloat(digits)


def _no_json(word: str) -> Any:
    raise YamlError(f"{MUST_BE_JSON}: it has no {word}")


def _problem(error: yaml.MarkedYAMLError) -> str:
    return " ".join(f"{error.problem or 'unreadable'}, {error.context or ''}".split()).rstrip(",")


__all__ = [
    "MAX_BYTES",
    "TOO_LARGE",
    "Document",
    "Path",
    "YamlError",
    "dotted",
    "read_json_or_yaml",
    "read_yaml",
]
