"""YAML as people write manifests and configurations, with the line of every value.

JSON is YAML (but for tabs), so both go through here. Against plain PyYAML: duplicate keys are
errors; no timestamps and no base-60 numbers (`2024-01-01` and `12:30:00` stay texts); `0644` is
octal as in Go, `0o644` too, and `08` is a text, not a number. Aliases are resolved; a document may
not grow beyond `MAX_VALUES` values by them. What must never happen here: an exception other than
`YamlError` for any bytes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_BYTES: Final = 10 * 1024 * 1024  # SRC-004
MAX_VALUES: Final = 200_000
MAX_DEPTH: Final = 1000  # deeper ones overflow the stack of the C parser, which ends the process
LEAST_WITH_EXPONENT: Final = 1e21  # JSON, as Go writes it, has all digits of smaller numbers
MAX_DIGITS: Final = 1000  # of a decimal number: Python reads no more than 4300

Path = tuple[str | int, ...]

_BOOLS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("y", "Y"), True),
    **dict.fromkeys(("n", "N"), False),
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z")
_RADIX: Final = (
    (re.compile(r"[-+]?0x_*[0-9a-fA-F][0-9a-fA-F_]*\Z"), 16),
    (re.compile(r"[-+]?0b_*[01][01_]*\Z"), 2),
    (re.compile(r"[-+]?0o?[0-7_]+\Z"), 8),
)
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"
)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
DUPLICATE: Final = "duplicate key"
TOO_DEEP: Final = "nested too deeply"
MUST_BE_JSON: Final = "a text that begins with a brace must be JSON"
_SPECIAL: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


class YamlError(ValueError):
    """The text cannot be read; `line` (from 1) when known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}" if line is not None else problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """A value and the line (from 1) of each part of it: `lines[("spec", "containers", 0)]`."""

    value: Any
    lines: dict[Path, int] = field(default_factory=dict)
    more: bool = False  # another document follows in the text

    def line_of(self, path: Path) -> int | None:
        """The line of that part, or of the nearest part around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def dotted(path: Path) -> str:
    """A path as people write it.

    >>> dotted(("registerWithTaints", 0, "key"))
    'registerWithTaints[0].key'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(data: bytes | str) -> Document:
    """The first document of `data`. Raises `YamlError`; an empty text gives the value None."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB")
    if isinstance(data, bytes):
        try:
            data = data.decode()
        except UnicodeDecodeError as e:
            raise YamlError(f"not UTF-8 text: byte {e.start} is 0x{data[e.start]:02x}") from None
    _check_depth(data)
    try:
        loader = _Loader(data)
        try:
            node = loader.get_node() if loader.check_node() else None
            more = bool(loader.check_node()) if node is not None else False
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        raise YamlError(_problem(e), e.problem_mark.line + 1 if e.problem_mark else None) from None
    except yaml.reader.ReaderError as e:
        line = data.encode()[: e.position].count(b"\n") + 1
        raise YamlError(f"the control character 0x{e.character:02x} is no text", line) from None
    except (yaml.YAMLError, RecursionError) as e:
        raise YamlError(" ".join(str(e).split()) or TOO_DEEP) from None
    if node is None:
        return Document(None)
    builder = _Builder()
    value = builder.build(node, ())
    return Document(value, builder.lines, more)


def read_json_or_yaml(data: bytes) -> Document:
    """As `read_yaml`, but a text that begins with a brace must be JSON, as kubelets want it of
    manifests (SRC-004). Raises `YamlError`."""
    if len(data) > MAX_BYTES or not data.lstrip().startswith(b"{"):
        return read_yaml(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return read_yaml(data)  # says what is wrong
    twice: list[str] = []
    value = _json_value(text, twice)
    try:  # for the lines, and for those of keys that are there twice
        # Between the parts of JSON tabs are allowed, in YAML not; in its texts they are escaped.
        lines = read_yaml(text.replace("\t", " ")).lines
    except YamlError as e:
        if e.problem.startswith(DUPLICATE):
            raise
        lines = {}  # YAML knows not all escapes and characters that JSON does
    if twice:
        raise YamlError(f"{DUPLICATE} {twice[0]!r}")
    return Document(value, lines)


def _json_value(text: str, twice: list[str]) -> Any:
    """As JSON means it; `twice` gets the keys that an object has twice. Half a pair of surrogates
    becomes U+FFFD, as in Go."""

    def of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.extend(key for key in found if keys.count(key) > 1)
        return found

    try:
        value = json.loads(
            text, parse_int=_integer, parse_constant=_no_json, object_pairs_hook=of_pairs
        )
    except json.JSONDecodeError as e:
        what = f"{MUST_BE_JSON}: {e.msg}"
        raise YamlError(what, e.lineno) from None
    except RecursionError:
        raise YamlError(TOO_DEEP) from None
    if not _SURROGATE.search(text):
        return value
    whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(whole.decode("utf-16", "replace"), parse_int=_integer)


def _no_json(word: str) -> Any:
    raise YamlError(f"{MUST_BE_JSON}: it has no {word}")


def _check_depth(text: str) -> None:
    """Raises `YamlError` for a text that is nested too deeply for the parser's stack. Nearly every
    text has too few openings for that. What is indented takes more bytes than a file may have."""
    if sum(map(text.count, ("[", "{", "- ", "-\t", "? ", "?\t"))) <= MAX_DEPTH:
        return
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise YamlError(TOO_DEEP)
    except yaml.YAMLError:
        return  # who builds the values says what is wrong


def _problem(error: yaml.MarkedYAMLError) -> str:
    return " ".join(f"{error.problem or 'unreadable'}, {error.context or ''}".split()).rstrip(",")


class _Loader(yaml.CSafeLoader):
    """PyYAML's C parser, used for its node tree only."""


class _Builder:
    """Turns a node tree into values and remembers lines."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self._count = 0
        self._open: set[int] = set()

    def build(self, node: yaml.Node, path: Path) -> Any:
        self._count += 1
        line: int = node.start_mark.line + 1
        if self._count > MAX_VALUES:
            raise YamlError(f"more than {MAX_VALUES} values, aliases resolved", line)
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in self._open:
            raise YamlError("an alias refers to the value that contains it", line)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.build(child, (*path, i)) for i, child in enumerate(node.value)]
            return self._mapping(node, path)
        except RecursionError:
            raise YamlError(TOO_DEEP, line) from None
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        first_line: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError("a key must be a text, not a list or mapping", line)
            if key_node.value == "<<" and not key_node.style:
                merged = self._merge(value_node, path) | merged
                continue
            key = _key(key_node)
            if key in first_line:
                raise YamlError(f"{DUPLICATE} {key!r}, first on line {first_line[key]}", line)
            first_line[key] = line
            self.lines[(*path, key)] = line
            result[key] = self.build(value_node, (*path, key))
        return merged | result

    def _merge(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        value = self.build(node, (*path, "<<"))
        parts = value if isinstance(value, list) else [value]
        result: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, dict):
                raise YamlError("`<<` wants a mapping to merge", node.start_mark.line + 1)
            result = part | result
        return result


def _key(node: yaml.ScalarNode) -> str:
    """Keys are texts; `1:` keeps its spelling, and `yes:` is `true`."""
    value: str = node.value
    if value in _BOOLS and not node.style:
        return str(_BOOLS[value]).lower()
    return value


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.style:
        return text  # quoted or block: always a text
    if node.tag == "tag:yaml.org,2002:str" and _is_tagged(node):
        return text
    return plain_scalar(text)


def _is_tagged(node: yaml.ScalarNode) -> bool:
    # An explicit tag makes the node start before its text; an implicit one never does.
    start, end = node.start_mark, node.end_mark
    return bool(start.line == end.line and end.column - start.column > len(node.value))


def _integer(digits: str) -> int | float:
    """What has so many digits that no field takes it, is no integer."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _number(value: float) -> int | float:
    """Kubernetes makes JSON of YAML, and JSON writes `30.0` and `3e1` as 30."""
    return int(value) if abs(value) < LEAST_WITH_EXPONENT and value.is_integer() else value


def plain_scalar(text: str) -> Any:
    """What an unquoted scalar means.

    >>> [plain_scalar(t) for t in ("y", "0644", "12:30", "2024-01-01", "1e3", "1.5", "08", "~")]
    [True, 420, '12:30', '2024-01-01', 1000, 1.5, '08', None]
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.match(text):
        return _integer(text.replace("_", ""))
    for pattern, base in _RADIX:
        if pattern.match(text):
            return int(text.replace("_", "").replace("o", ""), base)
    if _FLOAT.match(text):
        return _number(float(text))
    if _SPECIAL.match(text):
        return float(text.replace(".", ""))
    return text
