"""Strict reading of a YAML file: every value knows its line, and every mistake is one sentence.

What must never happen here: a wrong or repeated key is accepted, or YAML 1.1 turns text into
something else (`no` stays the text "no": only `true` and `false` are booleans).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from fakecri.errors import did_you_mean

_INTEGER: Final = re.compile(r"[-+]?[0-9]+\Z")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)\Z")


class ScriptError(ValueError):
    """A file cannot be used: `file:line: path: what was wanted, what was there`."""


@dataclass(frozen=True, slots=True)
class Value:
    """A YAML value with its place. Its readers raise ScriptError for a value of another type."""

    node: yaml.Node
    file: str
    path: str
    """Where in the document, `rules[0].on`; empty for the whole."""

    def error(self, text: str) -> ScriptError:
        """`text` with file, line and path in front."""
        line = self.node.start_mark.line + 1
        return ScriptError(f"{self.file}:{line}: {self.path + ': ' if self.path else ''}{text}")

    def wanted(self, what: str) -> ScriptError:
        """The error for a value of the wrong type; `what`: what was wanted."""
        return self.error(f"wanted {what}, got {self._shown()}")

    def mapping(self, allowed: Collection[str]) -> dict[str, Value]:
        """The values of a mapping by key. A key that is not in `allowed`, or comes twice, is an
        error."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wanted("a mapping")
        found: dict[str, Value] = {}
        for key_node, value_node in self.node.value:
            key_value = Value(key_node, self.file, self.path)
            key = key_value.text()
            if key in found:
                raise key_value.error(f"key {key!r} is given twice")
            if key not in allowed:
                wanted = f"wanted one of: {', '.join(allowed)}{did_you_mean(key, allowed)}"
                raise key_value.error(f"unknown key {key!r}, {wanted}")
            found[key] = Value(value_node, self.file, f"{self.path}.{key}".lstrip("."))
        return found

    def entries(self) -> dict[str, Value]:
        """The values of a mapping whose keys are the user's own. A key that comes twice is an
        error."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wanted("a mapping")
        return self.mapping([str(key.value) for key, _ in self.node.value])

    def items(self) -> Iterator[Value]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wanted("a list")
        for number, node in enumerate(self.node.value):
            yield Value(node, self.file, f"{self.path}[{number}]")

    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def plain(self) -> Any:
        """The value as Python data. Any key is allowed, but not twice."""
        if isinstance(self.node, yaml.SequenceNode):
            return [item.plain() for item in self.items()]
        if isinstance(self.node, yaml.MappingNode):
            return {key: item.plain() for key, item in self.entries().items()}
        for read in (self.integer, self.number, self.boolean):
            try:
                return read()
            except ScriptError:
                continue
        return self.text()

    def text(self) -> str:
        """A string; an unquoted word, number or date counts as the text it is written as."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null():
            raise self.wanted("a string")
        return str(self.node.value)

    def integer(self) -> int:
        if self._plain() and _INTEGER.match(self.node.value):
            return int(self.node.value)
        raise self.wanted("a whole number")

    def number(self) -> float:
        if self._plain() and _NUMBER.match(self.node.value):
            return float(self.node.value)
        raise self.wanted("a number")

    def boolean(self) -> bool:
        if self._plain() and self.node.value in ("true", "false"):
            return bool(self.node.value == "true")
        raise self.wanted("true or false")

    def texts(self) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(item.text() for item in self.items())

    def _plain(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.style is None

    def is_null(self) -> bool:
        return self._plain() and self.node.value in ("", "~", "null")

    def _shown(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        return "nothing" if self.is_null() else repr(self.node.value)


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

    Raises ScriptError if it is no YAML, is empty or has several documents.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ScriptError(f"{file}:{line}: no valid YAML: {error.problem or error}") from None
    except RecursionError:
        raise ScriptError(f"{file}: lists or mappings are nested too deeply") from None
    except yaml.YAMLError as error:
        raise ScriptError(f"{file}: no valid YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise ScriptError(f"{file}: it is empty, wanted a mapping")
    return Value(node, file, "")
