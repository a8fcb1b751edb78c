"""The messages of the API: which number, name and type each field has.

They are facts of upstream's API, written in `tables/<group>.<version>.txt`, the groups that this
server has. A line without indentation is the name of a message; below it is a line for each field:

    7 tolerationSeconds *int64
    │ │                 └ type, as Go spells it: `*` may be missing, `[]` a list, `{}` a map from
    │ │                   strings; a message of another group has the group's name before it
    │ └ its name in JSON
    └ its number in protobuf

and perhaps a word on how the API server writes it as JSON: `always`, even when it is empty, as
null, zero or `""`; `omitzero`, not even as `{}`; `inline`, its fields stand among those around it;
`itself`, the JSON of the whole message is this list. Where Go has a type
of its own for a text, its name follows as a word (`v1.RestartPolicy`), and where it has one for the
keys of a map, that comes first, with a colon: `v1.ResourceName:v1.ClaimResourceStatus`, or
`v1.ResourceName:` if the values are plain. The tables were made of the tags of
Kubernetes 1.36's Go types and agree with its .proto files; a new field goes in by hand, with the
number that upstream has given it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from typing import Final

from fakekubeapi.protobuf.values import KINDS

_META: Final = "meta.v1"
_GROUP_SUFFIX: Final = ".k8s.io"


class Shape(Enum):
    """How often a field may be there; the values are the prefixes in the tables."""

    ONE = ""
    """Once; a missing one is the zero value of its type."""
    POINTER = "*"
    """Once or not at all."""
    LIST = "[]"
    MAP = "{}"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message, as its line says."""

    number: int
    name: str
    type: str
    """Without its shape, and with the group and version of a message: `core.v1.Pod`."""
    shape: Shape
    always: bool = False
    omitzero: bool = False
    inline: bool = False
    itself: bool = False
    go_type: str = ""
    """The name in Go of a text that has one."""
    go_key: str = "string"
    """The name in Go of a map's keys."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message and its fields in order of their numbers."""

    name: str
    fields: tuple[Field, ...]


def message_name(api_version: str, kind: str) -> str | None:
    """The name of the message of a kind: `core.v1.Pod` of `v1` and `Pod`; None if there is none.

    Options, Status and their like are kinds of every group.
    """
    group, _, version = api_version.rpartition("/")
    package = f"{group.removesuffix(_GROUP_SUFFIX) or 'core'}.{version}"
    for name in (package, _META):
        if kind in messages_of(name):
            return f"{name}.{kind}"
    return None


def kind_message(api_version: str, kind: str) -> str | None:
    """The same, of a kind that objects or lists of objects have: not of one that is only a part."""
    name = message_name(api_version, kind)
    if name is None or all(field.name != "metadata" for field in message(name).fields):
        return None
    return name


@cache
def message(name: str) -> Message:
    """The message of that name. Raises: KeyError if there is none."""
    package, _, kind = name.rpartition(".")
    lines = messages_of(package)[kind]
    return Message(name, tuple(_field(package, line.split()) for line in lines))


@cache
def messages_of(package: str) -> dict[str, list[str]]:
    """The messages of a group and version (`core.v1`) by name, and the lines of their fields; empty
    for one that has no table."""
    if package not in packages():
        return {}
    table = resources.files(__package__) / "tables" / f"{package}.txt"
    found, lines = dict[str, list[str]](), list[str]()
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            lines.append(line)
        elif line and not line.startswith("#"):
            lines = found[line] = []
    return found


@cache
def packages() -> frozenset[str]:
    """The groups and versions that have a table: `core.v1`, ..."""
    tables = (resources.files(__package__) / "tables").iterdir()
    return frozenset(table.name.removesuffix(".txt") for table in tables)


def _field(package: str, words: list[str]) -> Field:
    number, name, wanted, *more = words
    go_key, _, go_type = next((word for word in more if "." in word), "").rpartition(":")
    shape = next((one for one in Shape if one.value and wanted.startswith(one.value)), Shape.ONE)
    type_name = wanted.removeprefix(shape.value)
    if type_name not in KINDS and "." not in type_name:
        type_name = f"{package}.{type_name}"
    return Field(
        number=int(number),
        name=name,
        type=type_name,
        shape=shape,
        always="always" in more,
        omitzero="omitzero" in more,
        inline="inline" in more,
        itself="itself" in more,
        go_type=go_type,
        go_key=go_key or "string",
    )
