"""What a script file may hold, section by section."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.core.image_store.images import Registry, RegistryImage
from fakecri.core.image_store.references import parse_reference
from fakecri.machine.values import Filesystem
from fakecri.options import Options
from fakecri.scripts.fields import (
    Bytes,
    Count,
    Image,
    ImagePattern,
    Port,
    Seconds,
    StatusCode,
    Text,
)
from fakecri.scripts.word_shapes import BehaviorEntry, FaultEntry, shape_of_settings
from fakecri.streaming.stream_rules import address
from fakecri.words.settings import DISK, NODE, RUNTIME, by_field
from kubeobjects.strict.reader import Placed, Strict


class _Runtime(Strict):
    def __post_init__(self) -> None:
        Options(**self.options())

    def options(self) -> dict[str, Any]:
        """The fields of `Options` that it sets."""
        return by_field(RUNTIME, self.given())


class Layout(Strict):
    """CPUs of a machine of equal sockets."""

    sockets: Count = 1
    cores: Annotated[Count, Meta(description="of each socket")] = 4
    threads: Annotated[Count, Meta(description="of each core")] = 1
    nodes_per_socket: Annotated[Count, Meta(description="NUMA nodes")] = 1
    caches_per_node: Count = 1


class _Node(Strict):
    layout: Layout | UnsetType = UNSET

    def __post_init__(self) -> None:
        given = self.given()
        if "layout" in given and "cpus" in given:
            raise ValueError("cpus: wanted cpus or layout, got both")
        self.fields()

    def fields(self) -> dict[str, Any]:
        """The arguments of `FakeNode` that it sets. Raises ValueError for an impossible layout."""
        given = by_field(NODE, self.given())
        if sizes := by_field(DISK, self.given()):
            given["filesystems"] = {"/": Filesystem("disk0", **sizes)}
        if self.layout is not UNSET:
            from fakecri.machine.topology import NO_HUGEPAGES, uniform_topology

            memory = {key: given[key] for key in ("memory_bytes",) if key in given}
            layout = {**self.layout.given(), **memory}
            given["layout"] = uniform_topology(**layout, hugepages=NO_HUGEPAGES)
        return given


if TYPE_CHECKING:
    Runtime: TypeAlias = _Runtime
    Node: TypeAlias = _Node
else:
    Runtime = shape_of_settings(
        "Runtime", "What the runtime says of itself, and how it is.", RUNTIME, _Runtime
    )
    Node = shape_of_settings("Node", "The machine that the runtime runs on.", (*NODE, *DISK), _Node)


class RegistryEntry(Strict):
    """What pulls of an image meet."""

    missing: Annotated[bool, Meta(description="there is no such image")] = False
    content: (
        Annotated[str, Meta(description="names with the same content are one image")] | UnsetType
    ) = UNSET
    size_bytes: Bytes | UnsetType = UNSET
    pull_s: Seconds = 0.0
    error: Annotated[str, Meta(description="pulls fail with this text")] = ""
    error_code: StatusCode = "UNKNOWN"
    uid: int | UnsetType = UNSET
    username: str = ""
    stop_signal: str = ""
    users: Annotated[tuple[str, ...], Meta(description="lines of its /etc/passwd")] = ()
    groups: Annotated[tuple[str, ...], Meta(description="lines of its /etc/group")] = ()
    paths: Annotated[tuple[str, ...], Meta(description="what an image volume may name")] = ()
    credentials: (
        Annotated[tuple[str, str], Meta(extra={"wanted": "[user, password]"})] | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        self.image()

    def image(self) -> RegistryImage | None:
        """What the registry says; None: there is no such image."""
        given = self.given()
        del given["missing"]
        made = RegistryImage(**given)
        return None if self.missing else made


class ForwardEntry(Placed):
    """A port of pods that leads to a port of this machine."""

    port: Annotated[Port, Meta(description="0: every port")]
    to: Annotated[Text, Meta(description="a port, or host:port")]
    pod: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.to.isdecimal():
            self.to = f"127.0.0.1:{self.to}"
        address(self.to)


class Script(Placed):
    """What a fake or a proxy is made and programmed with."""

    runtime: Runtime | UnsetType = UNSET
    node: Node | UnsetType = UNSET
    images: Annotated[tuple[Image, ...], Meta(description="there from the start")] | UnsetType = (
        UNSET
    )
    programs: Annotated[
        tuple[str, ...], Meta(description="what images have, beside the fake's own")
    ] = ()
    registry: (
        Annotated[
            dict[ImagePattern, RegistryEntry],
            Meta(description="what pulls meet; any other image can be pulled"),
        ]
        | UnsetType
    ) = UNSET
    behaviors: tuple[BehaviorEntry, ...] = ()
    faults: tuple[FaultEntry, ...] = ()
    forwards: tuple[ForwardEntry, ...] = ()

    def node_fields(self) -> dict[str, Any]:
        """The arguments of `FakeNode` that it sets."""
        return {} if self.node is UNSET else self.node.fields()


def registry_with(table: Mapping[str, RegistryEntry]) -> Registry:
    """A registry that has every image. Those in `table` are as it says.

    A key is a reference in any form, or a pattern over normalised ones (`docker.io/library/*`);
    exact references count before patterns, patterns in their order.
    """
    images = {key: entry.image() for key, entry in table.items()}
    exact = {str(parse_reference(key)): one for key, one in images.items() if not _pattern(key)}
    patterns = [(key, image) for key, image in images.items() if _pattern(key)]

    def look_up(reference: str) -> RegistryImage | None:
        if reference in exact:
            return exact[reference]
        for pattern, image in patterns:
            if fnmatchcase(reference, pattern):
                return image
        return RegistryImage()

    return look_up


def _pattern(key: str) -> bool:
    return "*" in key or "?" in key
