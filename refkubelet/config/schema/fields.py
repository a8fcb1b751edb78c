"""Functions that define the fields of a configuration schema, one for each kind of field.

A schema is a frozen dataclass; the metadata of each field has its name in the file and the kind of
its value, which `decode.py` reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class Kind(Enum):
    """The kind of value that a field has in the file."""

    BOOL = auto()
    INT32 = auto()
    INT64 = auto()
    UINT32 = auto()
    FLOAT = auto()
    STRING = auto()
    PATH = auto()  # a string; relative ones are resolved against the file's directory (CFG-002)
    DURATION = auto()  # a Go duration ("1m30s"); seconds as float in memory
    DURATION_OR_NS = auto()  # the same, or a whole number of nanoseconds
    QUANTITY = auto()  # a Kubernetes quantity as a string; bytes as int in memory
    STRINGS = auto()
    INTS = auto()
    STRING_MAP = auto()
    BOOL_MAP = auto()
    STRINGS_MAP = auto()
    STRUCT = auto()
    STRUCTS = auto()
    OPAQUE = auto()  # a mapping that is kept without checks


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """The metadata of a field: its name in the file, its kind, and for STRUCT and STRUCTS the
    schema."""

    wire: str
    kind: Kind
    struct: type | None = None
    zero_is_default: bool = False  # an explicit zero means "not set" upstream


def info_of(field: dataclasses.Field[Any]) -> FieldInfo:
    """The metadata that the functions below attach to a field of a schema."""
    info: FieldInfo = field.metadata["config"]
    return info


def _field(info: FieldInfo, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"config": info})


def boolean(wire: str, default: bool | None = False) -> Any:
    return _field(FieldInfo(wire, Kind.BOOL), default)


def int32(wire: str, default: int | None = 0, *, zero_is_default: bool = False) -> Any:
    return _field(FieldInfo(wire, Kind.INT32, zero_is_default=zero_is_default), default)


def int64(wire: str, default: int | None = 0) -> Any:
    return _field(FieldInfo(wire, Kind.INT64), default)


def uint32(wire: str, default: int = 0) -> Any:
    return _field(FieldInfo(wire, Kind.UINT32), default)


def number(wire: str, default: float | None = None) -> Any:
    return _field(FieldInfo(wire, Kind.FLOAT), default)


def text(wire: str, default: str | None = "", *, keeps_empty: bool = False) -> Any:
    """A string; an explicit "" means the default unless `keeps_empty`."""
    return _field(FieldInfo(wire, Kind.STRING, zero_is_default=not keeps_empty), default)


def path(wire: str, default: str = "", *, keeps_empty: bool = False) -> Any:
    return _field(FieldInfo(wire, Kind.PATH, zero_is_default=not keeps_empty), default)


def duration(wire: str, default_s: float | None, *, keeps_zero: bool = False) -> Any:
    """A duration; an explicit 0 means the default unless `keeps_zero`."""
    return _field(FieldInfo(wire, Kind.DURATION, zero_is_default=not keeps_zero), default_s)


def duration_or_ns(wire: str, default_s: float) -> Any:
    """A duration, or nanoseconds as a number; an explicit 0 means the default."""
    return _field(FieldInfo(wire, Kind.DURATION_OR_NS, zero_is_default=True), default_s)


def quantity(wire: str, default: int) -> Any:
    return _field(FieldInfo(wire, Kind.QUANTITY), default)


def strings(wire: str, default: tuple[str, ...] | None = ()) -> Any:
    return _field(FieldInfo(wire, Kind.STRINGS), default)


def ints(wire: str) -> Any:
    return _field(FieldInfo(wire, Kind.INTS), ())


def string_map(wire: str, default: Mapping[str, str] | None = EMPTY) -> Any:
    return _map(wire, Kind.STRING_MAP, default)


def bool_map(wire: str) -> Any:
    return _map(wire, Kind.BOOL_MAP, EMPTY)


def strings_map(wire: str) -> Any:
    return _map(wire, Kind.STRINGS_MAP, EMPTY)


def opaque(wire: str) -> Any:
    return _map(wire, Kind.OPAQUE, EMPTY)


def _map(wire: str, kind: Kind, default: Mapping[str, Any] | None) -> Any:
    # A factory, because dataclasses refuse unhashable defaults, and mapping proxies are unhashable.
    return dataclasses.field(
        default_factory=lambda: default, metadata={"config": FieldInfo(wire, kind)}
    )


def struct(wire: str, cls: type) -> Any:
    return dataclasses.field(
        default_factory=cls, metadata={"config": FieldInfo(wire, Kind.STRUCT, cls)}
    )


def optional_struct(wire: str, cls: type) -> Any:
    return _field(FieldInfo(wire, Kind.STRUCT, cls), None)


def structs(wire: str, cls: type) -> Any:
    return _field(FieldInfo(wire, Kind.STRUCTS, cls), ())
