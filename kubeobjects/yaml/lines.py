"""The lines of the values of a text, by their paths. Pure."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from kubeobjects.yaml.nodes import Alias, Mapping, Node, Sequence
from kubeobjects.yaml.values import is_merge, key_of
from kubeobjects.yaml.words import Words

Path: TypeAlias = tuple[str | int, ...]


class Lines(Struct, frozen=True):
    """The line (from 1) of a value, and those of its parts, by key or index."""

    line: int
    parts: dict[str | int, Lines]

    def of(self, path: Path) -> int:
        """The line of the part at that path, or of the nearest part around it."""
        lines = self
        for part in path:
            if part not in lines.parts:
                break
            lines = lines.parts[part]
        return lines.line


NO_PARTS: Final[dict[str | int, Lines]] = {}  # of texts and numbers


def lines_of(node: Node, words: Words) -> Lines:
    """The lines of a node whose keys are valid. A part of a mapping is where its key is; what is
    merged has none."""
    return _lines(node, words, {})


def _lines(node: Node, words: Words, of_anchors: dict[int, Lines]) -> Lines:
    """`of_anchors`: those that are known, by the node's ID."""
    match node:
        case Alias():
            lines = of_anchors.get(id(node.target))
            if lines is None:
                lines = of_anchors[id(node.target)] = _lines(node.target, words, of_anchors)
            return lines
        case Sequence():
            items = [_lines(item, words, of_anchors) for item in node.items]
            return Lines(node.line, dict(enumerate(items)))
        case Mapping():
            parts: dict[str | int, Lines] = {
                key_of(key, words): Lines(key.line, _lines(item, words, of_anchors).parts)
                for key, item in node.pairs
                if not is_merge(key)
            }
            return Lines(node.line, parts)
    return Lines(node.line, NO_PARTS)


def dotted(path: Path) -> str:
    """A path as a text.

    >>> dotted(("registerWithTaints", 0, "key"))
    'registerWithTaints[0].key'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
