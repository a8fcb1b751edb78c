"""Decodes a YAML document into a frozen schema object and reports all mistakes of the file at once.

A value of the wrong type is an error with line, field, the wanted and the actual value. An unknown
field is one, too, unless the reader overlooks them, as that of KubeletConfiguration does (CFG-002).
`null` means "not set". No value is converted to another type.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kubeobjects.golang.duration import parse_duration_s
from kubeobjects.quantity import parse_integer
from kubeobjects.yaml.document import Document, Path, dotted
from refkubelet.config.schema.fields import FieldInfo, Kind, info_of

S = TypeVar("S")

_WANTED: Final = {
    Kind.BOOL: "true or false",
    Kind.INT32: "an integer of 32 bits",
    Kind.INT64: "an integer",
    Kind.UINT32: "an integer from 0 to 4294967295",
    Kind.FLOAT: "a number",
    Kind.STRING: "a text",
    Kind.PATH: "a path",
    Kind.DURATION: "a duration such as 10s or 1m30s",
    Kind.DURATION_OR_NS: "a duration such as 5s, or nanoseconds",
    Kind.QUANTITY: "a quantity such as 10Mi",
    Kind.STRINGS: "a list of texts",
    Kind.INTS: "a list of integers",
    Kind.STRING_MAP: "a mapping of texts to texts",
    Kind.BOOL_MAP: "a mapping of texts to true or false",
    Kind.STRINGS_MAP: "a mapping of texts to lists of texts",
    Kind.STRUCT: "a mapping",
    Kind.STRUCTS: "a list of mappings",
    Kind.OPAQUE: "a mapping",
}


class _Mistake(Exception):
    """The value at `path` is not what its field wants."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem


@dataclasses.dataclass
class Decoder:
    """Decodes one document. `problems` collects `<file>:<line>: <field>: <what>`, `overlooked` the
    same about fields that are unknown; where it is None, these are problems."""

    file: str
    document: Document
    problems: list[str] = dataclasses.field(default_factory=list)
    overlooked: list[str] | None = None

    def struct(self, cls: type[S], value: Any, path: Path, *, ignore: frozenset[str]) -> S:
        """An object of `cls` from a mapping, without the keys in `ignore`. Mistakes go to
        `problems`."""
        known = {info_of(f).wire: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        arguments: dict[str, Any] = {}
        for key, item in value.items():
            if key in ignore:
                continue
            field = known.get(key)
            if field is None:
                self._unknown(key, (*path, key), known)
                continue
            try:
                decoded = self._value(info_of(field), item, (*path, key))
            except _Mistake as e:
                self.problem(e.path, e.problem)
                continue
            if decoded is not None:
                arguments[field.name] = decoded
        return cls(**arguments)

    def problem(self, path: Path, text: str) -> None:
        """Record a mistake at that path of the document."""
        self.problems.append(self._placed(path, text))

    def _placed(self, path: Path, text: str) -> str:
        line = self.document.line_of(path)
        place = f"{self.file}:{line}" if line is not None else self.file
        name = dotted(path)
        return f"{place}: {name}: {text}" if name else f"{place}: {text}"

    def _unknown(self, key: str, path: Path, known: Mapping[str, Any]) -> None:
        lowered = {name.lower(): name for name in known}
        near = lowered.get(key.lower()) or next(
            iter(difflib.get_close_matches(key, known, n=1, cutoff=0.75)), None
        )
        hint = f"; did you mean {near}?" if near else ""
        if self.overlooked is None:
            self.problem(path, f"unknown field{hint}")
        else:
            self.overlooked.append(self._placed(path, f"unknown field, without effect{hint}"))

    def _value(self, info: FieldInfo, value: Any, path: Path) -> Any:
        """The decoded value, or None for "take the default"."""
        if value is None:
            return None
        if info.struct is not None:
            return self._structs(info, value, path)
        decoded = _DECODERS[info.kind](value, info.kind, path)
        if info.zero_is_default and not decoded:
            return None
        if info.kind is Kind.PATH and decoded:
            return str(FilePath(self.file).absolute().parent / decoded)  # CFG-002
        return decoded

    def _structs(self, info: FieldInfo, value: Any, path: Path) -> Any:
        assert info.struct is not None
        if info.kind is Kind.STRUCT:
            _require(isinstance(value, dict), value, info.kind, path)
            return self.struct(info.struct, value, path, ignore=frozenset())
        _require(isinstance(value, list), value, info.kind, path)
        result: list[Any] = []
        for i, item in enumerate(value):
            _require(isinstance(item, dict), item, Kind.STRUCT, (*path, i))
            result.append(self.struct(info.struct, item, (*path, i), ignore=frozenset()))
        return tuple(result)


def describe(value: Any) -> str:
    """A value as an error message shows it.

    >>> describe(3), describe("x"), describe([]), describe(None)
    ('the number 3', "the text 'x'", 'a list', 'nothing')
    """
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value!r}"
        case list():
            return "a list"
    return "a mapping"


def _require(ok: bool, value: Any, kind: Kind, path: Path) -> None:
    if not ok:
        raise _Mistake(path, f"wanted {_WANTED[kind]}, found {describe(value)}")


def _is_int(value: Any, bits: int) -> bool:
    in_range = isinstance(value, int) and -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    return in_range and not isinstance(value, bool)


def _bool(value: Any, kind: Kind, path: Path) -> bool:
    _require(isinstance(value, bool), value, kind, path)
    return bool(value)


def _int(value: Any, kind: Kind, path: Path) -> int:
    _require(_is_int(value, 32 if kind in (Kind.INT32, Kind.INTS) else 64), value, kind, path)
    return int(value)


def _uint32(value: Any, kind: Kind, path: Path) -> int:
    _require(_is_int(value, 33) and value >= 0, value, kind, path)
    return int(value)


def _duration_or_ns(value: Any, kind: Kind, path: Path) -> float:
    if _is_int(value, 64):
        return float(value) / 1e9
    return float(_parsed(parse_duration_s)(value, kind, path))


def _float(value: Any, kind: Kind, path: Path) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(number and math.isfinite(value), value, kind, path)
    return float(value)


def _text(value: Any, kind: Kind, path: Path) -> str:
    if not isinstance(value, str):
        hint = "" if isinstance(value, list | dict) else f'; put it in quotes: "{value}"'
        raise _Mistake(path, f"wanted {_WANTED[kind]}, found {describe(value)}{hint}")
    return value


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any, Kind, Path], Any]:
    def decode(value: Any, kind: Kind, path: Path) -> Any:
        _require(isinstance(value, str), value, kind, path)
        try:
            return parse(value)
        except ValueError:
            raise _Mistake(path, f"wanted {_WANTED[kind]}, found {describe(value)}") from None

    return decode


def _list_of(
    item: Callable[[Any, Kind, Path], Any], item_kind: Kind
) -> Callable[[Any, Kind, Path], tuple[Any, ...]]:
    def decode(value: Any, kind: Kind, path: Path) -> tuple[Any, ...]:
        _require(isinstance(value, list), value, kind, path)
        return tuple(item(v, item_kind, (*path, i)) for i, v in enumerate(value))

    return decode


def _map_of(
    item: Callable[[Any, Kind, Path], Any], item_kind: Kind
) -> Callable[[Any, Kind, Path], Mapping[str, Any]]:
    def decode(value: Any, kind: Kind, path: Path) -> Mapping[str, Any]:
        _require(isinstance(value, dict), value, kind, path)
        return MappingProxyType({k: item(v, item_kind, (*path, k)) for k, v in value.items()})

    return decode


def _opaque(value: Any, kind: Kind, path: Path) -> Mapping[str, Any]:
    _require(isinstance(value, dict), value, kind, path)
    return MappingProxyType(value)


_TEXTS: Final = _list_of(_text, Kind.STRING)

_DECODERS: Final[Mapping[Kind, Callable[[Any, Kind, Path], Any]]] = {
    Kind.BOOL: _bool,
    Kind.INT32: _int,
    Kind.INT64: _int,
    Kind.UINT32: _uint32,
    Kind.FLOAT: _float,
    Kind.STRING: _text,
    Kind.PATH: _text,
    Kind.DURATION: _parsed(parse_duration_s),
    Kind.DURATION_OR_NS: _duration_or_ns,
    Kind.QUANTITY: _parsed(parse_integer),
    Kind.STRINGS: _TEXTS,
    Kind.INTS: _list_of(_int, Kind.INT32),
    Kind.STRING_MAP: _map_of(_text, Kind.STRING),
    Kind.BOOL_MAP: _map_of(_bool, Kind.BOOL),
    Kind.STRINGS_MAP: _map_of(_TEXTS, Kind.STRINGS),
    Kind.OPAQUE: _opaque,
}
