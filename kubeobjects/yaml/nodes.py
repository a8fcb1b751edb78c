"""Nodes of a YAML text, with their places, from the events of a parser, within limits.

One pass over the events of the first document, without recursion: the number of values and the
depth are checked at each event, and the first event beyond a limit ends the parsing. An alias
stands for the same node again, and counts each time it is used.
Upstream: go.yaml.in/yaml/v2: parser.

What must never happen here: a value that is not counted, or work per value that grows with the
depth or with the number of its neighbours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeAlias

import yaml
from msgspec import Struct, field

from kubeobjects.yaml.errors import TooDeepError, TooLargeError, YamlError

ANOTHER_DOCUMENT: Final = "but found another document"
_CONTROL: Final = "control characters are not allowed"
GO_VERSIONS: Final = (None, (1, 1))
"""What the directive %YAML may say to Go's parser."""


class Limits(Struct, frozen=True):
    """How large a text may be: its bytes, its values with aliases resolved, and how deep lists and
    mappings may be nested."""

    values: int
    depth: int
    size_bytes: int | None = None


class Text(Struct):
    """A scalar. `line`, `column`: where it begins (from 1; 0 is nowhere); `tag`: its explicit tag;
    `plain`: it is neither quoted nor a block."""

    line: int
    column: int
    text: str
    tag: str | None = None
    plain: bool = True


class Sequence(Struct):
    """A list."""

    line: int
    column: int
    items: list[Node] = field(default_factory=list)


class Mapping(Struct):
    """Keys and values in the order of the text. Keys may repeat."""

    line: int
    column: int
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


class Alias(Struct):
    """Stands for the node of an anchor, which has no alias for itself in it."""

    line: int
    column: int
    target: Text | Sequence | Mapping


Node: TypeAlias = Text | Sequence | Mapping | Alias


def target_of(node: Node) -> Text | Sequence | Mapping:
    """The node that counts: that of its anchor for an alias."""
    return node.target if isinstance(node, Alias) else node


class Composed(Struct, frozen=True):
    """The first document of a text, None if it is empty; `another`: what is wrong with what follows
    it, if the text should have one document only."""

    root: Node | None
    another: YamlError | None = None


def compose(text: str, limits: Limits, *, like_go: bool = True) -> Composed:
    """The nodes of the first document of a text. `like_go`: by a parser that refuses what Go's
    refuses; else by a slower one, for which escapes may be halves of pairs, as in JSON. Raises
    `YamlError`."""
    try:
        loader: Any = yaml.CSafeLoader(text) if like_go else yaml.SafeLoader(text)
        try:
            root = _Composer(loader, limits, GO_VERSIONS if like_go else None).document()
            return Composed(root, _another(loader))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _told(error, text) from None


def _another(loader: Any) -> YamlError | None:
    try:
        event = loader.peek_event()
    except yaml.YAMLError as error:
        return _told(error, "")
    if not isinstance(event, yaml.DocumentStartEvent):
        return None
    return YamlError(ANOTHER_DOCUMENT, *_begin_of(event))


def _told(error: yaml.YAMLError, text: str) -> YamlError:
    """The error of a parser in one line, with its place."""
    if isinstance(error, yaml.MarkedYAMLError):
        description = f"{error.problem or 'unreadable'}, {error.context or ''}"
        problem = " ".join(description.split()).rstrip(",")
        place = _place(error.problem_mark or error.context_mark)
        return YamlError(problem, *place, upstream=_upstream(error))
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: max(text.find(chr(error.character)), 0)]
        problem = f"the control character 0x{error.character:02x} is no text"
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return YamlError(problem, line, column, f"yaml: {_CONTROL}")
    return YamlError(" ".join(str(error).split()) or "unreadable")


def _place(mark: Any) -> tuple[int | None, int | None]:
    return (mark.line + 1, mark.column + 1) if mark is not None else (None, None)


def _begin_of(event: yaml.Event) -> tuple[int, int]:
    """Line and column."""
    mark: Any = event.start_mark
    return mark.line + 1, mark.column + 1


def _upstream(error: yaml.MarkedYAMLError) -> str:
    """The error as Go's parser tells it: a line counts from 0, but in errors of words from 1, and
    is not named if it is 0."""
    mark, context = error.problem_mark, error.context_mark
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"yaml: {f'line {line}: ' if line else ''}{error.problem}"


class _Anchor(Struct):
    """The node of an anchor, once it is complete; `values`, `height`: how many values and levels
    of lists and mappings are in it."""

    node: Text | Sequence | Mapping | None = None
    values: int = 1
    height: int = 0


class _Open(Struct):
    """A list or mapping that is being read. `key`: that of the next value; `values_before`: the
    number of values before this one; `height`: of levels in it, itself included."""

    node: Sequence | Mapping
    anchor: _Anchor
    values_before: int
    key: Node | None = None
    height: int = 1


class _Composer:
    """Reads the events of `loader`. Raises `YamlError` and the parser's own errors."""

    def __init__(self, loader: Any, limits: Limits, versions: Collection[Any] | None) -> None:
        self._loader = loader
        self._limits = limits
        self._versions = versions
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchor] = {}
        self._values = 0
        self._root: Node | None = None

    def document(self) -> Node | None:
        """The root of the first document; None: there is none."""
        while True:
            event = self._loader.get_event()
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._begin(event)
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._end()
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.DocumentStartEvent():
                    self._check_version(event)
                case yaml.DocumentEndEvent() | yaml.StreamEndEvent():
                    return self._root

    def _check_version(self, event: yaml.DocumentStartEvent) -> None:
        if self._versions is not None and event.version not in self._versions:
            raise YamlError("found incompatible YAML document", *_begin_of(event))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        node = Text(*_begin_of(event), event.value, event.tag, not event.style)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(node)
        self._put(node, 1)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        line, column = _begin_of(event)
        if len(self._open) >= self._limits.depth:
            raise self._too_deep(line, column)
        anchor = _Anchor()
        if event.anchor is not None:
            self._anchors[event.anchor] = anchor
        kind = Sequence if isinstance(event, yaml.SequenceStartEvent) else Mapping
        self._open.append(_Open(kind(line, column), anchor, self._values))
        self._count(1, line, column)

    def _end(self) -> None:
        closed = self._open.pop()
        anchor = closed.anchor
        anchor.node, anchor.height = closed.node, closed.height
        anchor.values = self._values - closed.values_before
        self._put(closed.node, 0, closed.height)

    def _alias(self, event: yaml.AliasEvent) -> None:
        line, column = _begin_of(event)
        anchor = self._anchors.get(event.anchor or "")
        if anchor is None:
            raise YamlError(f"unknown anchor '{event.anchor}' referenced", line, column)
        if anchor.node is None:
            raise YamlError(f"anchor '{event.anchor}' value contains itself", line, column)
        if len(self._open) + anchor.height > self._limits.depth:
            raise self._too_deep(line, column)
        self._put(Alias(line, column, anchor.node), anchor.values, anchor.height)

    def _put(self, node: Node, values: int, height: int = 0) -> None:
        """Put a complete node into the list or mapping around it. `values`: those in it that are
        not counted yet."""
        if not self._open:
            self._root = node
            return
        around = self._open[-1]
        around.height = max(around.height, height + 1)
        if isinstance(around.node, Sequence):
            around.node.items.append(node)
        elif around.key is None:
            around.key = node
            return
        else:
            around.node.pairs.append((around.key, node))
            around.key = None
        self._count(values, node.line, node.column)

    def _count(self, values: int, line: int, column: int) -> None:
        self._values += values
        if self._values > self._limits.values:
            problem = f"more than {self._limits.values} values, aliases resolved"
            raise TooLargeError(problem, line, column)

    def _too_deep(self, line: int, column: int) -> YamlError:
        return TooDeepError(f"nested more than {self._limits.depth} deep", line, column)
