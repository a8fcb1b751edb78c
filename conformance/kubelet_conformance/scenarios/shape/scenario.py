"""What a scenario file may hold: the struct `Scenario`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Bytes, Count, ImagePattern, Seconds, Text
from fakecri.scripts.script_shapes import RegistryEntry
from fakecri.scripts.word_shapes import BehaviorEntry
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.scenarios.shape.conditions import Expectation, Monitor
from kubelet_conformance.scenarios.shape.csi import CsiDriver, CsiVolume
from kubelet_conformance.scenarios.shape.faults import Fault
from kubelet_conformance.scenarios.shape.fields import CaseId, MinorVersion, Need, Release, RuleId
from kubelet_conformance.scenarios.shape.pods import Fields, PodEntry
from kubelet_conformance.scenarios.shape.steps import Step
from kubeobjects.strict.errors import ScriptError
from kubeobjects.strict.reader import Placed, Strict
from kubeobjects.strict.values import Value

LEVELS: Final = ("must", "should", "detail")


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


class Affected(Placed, kw_only=True):
    """The kubelets that have the bug."""

    since: (
        Annotated[Release, Meta(description="the first one; older than all, if not given")]
        | UnsetType
    ) = UNSET
    fixed: (
        Annotated[
            Release | Annotated[tuple[Release, ...], Meta(min_length=1)],
            Meta(
                description="the first one without it, or a list with the first one of each minor"
                " that got the fix: [1.30.3, 1.31.1, 1.32]; none, if not given",
                extra={"wanted": "a version, or a list of them"},
            ),
        ]
        | UnsetType
    ) = UNSET
    source: Annotated[str, Meta(description="where that is written: kubernetes/kubernetes#104712")]
    ends_kubelet: Annotated[
        bool, Meta(description="the bug ends the kubelet: that counts as the known bug, too")
    ] = False
    by_chance: Annotated[
        bool, Meta(description="the bug shows in some runs only: there to pass is no failure")
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.since is UNSET or self.fixed is UNSET:
            return
        versions = (self.fixed,) if isinstance(self.fixed, str) else self.fixed
        if not any(_release(self.since) < _release(version) for version in versions):
            raise ValueError(f"fixed: wanted a version after {self.since}")

    def known_bug(self, upstream: str, what: str) -> KnownBug:
        """The same for the register of cases; `upstream`: its number, `what`: a sentence."""
        fixed = () if self.fixed is UNSET else self.fixed
        versions = (fixed,) if isinstance(fixed, str) else fixed
        since = "" if self.since is UNSET else self.since
        return KnownBug(
            upstream,
            what,
            fixed=", ".join(versions),
            since=since,
            ends_kubelet=self.ends_kubelet,
            by_chance=self.by_chance,
        )


class Topology(Strict, kw_only=True):
    """CPUs, memory and swap of the machine; needs node_resources."""

    sockets: Count | UnsetType = UNSET
    cores: Annotated[Count, Meta(description="of each socket")] | UnsetType = UNSET
    threads: Annotated[Count, Meta(description="of each core")] | UnsetType = UNSET
    nodes_per_socket: Annotated[Count, Meta(description="NUMA nodes")] | UnsetType = UNSET
    caches_per_node: Count | UnsetType = UNSET
    memory: Bytes | UnsetType = UNSET
    swap: Bytes | UnsetType = UNSET

    def words(self) -> dict[str, Any]:
        """The words of `machine=` of a case."""
        names = {"memory": "memory_bytes", "swap": "swap_bytes"}
        return {names.get(name, name): value for name, value in self.given().items()}


class Programmed(Strict, kw_only=True):
    """What the runtime does, in the words of fakecri's scripts; it holds from the beginning."""

    behaviors: tuple[BehaviorEntry, ...] = ()
    faults: tuple[Fault, ...] = ()
    registry: (
        Annotated[
            dict[ImagePattern, RegistryEntry],
            Meta(description="what pulls meet; any other image can be pulled"),
        ]
        | UnsetType
    ) = UNSET


class Scenario(Placed, kw_only=True):
    """One bug of a kubelet: what has to happen for it, and what a kubelet without it does."""

    id: CaseId
    title: Annotated[str, Meta(description="the bug in one sentence")]
    about: Annotated[str, Meta(description="more: why it happens, what is special here")] = ""
    upstream: Annotated[
        tuple[Text, ...],
        Meta(description="numbers of kubernetes/kubernetes, or with a project: containerd 4604"),
    ] = ()
    affected: Affected | UnsetType = UNSET
    since: (
        Annotated[
            MinorVersion, Meta(description="older kubelets are skipped, they lack what it is about")
        ]
        | UnsetType
    ) = UNSET
    rules: Annotated[
        tuple[RuleId, ...], Meta(description="of docs/spec; the first counts most")
    ] = ()
    level: Literal["must", "should", "detail"] = "must"
    needs: Annotated[
        tuple[Need, ...],
        Meta(description="features of kubelet, runtime and node beside those that the words need"),
    ] = ()
    kubelet: Annotated[Fields, Meta(description="fields of KubeletConfiguration")] | UnsetType = (
        UNSET
    )
    node: Topology | UnsetType = UNSET
    script: Programmed | UnsetType = UNSET
    csi_drivers: Annotated[
        dict[str, CsiDriver], Meta(description="the CSI drivers of the node, by their names")
    ] = msgspec.field(default_factory=dict)
    csi_volumes: Annotated[
        dict[str, CsiVolume],
        Meta(description="persistent volumes of these drivers, by the names of their claims"),
    ] = msgspec.field(default_factory=dict)
    pods: Annotated[dict[str, PodEntry], Meta(description="by the names that steps use")] = (
        msgspec.field(default_factory=dict)
    )
    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    calm: (
        Annotated[
            Seconds,
            Meta(
                description="a world of `search`: a step that cannot be done is left out, and no"
                " fault need act; after the steps all faults end and what is down comes back, so"
                " much time passes, and the laws are asked"
            ),
        ]
        | UnsetType
    ) = UNSET
    expect: Annotated[
        tuple[Expectation, ...], Meta(description="what holds in the end, one after the other")
    ] = ()
    never: Annotated[
        tuple[Monitor, ...], Meta(description="what does not hold at any moment of the run")
    ] = ()

    def error_at(self, key: str, text: str) -> ScriptError:
        """An error at that key of the file."""
        place: Value | None = self.__dict__.get("place")
        for name, value in place.pairs() if place is not None else ():
            if name.text() == key:
                return value.error(text)
        return ScriptError(f"{key}: {text}")

    @property
    def programmed(self) -> Programmed:
        """What the runtime does; nothing of its own, if not given."""
        return Programmed() if self.script is UNSET else self.script

    @property
    def bugs(self) -> tuple[KnownBug, ...]:
        """The bug, when it is said which kubelets have it."""
        if self.affected is UNSET:
            return ()
        return (self.affected.known_bug(next(iter(self.upstream), ""), self.title),)
