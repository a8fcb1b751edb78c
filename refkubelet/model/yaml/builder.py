"""Builds values, and their lines, from the events of a YAML parser, within limits.

One pass over the events of the first document, without recursion: the number of values and the
depth are checked at each event, and the first event beyond a limit ends the parsing. An alias gives
the same value again, and counts each time it is used.
Upstream: go.yaml.in/yaml/v2: decode.

What must never happen here: a value that is not counted, or work per value that grows with the
depth or with the number of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from refkubelet.model.yaml.scalars import ScalarError, key, scalar

MAX_VALUES: Final = 20_000
MAX_DEPTH: Final = 100
DUPLICATE: Final = "duplicate key"

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """The text is invalid; `line` (from 1), or None if unknown."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}" if line is not None else problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class Lines:
    """The line (from 1) of a value, and those of its parts, by key or index."""

    line: int
    parts: dict[str | int, Lines]


NO_PARTS: Final[dict[str | int, Lines]] = {}  # of texts and numbers


def line_of(lines: Lines, path: Path) -> int:
    """The line of the part at that path, or of the nearest part around it."""
    for part in path:
        if part not in lines.parts:
            break
        lines = lines.parts[part]
    return lines.line


def check_count(value: Any) -> None:
    """Check a value from another parser against the same limits. Raises `YamlError` if it has too
    many values or is nested too deeply."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        if count > MAX_VALUES:
            raise YamlError(f"more than {MAX_VALUES} values")
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise YamlError(f"nested more than {MAX_DEPTH} deep")


@dataclass(slots=True)
class _Known:
    """The value of an anchor. `count`: the number of values in it, 0 while it is being read;
    `text`: the event, if it is a scalar."""

    value: Any = None
    lines: Lines | None = None
    count: int = 0
    text: yaml.ScalarEvent | None = None


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read. `key`: the key of the next value; `began_at`: the
    number of values before this one."""

    value: Any
    lines: Lines
    known: _Known
    began_at: int
    key: str | None = None
    merges: bool = False  # the next value is that of `<<`
    first_line: dict[str, int] = field(default_factory=dict)


class Builder:
    """Reads the events of `loader`. Raises `YamlError` and the parser's own errors."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._open: list[_Open] = []
        self._known: dict[str, _Known] = {}
        self._count = 0
        self._result: tuple[Any, Lines | None] = (None, None)

    def document(self) -> tuple[Any, Lines | None]:
        """The value and lines of the first document; (None, None): there is none."""
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
                case yaml.DocumentEndEvent() | yaml.StreamEndEvent():
                    return self._result

    def more(self) -> bool:
        """Whether another document follows; invalid YAML there counts as one."""
        try:
            return not isinstance(self._loader.peek_event(), yaml.StreamEndEvent)
        except yaml.YAMLError:
            return True

    def _counted(self, values: int, line: int) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            raise YamlError(f"more than {MAX_VALUES} values, aliases resolved", line)

    def _wants_key(self) -> _Open | None:
        """The innermost mapping, if what comes next is a key of it."""
        top = self._open[-1] if self._open else None
        of_key = top is not None and isinstance(top.value, dict)
        return top if top and of_key and top.key is None and not top.merges else None

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line = _line(event)
        try:
            value = scalar(event.value, event.tag, plain=event.implicit[0])
        except ScalarError as error:
            raise YamlError(str(error), line) from None
        lines = Lines(line, NO_PARTS)
        if event.anchor is not None:
            self._known[event.anchor] = _Known(value, lines, 1, event)
        mapping = self._wants_key()
        if mapping is not None:
            self._key(mapping, event, line)
            return
        self._counted(1, line)
        self._put(value, lines, line)

    def _key(self, mapping: _Open, event: yaml.ScalarEvent, line: int) -> None:
        if event.value == "<<" and event.implicit[0]:
            mapping.merges = True
            return
        try:
            name = key(event.value, event.tag, plain=event.implicit[0])
        except ScalarError as error:
            raise YamlError(str(error), line) from None
        if name in mapping.first_line:
            first = mapping.first_line[name]
            raise YamlError(f"{DUPLICATE} {name!r}, first on line {first}", line)
        mapping.first_line[name] = line
        mapping.key = name

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        line = _line(event)
        if self._wants_key() is not None:
            raise YamlError("a key must be a text, not a list or mapping", line)
        self._counted(1, line)
        if len(self._open) >= MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} deep", line)
        known = _Known()
        if event.anchor is not None:
            self._known[event.anchor] = known
        value: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        self._open.append(_Open(value, Lines(line, {}), known, self._count - 1))

    def _end(self) -> None:
        done = self._open.pop()
        known = done.known
        known.value, known.lines = done.value, done.lines
        known.count = self._count - done.began_at
        self._put(done.value, done.lines, done.lines.line)

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        known = self._known.get(event.anchor or "")
        if known is None:
            raise YamlError(f"found undefined alias {event.anchor!r}", line)
        if known.count == 0:
            raise YamlError("an alias refers to the value that contains it", line)
        mapping = self._wants_key()
        if mapping is not None:
            if known.text is None:
                raise YamlError("a key must be a text, not a list or mapping", line)
            self._key(mapping, known.text, line)
            return
        self._counted(known.count, line)
        self._put(known.value, known.lines or Lines(line, NO_PARTS), line)

    def _put(self, value: Any, lines: Lines, line: int) -> None:
        """Put a finished value into the list or mapping around it."""
        if not self._open:
            self._result = (value, lines)
            return
        around = self._open[-1]
        if isinstance(around.value, list):
            around.lines.parts[len(around.value)] = lines
            around.value.append(value)
        elif around.merges:
            around.merges = False
            _merge(around.value, value, line)
        else:
            assert around.key is not None
            around.value[around.key] = value
            around.lines.parts[around.key] = Lines(around.first_line[around.key], lines.parts)
            around.key = None


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 1


def _merge(into: dict[str, Any], value: Any, line: int) -> None:
    """Apply the key `<<`: in a list of mappings the earlier ones win; later keys in the text
    override all of them."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise YamlError("`<<` wants a mapping to merge", line)
    for part in reversed(parts):
        into.update(part)
