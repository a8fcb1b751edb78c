"""What control requests are answered with, as types. Instants are RFC 3339 with nanoseconds, None
for what has not happened."""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict, get_type_hints

from fakecri.core.objects import Container, Sandbox
from fakecri.fake import FakeCRI
from fakecri.machine.values import Victim

Instant = str | None


class RunRow(TypedDict):
    """How a container runs, or ran. `exit_code` means something only after its end."""

    state: str
    created_at: Instant
    started_at: Instant
    finished_at: Instant
    exit_code: int
    reason: str
    message: str


class ContainerRow(RunRow):
    """One container. `exit_code` means something only after its end."""

    id: str
    sandbox_id: str
    pod: str
    namespace: str
    uid: str
    name: str
    attempt: int
    image: str
    log_path: str


class SandboxRow(TypedDict):
    """One sandbox."""

    id: str
    pod: str
    namespace: str
    uid: str
    attempt: int
    state: Literal["READY", "NOTREADY"]
    created_at: Instant
    ip: str
    ips: list[str]


class ImageRow(TypedDict):
    """One image."""

    id: str
    tags: list[str]
    size_bytes: int


class FilesystemRow(TypedDict):
    """One filesystem."""

    capacity_bytes: int
    base_used_bytes: int
    available_bytes: int
    inodes: int
    base_used_inodes: int


class NodeRow(TypedDict):
    """The machine: its size, what others than the containers use of it, and what is left."""

    cpus: int
    boot_id: str
    memory_bytes: int
    base_memory_used_bytes: int
    memory_working_set_bytes: int
    swap_total_bytes: int
    pid_limit: int
    base_pids: int
    pids: int
    image_root: str
    container_root: str
    filesystems: dict[str, FilesystemRow]


class RuleRow(TypedDict):
    """One rule. `left`: how often it can still act; None: it does not run out."""

    id: int
    what: str
    hits: int
    left: int | None
    active: bool


class CallError(TypedDict):
    """How a call failed: the name of the gRPC code, and the text."""

    code: str
    message: str


class CallRow(TypedDict):
    """One call. Times are seconds since the fake was made; `t_end` of one that still runs is None.
    It has an `error`, a `response`, or the number of `messages` of a stream."""

    seq: int
    t_start: float
    t_end: float | None
    method: str
    deadline_s: float | None
    request: dict[str, Any]
    disturbed: NotRequired[bool]
    error: NotRequired[CallError]
    response: NotRequired[dict[str, Any]]
    messages: NotRequired[int]
    pod: str
    container: str
    attempt: int | None


class ClockRow(TypedDict):
    """What time it is. A `manual` clock stands still until it is advanced."""

    mode: Literal["real", "manual"]
    now: str
    since_start_s: float


class RuntimeRow(TypedDict):
    """Whether the runtime answers, and whether its pods have a network."""

    up: bool
    network: bool


class CallCounts(TypedDict):
    """How many calls came, and how many of them are on record."""

    seen: int
    kept: int
    by_method: dict[str, int]


class World(TypedDict, total=False):
    """What there is in a fake."""

    runtime: RuntimeRow
    node: NodeRow
    sandboxes: list[SandboxRow]
    containers: list[ContainerRow]
    images: list[ImageRow]


class State(World):
    """Everything there is. A proxy has no runtime, node, sandboxes, containers and images."""

    kind: Literal["fake", "proxy"]
    clock: ClockRow
    rules: list[RuleRow]
    calls: CallCounts


class Count(TypedDict):
    """How many."""

    count: int


class Removed(TypedDict):
    """How many there are no more."""

    removed: int


class Ok(TypedDict):
    """It is so."""

    ok: bool


class Done(TypedDict):
    """What was done."""

    done: str


class Killed(TypedDict):
    """The process that was killed."""

    killed: str
    pid: int


_SHOWN_AS: Final[dict[Any, Any]] = {
    Container: ContainerRow,
    Sandbox: SandboxRow,
    Victim: Killed,
    type(None): Done,
}


def of_action(verb: str) -> Any:
    """What an action is answered with, by what the method of its name returns."""
    return _SHOWN_AS[get_type_hints(getattr(FakeCRI, verb))["return"]]
