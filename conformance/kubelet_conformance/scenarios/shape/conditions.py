"""What a scenario may wait for and expect: each condition is a struct, one word of `Condition`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Bytes, Seconds, Text
from kubelet_conformance.scenarios.shape.csi import CsiCalls, CsiDriverShown
from kubelet_conformance.scenarios.shape.fields import ConditionState, Number, Span, Words
from kubelet_conformance.scenarios.shape.plugged import (
    AnswerShown,
    DeviceCalls,
    LoginRuns,
    RootShown,
)
from kubelet_conformance.scenarios.shape.selectors import (
    CallSelector,
    Mark,
    Moment,
    Part,
    RequestSelector,
    Where,
)
from kubeobjects.strict.reader import Placed

Counted: TypeAlias = Annotated[Number, Meta(description="how many; >=1, if not given")]
Since: TypeAlias = Annotated[Mark, Meta(description="only what came after this mark")]
From: TypeAlias = Annotated[
    Where, Meta(description="who says so: the kubelet's /pods, or the API server")
]
PodName: TypeAlias = Annotated[str, Meta(description="its key in `pods`, or its name")]


class Calls(CallSelector, kw_only=True):
    """So many CRI calls came."""

    count: Counted | UnsetType = UNSET


class Order(Placed, kw_only=True):
    """There were such calls in this order; others may be between them."""

    calls: Annotated[tuple[CallSelector, ...], Meta(min_length=2)]


class Gaps(CallSelector, kw_only=True):
    """The times between successive calls, from the first on."""

    are: Annotated[tuple[Span, ...], Meta(min_length=1)]
    ended: Annotated[bool, Meta(description="from the end of a call to the next call")] = False


class Gap(Placed, kw_only=True, rename={"start": "from", "end": "to", "length": "is"}):
    """The time from one moment to another; negative when they are the other way round."""

    start: Moment
    end: Moment
    length: Annotated[Span, Meta(description=">=0s: in this order")]


class Requests(RequestSelector, kw_only=True):
    """So many requests came to the API server."""

    count: Counted | UnsetType = UNSET


class PodShown(Placed, kw_only=True, rename={"source": "from"}):
    """A pod as the kubelet or the API server shows it; a static pod at the API is its mirror."""

    name: PodName
    source: From = "kubelet"
    there: Annotated[bool, Meta(description="false: there is no such pod")] = True
    phase: Words | UnsetType = UNSET
    reason: Words | UnsetType = UNSET
    message: Words | UnsetType = UNSET
    conditions: (
        Annotated[
            dict[str, ConditionState],
            Meta(description="types with their status: {Ready: 'False'}; null: it is not there"),
        ]
        | UnsetType
    ) = UNSET
    ip: Annotated[bool, Meta(description="whether it has an address")] | UnsetType = UNSET
    terminating: (
        Annotated[bool, Meta(description="whether it has a deletionTimestamp")] | UnsetType
    ) = UNSET
    has: Annotated[Part, Meta(description="what is in the object")] | UnsetType = UNSET


class ContainerShown(Placed, kw_only=True, rename={"source": "from"}):
    """A container's status as the kubelet or the API server shows it."""

    pod: PodName
    name: str = "main"
    source: From = "kubelet"
    state: Literal["waiting", "running", "terminated", "none"] | UnsetType = UNSET
    reason: Annotated[Words, Meta(description="of its state")] | UnsetType = UNSET
    message: Annotated[Words, Meta(description="of its state")] | UnsetType = UNSET
    exit_code: Number | UnsetType = UNSET
    restarts: Number | UnsetType = UNSET
    ready: bool | UnsetType = UNSET
    started: bool | UnsetType = UNSET
    has: Annotated[Part, Meta(description="what is in its status")] | UnsetType = UNSET


class History(Placed, kw_only=True):
    """What a pod was shown as in `/pods`, one after the other: without a container its phases,
    with one its states: waiting(ContainerCreating), running, terminated(1)."""

    pod: PodName
    container: str | UnsetType = UNSET
    has: (
        Annotated[tuple[str, ...], Meta(description="in this order, * is any text")] | UnsetType
    ) = UNSET
    has_not: Annotated[tuple[str, ...], Meta(description="none of these")] | UnsetType = UNSET
    since: Since | UnsetType = UNSET

    at_least_one: ClassVar = ("has", "has_not")


class NodeShown(Placed, kw_only=True):
    """The Node at the API server."""

    conditions: (
        Annotated[
            dict[str, ConditionState],
            Meta(description="types with their status; null: it is not there"),
        ]
        | UnsetType
    ) = UNSET
    taints: Annotated[tuple[str, ...], Meta(description="keys that it has")] | UnsetType = UNSET
    no_taints: Annotated[tuple[str, ...], Meta(description="keys that it has not")] | UnsetType = (
        UNSET
    )
    has: Annotated[Part, Meta(description="what is in the object")] | UnsetType = UNSET

    at_least_one: ClassVar = ("conditions", "taints", "no_taints", "has")


class Events(Placed, kw_only=True):
    """So many events; one with a count stands for so many."""

    reason: Words
    pod: PodName | UnsetType = UNSET
    message: Words | UnsetType = UNSET
    type: Literal["Normal", "Warning"] | UnsetType = UNSET
    count: Counted | UnsetType = UNSET
    since: Since | UnsetType = UNSET


class Containers(Placed, kw_only=True):
    """So many containers in the runtime, whatever the kubelet shows."""

    pod: PodName | UnsetType = UNSET
    name: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    state: Literal["created", "running", "exited", "unknown"] | UnsetType = UNSET
    count: Counted | UnsetType = UNSET


class Sandboxes(Placed, kw_only=True):
    """So many sandboxes in the runtime."""

    pod: PodName | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    state: Literal["ready", "notready"] | UnsetType = UNSET
    count: Counted | UnsetType = UNSET


class Images(Placed, kw_only=True):
    """So many images in the runtime."""

    name: Words
    count: Counted | UnsetType = UNSET


class Files(Placed, kw_only=True):
    """So many files of the node. `{uid}` in the path is the UID of the pod `pod`, `{name}` its name
    as the runtime has it."""

    path: Annotated[str, Meta(description="below the directory `at`; * and ** as in a shell")]
    at: Annotated[
        Literal["root", "logs", "links", "manifests"],
        Meta(description="the kubelet's root, the pods' logs, the links to logs, the manifests"),
    ] = "root"
    pod: PodName | UnsetType = UNSET
    text: Annotated[Words, Meta(description="of the file")] | UnsetType = UNSET
    count: Counted | UnsetType = UNSET


class Cgroup(Placed, kw_only=True):
    """A cgroup; what cgroup v1 calls otherwise is asked for by the same words."""

    pod: Annotated[PodName, Meta(description="the cgroup of this pod")] | UnsetType = UNSET
    path: (
        Annotated[
            tuple[str, ...],
            Meta(description="its names below the kubelet's cgroupRoot: [kubepods, burstable]"),
        ]
        | UnsetType
    ) = UNSET
    there: bool = True
    cpu: Annotated[Number, Meta(description="weight with v2, shares with v1")] | UnsetType = UNSET
    cpu_quota_us: Annotated[Number, Meta(description="per period")] | UnsetType = UNSET
    memory_limit: Bytes | UnsetType = UNSET
    pids_limit: Number | UnsetType = UNSET
    cpus: Annotated[Text, Meta(description="of its cpuset: 0-2,7")] | UnsetType = UNSET

    exactly_one: ClassVar = ("pod", "path")


class Stats(Placed, kw_only=True):
    """The kubelet's /stats/summary."""

    has: Part


class Shutdown(Placed, kw_only=True):
    """The machine's shutdown."""

    held_up: Annotated[bool, Meta(description="whether the kubelet keeps it from going down")]


KINDS: Final = (
    *("calls", "order", "gaps", "gap", "requests", "pod", "container", "history", "node"),
    *("event", "containers", "sandboxes", "images", "files", "root", "cgroup", "stats"),
    *("shutdown", "answer", "device_calls", "login_runs", "csi_calls", "csi_driver"),
)


class Condition(Placed, kw_only=True):
    """Something that holds now, or does not."""

    calls: Calls | UnsetType = UNSET
    order: Order | UnsetType = UNSET
    gaps: Gaps | UnsetType = UNSET
    gap: Gap | UnsetType = UNSET
    requests: Requests | UnsetType = UNSET
    pod: PodShown | UnsetType = UNSET
    container: ContainerShown | UnsetType = UNSET
    history: History | UnsetType = UNSET
    node: NodeShown | UnsetType = UNSET
    event: Events | UnsetType = UNSET
    containers: Containers | UnsetType = UNSET
    sandboxes: Sandboxes | UnsetType = UNSET
    images: Images | UnsetType = UNSET
    files: Files | UnsetType = UNSET
    root: RootShown | UnsetType = UNSET
    cgroup: Cgroup | UnsetType = UNSET
    stats: Stats | UnsetType = UNSET
    shutdown: Shutdown | UnsetType = UNSET
    answer: AnswerShown | UnsetType = UNSET
    device_calls: DeviceCalls | UnsetType = UNSET
    login_runs: LoginRuns | UnsetType = UNSET
    csi_calls: CsiCalls | UnsetType = UNSET
    csi_driver: CsiDriverShown | UnsetType = UNSET

    exactly_one: ClassVar[tuple[str, ...]] = KINDS

    @property
    def kind(self) -> str:
        """Its word, one of `KINDS`; "" when it has none."""
        return next((name for name in KINDS if getattr(self, name) is not UNSET), "")

    @property
    def what(self) -> Any:
        """The struct behind its word."""
        return getattr(self, self.kind)


class Clause(Condition, kw_only=True):
    """A condition that holds, or with `never` one that does not."""

    never: Annotated[Condition, Meta(description="this does not hold")] | UnsetType = UNSET

    exactly_one: ClassVar[tuple[str, ...]] = (*KINDS, "never")


Several: TypeAlias = Annotated[tuple[Clause, ...], Meta(min_length=2)]


class Group(Clause, kw_only=True):
    """One of those in `any_of` or `all_of`, which may be several themselves."""

    any_of: Annotated[Several, Meta(description="one of these holds")] | UnsetType = UNSET
    all_of: Annotated[Several, Meta(description="all of these hold together")] | UnsetType = UNSET

    exactly_one: ClassVar = (*KINDS, "never", "any_of", "all_of")


Groups: TypeAlias = Annotated[tuple[Group, ...], Meta(min_length=2)]
Bug: TypeAlias = Annotated[
    bool,
    Meta(
        description="a kubelet with the bug fails here; where an entry says so, a failure of"
        " another one is not the known bug"
    ),
]


class Expectation(Clause, kw_only=True):
    """A condition, or several, and when it has to hold; the sentence that a failure prints."""

    any_of: Annotated[Groups, Meta(description="one of these holds")] | UnsetType = UNSET
    all_of: Annotated[Groups, Meta(description="all of these hold together")] | UnsetType = UNSET
    within: (
        Annotated[
            Seconds,
            Meta(
                description="it has to hold in this time at the latest; with `never`: what it"
                " speaks of has to be over by then"
            ),
        ]
        | UnsetType
    ) = UNSET
    during: Annotated[Seconds, Meta(description="and then goes on to hold for so long")] = 0.0
    says: Annotated[str, Meta(description="what is wrong when it does not hold")] = ""
    bug: Bug = False

    exactly_one: ClassVar = (*KINDS, "any_of", "all_of", "never")


class Monitor(Condition, kw_only=True):
    """A condition, or several at a time, that must not hold at any moment of the run."""

    all_of: Annotated[Groups, Meta(description="not all of these together")] | UnsetType = UNSET
    since: Annotated[Mark, Meta(description="looked at from this mark on")] | UnsetType = UNSET
    until: Annotated[Mark, Meta(description="looked at until this mark")] | UnsetType = UNSET
    says: Annotated[str, Meta(description="what is wrong when it holds")]
    bug: Bug = False

    exactly_one: ClassVar = (*KINDS, "all_of")
