"""The API's types: which number, name and type each field has, and how it is written and merged.

They are facts of upstream, in a table for each minor, `kubernetes-1.36.txt`, which a command makes
of the sources (`tools/api_schema.py`); nothing is written into it by hand. `[core.v1]` begins a
group and version; a line without indentation is the name of a type; below it is a line for each
field that protobuf has:

    7 tolerationSeconds *int64
    │ │                 └ type, as Go spells it: `*` may be missing, `[]` a list, `{}` a map from
    │ │                   strings; a type of another group has the group's name before it
    │ └ its name in JSON
    └ its number in protobuf

and perhaps words. How it is written in JSON: `always`, even when it is empty, as null, zero or
`""`; `omitzero`, not even as `{}`; `inline`, its fields stand among those around it; `itself`, the
JSON of the whole type is this list. How parts are owned: `list=set`, `list=map:name,protocol`
(elements are found by these fields; other lists are owned as a whole), `map=atomic`. `merge=name`:
a strategic merge patch merges the list by that field, `merge=` as a set. `required`,
`default="TCP"`: as OpenAPI says. Where Go has a type of its own for a text, its name follows
(`v1.RestartPolicy`), and where it has one for the keys of a map, that comes first, with a colon:
`v1.ResourceName:v1.ClaimResourceStatus`. `go=RBDPool`: Go's name of the field where that is another
word. After the name of a type: `typed`, its objects have a kind and an apiVersion; `atomic`, they
are owned as a whole.

`[internal core]` begins what refusals show: Go's internal types, with the names of their fields in
their order; `HostPID=false` is one that the API's type does not have, and its value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

DEFAULT_MINOR: Final = "1.36"
_TABLES: Final = Path(__file__).parent
SCALARS: Final = frozenset(
    (
        *("string", "bytes", "bool", "int32", "int64", "Quantity", "IntOrString"),
        *("Time", "MicroTime", "FieldsV1", "RawExtension"),
    )
)
"""The types that have no fields of their own."""
TYPE_META: Final = ("kind", "apiVersion")
_META: Final = "meta.v1"
_GROUP_SUFFIX: Final = ".k8s.io"
_ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "Quantity": "0",
    "IntOrString": 0,
}


class Shape(Enum):
    """How often a field may be there; the values are the prefixes in the tables."""

    ONE = ""
    """Once; a missing one is the zero value of its type."""
    POINTER = "*"
    """Once or not at all."""
    LIST = "[]"
    MAP = "{}"


class Field(Struct, frozen=True):
    """A field of a type, as its line says."""

    number: int
    name: str
    type: str
    """Without its shape, and with the group and version of a type with fields: `core.v1.Pod`."""
    shape: Shape
    always: bool = False
    omitzero: bool = False
    inline: bool = False
    itself: bool = False
    required: bool = False
    go_type: str = ""
    """The name in Go of a text that has one."""
    go_key: str = "string"
    """The name in Go of a map's keys."""
    go_name: str = ""
    """Of the field in Go, in small letters."""
    list_type: str = "atomic"
    """`atomic`, `set` or `map`."""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    """`atomic`, `granular`; "": as its type is."""
    merge_key: str | None = None
    """By what a strategic merge patch merges the list; "": its values; None: it replaces it."""
    default: Any = None

    @property
    def kept(self) -> bool:
        """Whether JSON has the field although an empty value is in it."""
        return self.shape is Shape.POINTER or self.always or self.filled

    @property
    def filled(self) -> bool:
        """Whether JSON has the field although nobody has set it."""
        if self.always:
            return True
        plain = self.type in ("string", "bool", "int32", "int64", "bytes")
        return self.shape is Shape.ONE and not plain and not self.omitzero and not self.inline

    @property
    def zero(self) -> Any:
        """What stands there when nobody has set it, of a type without fields."""
        return _ZEROS.get(self.type) if self.shape is Shape.ONE else None


@dataclass(frozen=True, eq=False)
class Message:
    """A type and its fields in order of their numbers."""

    schema: Schema
    name: str
    """As `core.v1.Pod`."""
    fields: tuple[Field, ...]
    typed: bool = False
    """Its objects have a kind and an apiVersion."""
    atomic: bool = False
    """Its objects are owned as a whole."""

    @property
    def kind(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def version(self) -> str:
        return self.name.split(".")[-2]

    @cached_property
    def itself(self) -> Field | None:
        """The list that is the JSON of the whole, if it is one."""
        return next((field for field in self.fields if field.itself), None)

    @cached_property
    def in_json(self) -> Mapping[str, Field]:
        """The fields of its objects in JSON by name, also those of types that stand inline; without
        kind and apiVersion."""
        fields: dict[str, Field] = {}
        for field in self.fields:
            if field.inline:
                fields |= self.schema.message(field.type).in_json
            else:
                fields[field.name] = field
        return fields

    def of(self, field: Field) -> Message | None:
        """The type of a field of this or another type of the same schema; None: it is one without
        fields, or a list."""
        if field.type in SCALARS:
            return None
        message = self.schema.message(field.type)
        return None if message.itself else message


class Schema:
    """The types of a minor. Raises LookupError for one without a table, naming those there are."""

    def __init__(self, minor: str) -> None:
        self.minor = minor
        table = _TABLES / f"kubernetes-{minor}.txt"
        if not table.is_file():
            available = ", ".join(minors())
            raise LookupError(f"no API types of Kubernetes {minor}; there are those of {available}")
        text = table.read_text(encoding="utf-8")
        self.kubernetes = text.split(maxsplit=3)[2].rstrip(":")
        self._sections = dict(_sections(text))
        self._messages: dict[str, Message] = {}

    @property
    def packages(self) -> frozenset[str]:
        """The groups and versions that the table has: `core.v1`, ..."""
        return frozenset(name for name in self._sections if not name.startswith("internal "))

    def kinds(self, package: str) -> Mapping[str, list[str]]:
        """The types of a group and version: name -> the lines of its fields, before them one of the
        words on the whole type; empty for one that is not in the table."""
        return self._sections.get(package, {}) if package in self.packages else {}

    def message(self, name: str) -> Message:
        """The type of that name (`core.v1.Pod`). Raises: KeyError if there is none."""
        cached = self._messages.get(name)
        if cached is not None:
            return cached
        package, _, kind = name.rpartition(".")
        words, *lines = self.kinds(package)[kind]
        fields = tuple(_field(package, line) for line in lines)
        message = Message(self, name, fields, "typed" in words.split(), "atomic" in words.split())
        return self._messages.setdefault(name, message)

    def message_name(self, api_version: str, kind: str) -> str | None:
        """The name of the type of a kind: `core.v1.Pod` of `v1` and `Pod`; None if there is none.

        Options, Status and their like are kinds of every group.
        """
        group, _, version = api_version.rpartition("/")
        package = f"{group.removesuffix(_GROUP_SUFFIX) or 'core'}.{version}"
        for name in (package, _META):
            if kind in self.kinds(name):
                return f"{name}.{kind}"
        return None

    def kind_message(self, api_version: str, kind: str) -> Message | None:
        """The type of a kind that objects or lists of objects have; None for one that is only a
        part of others, or that there is not."""
        name = self.message_name(api_version, kind)
        message = self.message(name) if name else None
        return message if message is not None and "metadata" in message.in_json else None

    def internal(self, name: str) -> tuple[str, ...]:
        """The names of the fields of Go's internal type for that of the API (`core.v1.Pod`), in its
        order. Raises: KeyError."""
        group, _, kind = name.split(".")
        return tuple(self._sections[f"internal {group}"][kind][0].split())

    def has_internal(self, name: str) -> bool:
        """Whether the internal type of that name is in the table."""
        group, _, kind = name.split(".")
        return kind in self._sections.get(f"internal {group}", {})


@cache
def schema_of(minor: str = DEFAULT_MINOR) -> Schema:
    """The types of a minor, `1.36`. Raises: LookupError if it has no table."""
    return Schema(minor)


def message(name: str) -> Message:
    """The type of that name in the default minor. Raises: KeyError if there is none."""
    return schema_of().message(name)


def minors() -> list[str]:
    """The minors that have a table, the oldest first."""
    names = [file.stem.removeprefix("kubernetes-") for file in _TABLES.glob("kubernetes-*.txt")]
    return sorted(names, key=lambda minor: tuple(map(int, minor.split("."))))


def _sections(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The groups of a table; in each the types: their words, and the lines of their fields."""
    types: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            lines.append(line)
        elif line.startswith("["):
            types = {}
            yield line[1:-1], types
        elif not line.startswith("#"):
            name, _, words = line.partition(" ")
            lines = types[name] = [words]


def _field(package: str, line: str) -> Field:
    number, name, kind, *words = line.split()
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    go_key, _, go_type = next((word for word in plain if "." in word), "").rpartition(":")
    shape = next((s for s in Shape if s.value and kind.startswith(s.value)), Shape.ONE)
    type_name = kind.removeprefix(shape.value)
    if type_name not in SCALARS and "." not in type_name:
        type_name = f"{package}.{type_name}"
    list_type, _, keys = settings.get("list", "atomic").partition(":")
    return Field(
        number=int(number),
        name=name,
        type=type_name,
        shape=shape,
        always="always" in plain,
        omitzero="omitzero" in plain,
        inline="inline" in plain,
        itself="itself" in plain,
        required="required" in plain,
        go_type=go_type,
        go_key=go_key or "string",
        go_name=settings.get("go", name).lower(),
        list_type=list_type,
        list_keys=tuple(keys.split(",")) if keys else (),
        map_type=settings.get("map", ""),
        merge_key=settings.get("merge"),
        default=json.loads(settings["default"]) if "default" in settings else None,
    )
