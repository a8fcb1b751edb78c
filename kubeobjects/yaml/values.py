"""JSON values of the nodes of a YAML text.

A key given twice is an error, or, as in Kubernetes, the last one counts. Of `<<` later keys in the
text override what is merged, and what is merged overrides the keys before it.
Upstream: go.yaml.in/yaml/v2: decode; sigs.k8s.io/yaml: convertToJSONableObject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubeobjects.yaml.errors import YamlError
from kubeobjects.yaml.go_words import KUBERNETES, json_key, json_value
from kubeobjects.yaml.nodes import Alias, Mapping, Node, Sequence, Text, target_of
from kubeobjects.yaml.words import Scalar, ScalarError, Words

DUPLICATE: Final = "duplicate key"
_MERGE: Final = "<<"
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_MERGES_MAPPINGS: Final = "map merge requires map or sequence of maps as the value"
_FEW_DECODED: Final = 400_000
_MANY_DECODED: Final = 4_000_000


def value_of(node: Node | None, words: Words = KUBERNETES, *, last_key_counts: bool = False) -> Any:
    """The JSON value of a node; None for none. Raises `YamlError`."""
    return None if node is None else _Values(words, last_key_counts).of(node)


def key_of(node: Node, words: Words) -> str:
    """The text of a key. Raises `YamlError`."""
    target = target_of(node)
    if not isinstance(target, Text):
        problem = "a key must be a text, not a list or mapping"
        raise YamlError(problem, node.line, node.column, "yaml: invalid map key")
    return str(_read(target, words, json_key))


def is_merge(key: Node) -> bool:
    """Whether a key is `<<`, whose value is merged into the mapping."""
    if not isinstance(key, Text) or key.text != _MERGE:
        return False
    return key.tag in (_MERGE_TAG, "!") or (key.plain and key.tag is None)


def _read(node: Text, words: Words, convert: Callable[[Scalar], Scalar]) -> Scalar:
    try:
        return convert(words.scalar(node.text, node.tag, plain=node.plain))
    except ScalarError as error:
        raise YamlError(str(error), node.line, node.column, error.upstream) from None


def _merged(node: Node) -> list[Node]:
    """The mappings to merge, the one that counts most last. Raises `YamlError`."""
    nodes: list[Node] = [node]
    if isinstance(node, Sequence):
        nodes = list(reversed(node.items))
    if not all(isinstance(target_of(part), Mapping) for part in nodes):
        raise YamlError(_MERGES_MAPPINGS, node.line, node.column)
    return nodes


@dataclass(slots=True)
class _Values:
    """Makes values; what they share by aliases is made anew each time. `decoded`: keys, values and
    aliases so far; `aliased`: those of them in the value of an alias; `aliases`: how many aliases
    the value of now is in."""

    words: Words
    last_key_counts: bool
    decoded: int = 1
    aliased: int = 0
    aliases: int = 0

    def of(self, node: Node) -> Any:
        """The value of a node."""
        self._count(node)
        match node:
            case Text():
                return _read(node, self.words, json_value)
            case Sequence():
                return [self.of(item) for item in node.items]
            case Mapping():
                value: dict[str, Any] = {}
                self._fill(value, node)
                return value
            case Alias():
                self.aliases += 1
                value = self.of(node.target)
                self.aliases -= 1
                return value

    def _fill(self, into: dict[str, Any], node: Mapping) -> None:
        """Set the keys of a mapping."""
        first_lines: dict[str, int] = {}
        for key, item in node.pairs:
            if is_merge(key):
                for part in _merged(item):
                    self._count(part)
                    self._merge(into, part)
                continue
            self._count(key)
            name = key_of(key, self.words)
            if name in first_lines and not self.last_key_counts:
                problem = f"{DUPLICATE} {name!r}, first on line {first_lines[name]}"
                raise YamlError(problem, key.line, key.column)
            first_lines.setdefault(name, key.line)
            into[name] = self.of(item)

    def _merge(self, into: dict[str, Any], part: Node) -> None:
        target = target_of(part)
        assert isinstance(target, Mapping)
        if isinstance(part, Alias):
            self.aliases += 1
            self._count(target)
            self._fill(into, target)
            self.aliases -= 1
        else:
            self._fill(into, target)

    def _count(self, node: Node) -> None:
        """Refuse a text that is little but aliases, as Kubernetes does."""
        self.decoded += 1
        self.aliased += self.aliases > 0
        many = self.aliased > 100 and self.decoded > 1000
        if many and self.aliased > _allowed(self.decoded) * self.decoded:
            raise YamlError("document contains excessive aliasing", node.line, node.column)


def _allowed(decoded: int) -> float:
    """The share of `decoded` values that may come from aliases: 99 % of few, 10 % of many."""
    above = min(max(decoded - _FEW_DECODED, 0), _MANY_DECODED - _FEW_DECODED)
    return 0.99 - 0.89 * above / (_MANY_DECODED - _FEW_DECODED)
