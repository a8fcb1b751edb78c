"""Strict reading of YAML: every value knows its place, and means what is written.

YAML 1.1 turns text into something else; here `no` stays the text "no", and only `true` and `false`
are booleans. `struct_reader` makes structs of these values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}\Z")
_NUMBER: Final = re.compile(r"[-+]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,9})?\Z")
Scalar: TypeAlias = str | int | float | bool | None
DEEPEST: Final = 100
"""So deep values may be nested that are taken as they are."""


class ScriptError(ValueError):
    """A file cannot be used. Each of `errors` is `file:line:column: path: what was wanted, what was
    there`; the text has one in each line."""

    def __init__(self, *errors: str) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Value:
    """One YAML value with its place."""

    node: yaml.Node
    file: str
    path: str
    """Where in the document, `rules[0].on`; empty for the whole."""

    def error(self, text: str) -> ScriptError:
        """`text` with file, line, column and path in front."""
        mark = self.node.start_mark
        place = f"{self.file}:{mark.line + 1}:{mark.column + 1}" if mark else self.file
        return ScriptError(f"{place}: {self.path + ': ' if self.path else ''}{text}")

    def wanted(self, what: str) -> ScriptError:
        """The error of a wrong type: `what` was wanted, this value was there."""
        return self.error(f"wanted {what}, got {self.shown()}")

    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """The keys and values of a mapping, in the order of the file. Keys may repeat."""
        for key, value in self.node.value:
            path = f"{self.path}.{key.value}" if isinstance(key, yaml.ScalarNode) else self.path
            yield Value(key, self.file, self.path), Value(value, self.file, path.lstrip("."))

    def items(self) -> Iterator[Value]:
        """The items of a list."""
        for number, node in enumerate(self.node.value):
            yield Value(node, self.file, f"{self.path}[{number}]")

    def scalar(self) -> Scalar:
        """The value of a scalar: what is quoted is a text, as is what is no number, boolean or
        null."""
        text = self.text()
        if not isinstance(self.node, yaml.ScalarNode) or self.node.style is not None:
            return text
        if _INTEGER.match(text):
            return int(text)
        if _NUMBER.match(text):
            return float(text)
        if text in ("true", "false"):
            return text == "true"
        return None if text in ("", "~", "null") else text

    def text(self) -> str:
        """The text of a scalar as it is written: a word, number or date alike."""
        text = str(self.node.value)
        if any("\ud800" <= letter <= "\udfff" for letter in text):  # JSON's way to write an emoji
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def plain(self) -> Any:
        """The value as dicts, lists and scalars. Raises ScriptError for a key that is no text, is
        given twice, or for a value that holds itself."""
        if self.path.count(".") + self.path.count("[") > DEEPEST:
            raise self.error("lists or mappings are nested too deeply")
        if self.is_list():
            return [item.plain() for item in self.items()]
        if not self.is_mapping():
            return self.scalar()
        found = {}
        for key, item in self.pairs():
            if key.is_mapping() or key.is_list():
                raise key.wanted("a string")
            if key.text() in found:
                raise key.error(f"key {key.text()!r} is given twice")
            found[key.text()] = item.plain()
        return found

    def shown(self) -> str:
        """The value as errors tell it."""
        if self.is_mapping() or self.is_list():
            return "a mapping" if self.is_mapping() else "a list"
        return "nothing" if self.scalar() is None else repr(self.text())


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
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise ScriptError(f"{file}:{place}: no valid YAML: {error.problem or error}") from None
    except RecursionError:
        raise ScriptError(f"{file}: lists or mappings are nested too deeply") from None
    except yaml.YAMLError as error:
        raise ScriptError(f"{file}: no valid YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise ScriptError(f"{file}: it is empty, wanted a mapping")
    return Value(node, file, "")


def texts_value(texts: Mapping[str, str], file: str) -> Value:
    """Texts by name, such as the query of a URL, as if they were written in YAML."""
    nodes = [(yaml.ScalarNode("", name), yaml.ScalarNode("", text)) for name, text in texts.items()]
    return Value(yaml.MappingNode("", nodes), file, "")
