"""Reads the types of a Go file of Kubernetes' API: structs with tags, and named types. Pure.

It knows as much of Go as these files use: `type X struct { ... }` with a field or an embedded type
in each line, `type X string`, `type X []string`, `type X map[K]V`, and imports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

PLAIN: Final = ("string", "bool", "int32", "int64")
_IMPORT: Final = re.compile(r'^\s*(?:(\w+)\s+)?"([\w./-]+)"$')
_NAMED: Final = re.compile(r"^type (\w+) ([\w\[\].*]+)$")
_STRUCT: Final = re.compile(r"^type (\w+) struct \{$")
_FIELD: Final = re.compile(r"^\t(?:(\w+)\s+)?([\w.\[\]*]+)(?:\s+`([^`]*)`)?\s*(?://.*)?$")
_TAG: Final = re.compile(r'(\w+):"([^"]*)"')


class GoTypeError(ValueError):
    """The sources are not as expected; the text says what of them."""


@dataclass(frozen=True, slots=True)
class GoField:
    """A field of a struct."""

    go_name: str
    type: str
    tags: Mapping[str, str]
    embedded: bool = False
    """A type without a name of its own: its fields are those of the struct."""

    @property
    def name(self) -> str:
        """In JSON; of an embedded type that has none its own."""
        return self.tags.get("json", "").partition(",")[0] or self.go_name

    @property
    def number(self) -> int:
        """In protobuf; 0: it is not there."""
        parts = self.tags.get("protobuf", "").split(",")
        return int(parts[1]) if len(parts) > 1 else 0

    @property
    def proto_name(self) -> str:
        """In protobuf."""
        parts = self.tags.get("protobuf", "").split(",")
        named = (part.removeprefix("name=") for part in parts if part.startswith("name="))
        return next(named, self.go_name[:1].lower() + self.go_name[1:])

    @property
    def written(self) -> frozenset[str]:
        """`inline`, `omitzero`, and `always` if it is written even when it is empty."""
        words = self.tags.get("json", "").split(",")[1:]
        if "inline" in words or not self.tags.get("json", "").partition(",")[0]:
            return frozenset(("inline",))
        if "omitzero" in words:
            return frozenset(("omitzero",))
        return frozenset() if "omitempty" in words else frozenset(("always",))


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a field's type is in the table."""

    shape: str
    """`*`, `[]`, `{}` or nothing."""
    package: str
    """That of the type, `core.v1`; "": Go's own."""
    name: str
    """Of the type, without the names of texts: `string`, `Container`."""
    go_type: str = ""
    """Go's name of a text that has one."""
    go_key: str = ""
    """Go's name of the keys of a map."""


@dataclass(slots=True)
class GoPackage:
    """The types of a package."""

    name: str
    """Its group and version, `core.v1`."""
    imports: dict[str, str] = field(default_factory=dict)
    """The name that an import has in the file -> the last two parts of its path, `core.v1`."""
    named: dict[str, str] = field(default_factory=dict)
    """`type X ...` that are no structs."""
    structs: dict[str, list[GoField]] = field(default_factory=dict)

    @property
    def lists(self) -> dict[str, str]:
        """Named lists, and what they are of."""
        return {n: t.removeprefix("[]") for n, t in self.named.items() if t.startswith("[]")}


class GoSources:
    """All packages, by group and version."""

    def __init__(self, packages: Mapping[str, GoPackage]) -> None:
        self.packages = packages

    def resolved(self, package: GoPackage, written: str) -> Resolved:
        """What a type means that is written in a field of that package."""
        shape, kind = "", written
        for prefix in ("*", "[]"):
            if kind.startswith(prefix) and kind != "[]byte":
                shape, kind = prefix, kind.removeprefix(prefix)
                break
        if kind.startswith("map["):
            key, _, kind = kind.removeprefix("map[").partition("]")
            name = "" if key == "string" else self._go_name(package, key)
            return replace(self._type(package, kind), shape="{}", go_key=name)
        found = self._type(package, kind)
        if found.shape:
            return found
        owner = self.packages.get(found.package)
        a_list = owner is not None and found.name in owner.lists
        return replace(found, shape="*" if a_list and not shape else shape)

    def _type(self, package: GoPackage, kind: str) -> Resolved:
        alias, dot, name = kind.rpartition(".")
        home = package.imports.get(alias, alias) if dot else package.name
        owner = self.packages.get(home)
        meant = owner.named.get(name, "") if owner is not None else ""
        if owner is not None and meant.startswith("map["):
            return replace(self.resolved(owner, meant), go_key="")
        if meant in PLAIN:
            return Resolved("", "", meant, self._go_name(package, kind))
        if home == "pkg.types":  # types.UID and their like are texts
            return Resolved("", "", "string", f"types.{name}")
        return Resolved("", "" if name in (*PLAIN, "[]byte") else home, name)

    @staticmethod
    def _go_name(package: GoPackage, kind: str) -> str:
        alias, dot, name = kind.rpartition(".")
        home = package.imports.get(alias, alias) if dot else package.name
        return f"{home.partition('.')[2]}.{name}"


def read_package(name: str, text: str) -> GoPackage:
    """The types of a file of that group and version."""
    package = GoPackage(name)
    fields: list[GoField] | None = None
    for line in text.splitlines():
        if fields is not None:
            if line == "}":
                fields = None
            elif found := _FIELD.match(line):
                own, kind, tags = found.groups()
                go_name = own or kind.lstrip("*").rpartition(".")[2]
                found_tags = dict(_TAG.findall(tags or ""))
                fields.append(GoField(go_name, kind, found_tags, embedded=own is None))
        elif found := _STRUCT.match(line):
            fields = package.structs[found[1]] = []
        elif found := _NAMED.match(line):
            package.named[found[1]] = found[2]
        elif found := _IMPORT.match(line):
            parts = found[2].split("/")
            package.imports[found[1] or parts[-1]] = ".".join(parts[-2:])
    return package
