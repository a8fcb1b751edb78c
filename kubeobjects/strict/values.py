"""The values of a file, each with its place; what is wrong with one names it.

In scripts and scenarios (`parse_yaml`) a value means what is written: `no` stays the text "no", and
only `true` and `false` are booleans. In files of the kubelet (`typed_value`) it means what it means
to Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kubeobjects.strict.errors import ScriptError
from kubeobjects.yaml import nodes
from kubeobjects.yaml.document import Document
from kubeobjects.yaml.errors import TooDeepError, TooLargeError, YamlError
from kubeobjects.yaml.lines import NO_PARTS, Lines
from kubeobjects.yaml.nodes import Limits, Node, Text, compose, target_of
from kubeobjects.yaml.words import STRICT, Scalar, whole_text

LIMITS: Final = Limits(values=1_000_000, depth=100)


class Value(Struct, frozen=True):
    """One YAML value with its place."""

    node: Text | nodes.Sequence | nodes.Mapping
    file: str
    path: str
    """Where in the document, `rules[0].on`; empty for the whole."""
    typed: bool = False
    """A number is no text; else a text is whatever is written."""

    def error(self, text: str) -> ScriptError:
        """`text` with file, line, column and path in front, as far as they are known."""
        known = filter(None, (self.file, self.node.line, self.node.column))
        place = ":".join(map(str, known))
        return ScriptError(f"{place}: {self.path + ': ' if self.path else ''}{text}")

    def wanted(self, what: str) -> ScriptError:
        """The error of a wrong type: `what` was wanted, this value was there."""
        return self.error(f"wanted {what}, got {self.shown()}")

    def is_mapping(self) -> bool:
        return isinstance(self.node, nodes.Mapping)

    def is_list(self) -> bool:
        return isinstance(self.node, nodes.Sequence)

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """The keys and values of a mapping, in the order of the file. Keys may repeat."""
        assert isinstance(self.node, nodes.Mapping)
        for key, item in self.node.pairs:
            name = target_of(key)
            path = f"{self.path}.{name.text}" if isinstance(name, Text) else self.path
            yield self._part(key, self.path), self._part(item, path.lstrip("."))

    def items(self) -> Iterator[Value]:
        """The items of a list."""
        assert isinstance(self.node, nodes.Sequence)
        for number, item in enumerate(self.node.items):
            yield self._part(item, f"{self.path}[{number}]")

    def _part(self, node: Node, path: str) -> Value:
        return Value(target_of(node), self.file, path, self.typed)

    def is_null(self) -> bool:
        return isinstance(self.node, Text) and self.scalar() is None

    def scalar(self) -> Scalar:
        """The value of a scalar: what is quoted is a text, as is what is no number, boolean or
        null."""
        plain = isinstance(self.node, Text) and self.node.plain
        return STRICT.scalar(self.text(), plain=plain)

    def text(self) -> str:
        """The text of a scalar as it is written: a word, number or date alike."""
        return whole_text(self.node.text) if isinstance(self.node, Text) else ""

    def plain(self) -> Any:
        """The value as dicts, lists and scalars. Raises ScriptError for a key that is no text or is
        given twice."""
        if self.is_list():
            return [item.plain() for item in self.items()]
        if not self.is_mapping():
            return self.scalar()
        mapping: dict[str, Any] = {}
        for key, item in self.pairs():
            if key.is_mapping() or key.is_list():
                raise key.wanted("a string")
            if key.text() in mapping:
                raise key.error(f"key {key.text()!r} is given twice")
            mapping[key.text()] = item.plain()
        return mapping

    def shown(self) -> str:
        """The value as errors tell it.

        >>> [parse_yaml(text, "").shown() for text in ("3", "x", "true", "~", "[]", "{}")]
        ['the number 3', "the text 'x'", 'true', 'nothing', 'a list', 'a mapping']
        """
        if self.is_mapping() or self.is_list():
            return "a mapping" if self.is_mapping() else "a list"
        match self.scalar():
            case None:
                return "nothing"
            case bool():
                return self.text()
            case str():
                return f"the text {self.text()!r}"
        return f"the number {self.text()}"


def read_yaml(path: Path) -> Value:
    """The one document of a YAML file.

    Raises ScriptError if it cannot be read, is no YAML, is empty or has several documents.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScriptError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: no UTF-8 text (byte {error.start})") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, file: str) -> Value:
    """The one document in `text`; JSON is YAML too. `file` is what errors call it.

    Raises ScriptError if it is no YAML, is too large or deep, empty or has several documents.
    """
    try:
        composed = compose(text, LIMITS, like_go=False)
    except YamlError as error:
        raise _script_error(error, file) from None
    if composed.another is not None:
        raise _script_error(composed.another, file)
    if composed.root is None:
        raise ScriptError(f"{file}: it is empty, wanted a mapping")
    return Value(target_of(composed.root), file, "")


def _script_error(error: YamlError, file: str) -> ScriptError:
    place = f"{file}:{error.line}:{error.column}" if error.line else file
    if isinstance(error, TooDeepError):
        return ScriptError(f"{place}: lists or mappings are nested too deeply")
    if isinstance(error, TooLargeError):
        return ScriptError(f"{place}: {error.problem}")
    return ScriptError(f"{place}: no valid YAML: {error.problem}")


def texts_value(texts: Mapping[str, str], file: str) -> Value:
    """Texts by name, such as the query of a URL, as if they were written in YAML."""
    pairs: list[tuple[Node, Node]] = [
        (Text(0, 0, name), Text(0, 0, text)) for name, text in texts.items()
    ]
    return Value(nodes.Mapping(0, 0, pairs), file, "")


def typed_value(document: Document, file: str, path: str = "") -> Value:
    """The value of a document of Kubernetes, with its lines. `file`, `path`: what errors call it
    and where it is in the file."""
    node = _node(document.value, document.lines() or Lines(0, NO_PARTS))
    return Value(node, file, path, typed=True)


def _node(value: Any, lines: Lines) -> Text | nodes.Sequence | nodes.Mapping:
    """The node of a JSON value; what has no line of its own is where the value around it is."""
    line = lines.line

    def part(step: str | int, item: Any) -> Node:
        return _node(item, lines.parts.get(step) or Lines(line, NO_PARTS))

    match value:
        case dict():
            pairs = [(key, part(key, item)) for key, item in value.items()]
            mapping = nodes.Mapping(line, 0)
            for key, item in pairs:
                mapping.pairs.append((Text(item.line, 0, key, plain=False), item))
            return mapping
        case list():
            return nodes.Sequence(line, 0, [part(n, item) for n, item in enumerate(value)])
        case str():
            return Text(line, 0, value, plain=False)
    return Text(line, 0, json.dumps(value))
