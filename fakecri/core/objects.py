"""Sandboxes and containers: the state tables and what is remembered of each object.

The states and their changes are CRI-050 and the model of docs/spec/cri.md. A container is started
at most once; EXITED and NOTREADY are final. Times are nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from kubecri.v1 import api_pb2 as pb

from fakecri.behaviors.matching import Subject
from fakecri.behaviors.plan import NO_PLAN, Plan
from fakecri.core import cgroups
from fakecri.core.file_work import LogLine
from fakecri.core.image_store.images import Image
from fakecri.process.accounts import Accounts
from fakecri.words import behaviors as words
from fakecri.words.behaviors import ExecContext


class State(Enum):
    """Container states; the values are those of the wire."""

    CREATED = pb.CONTAINER_CREATED
    RUNNING = pb.CONTAINER_RUNNING
    EXITED = pb.CONTAINER_EXITED
    UNKNOWN = pb.CONTAINER_UNKNOWN


class Input(Enum):
    """What can happen to a container."""

    START = "start"
    FAIL_TO_START = "fail to start"
    EXIT = "exit"
    LOSE = "lose"


# Pairs that are not listed are errors of the fake itself.
TRANSITIONS: Final = {
    (State.CREATED, Input.START): State.RUNNING,  # CRI-055
    (State.CREATED, Input.FAIL_TO_START): State.EXITED,  # CRI-056
    (State.RUNNING, Input.EXIT): State.EXITED,  # CRI-070
    (State.RUNNING, Input.LOSE): State.UNKNOWN,  # CRI-162
    (State.UNKNOWN, Input.EXIT): State.EXITED,  # CRI-162
}


@dataclass(slots=True, eq=False)
class Sandbox:
    """One pod sandbox."""

    id: str
    """Hexadecimal, made by the core."""
    config: pb.PodSandboxConfig
    """Of the RunPodSandbox request, kept whole."""
    runtime_handler: str
    """As asked for; "": the default one."""
    created_at_ns: int
    """Nanoseconds since 1970."""
    ips: Sequence[str] = ()
    """Its addresses: none on the host's network or after a stop, one, or one of each family. The
    first is the one that Status tells."""
    ready: bool = True
    """READY, or NOTREADY for ever."""
    resources: pb.LinuxContainerResources | None = None
    """Of the last UpdatePodSandboxResources (CRI-122); None: there was none."""
    overhead: pb.LinuxContainerResources | None = None
    """Likewise."""
    containers: dict[str, Container] = field(default_factory=dict, repr=False, compare=False)
    """By id, oldest first; kept by `containers.py`."""
    row: tuple[bool, bytes] | None = None
    """Its row of ListPodSandbox, and for which `ready` it was made: see `messages.sandbox_row`."""
    status: tuple[tuple[object, ...], bytes] | None = field(default=None, repr=False)
    """Likewise of PodSandboxStatus: see `messages.sandbox_status`."""
    cgroup: cgroups.ContainerCgroup | None = field(default=None, repr=False, compare=False)
    """Of its pause process, while it is ready and if its pod has a cgroup."""

    def __repr__(self) -> str:
        state = "READY" if self.ready else "NOTREADY"
        return f"<Sandbox {_shown(self.config.metadata)} {state} {self.id[:13]}>"

    @property
    def ip(self) -> str:
        """Its address; "": it has none."""
        return self.ips[0] if self.ips else ""

    @property
    def subject(self) -> Subject:
        """What rules match it by."""
        meta = self.config.metadata
        return Subject(meta.name, meta.namespace, meta.uid, attempt=meta.attempt)

    @property
    def on_host_network(self) -> bool:
        return self.config.linux.security_context.namespace_options.network == pb.NODE


class ImageUse(NamedTuple):
    """The image that a container was created from, as it was then."""

    id: str
    ref: str
    """Its first digest, else its id."""
    accounts: Accounts
    """Its users and groups."""
    uid: int = 0
    """Its user; 0: not said."""
    volumes: Mapping[str, Image] = MappingProxyType({})
    """The images that are mounted beside it, by place."""


@dataclass(slots=True, eq=False)
class Output:
    """What a container has written."""

    path: str = ""
    """"": it has no log file."""
    lines: list[LogLine] = field(default_factory=list)
    written: int = 0
    """How many of the plan's `prints` are in it."""


class PlannedEnd(NamedTuple):
    """When a run ends by itself or by a signal, and how."""

    due_ns: int | None = None
    """None: not planned."""
    code: int = 0
    reason: str = ""
    message: str = ""


NOT_PLANNED: Final = PlannedEnd()


@dataclass(slots=True, eq=False)
class Stop:
    """The signal by which a container is stopped."""

    signal: str = "SIGTERM"
    """The container's own, else its image's, else SIGTERM."""
    sent: bool = False
    """The container has got it."""
    heard: Callable[[], None] | None = None
    """Called when the container gets it: set by the program that it runs."""
    trapped: bool = False
    """The program says itself what the signal does."""


class Outcome(NamedTuple):
    """How a container has ended."""

    finished_at_ns: int = 0
    """Nanoseconds since 1970; 0: it has not."""
    exit_code: int = 0
    reason: str = ""
    """"": follows from the exit code (CRI-070)."""
    message: str = ""
    """What a failed start or a behaviour says."""


NOT_ENDED: Final = Outcome()


@dataclass(slots=True, eq=False)
class Inside:
    """What the programs of a container have."""

    host_mounts: bool
    """Mounts of host paths show the files of this machine."""
    now_ns: Callable[[], int]
    """The core's time."""
    files: object = None
    """Its files, once they are asked for: see `programs.environment.files_of`."""
    table: object = None
    """Its processes, once they are asked for: see `programs.environment.table_of`."""


@dataclass(slots=True, eq=False)
class Shown:
    """The parts of answers that are made once."""

    row: tuple[State, bytes] | None = None
    """Of ListContainers, and for which state it was made: see `messages.container_row`."""
    status: tuple[tuple[object, ...], bytes] | None = None
    """Of ContainerStatus, and for which state of things it was made: see
    `messages.container_status`."""
    attributes: bytes = b""
    """Of statistics: see `messages.fill_container_stats`."""


@dataclass(slots=True, eq=False)
class Run:
    """What the start of a container has made of it."""

    plan: Plan = NO_PLAN
    """What it does; fixed when the container starts."""
    planned: bool = False
    """Whether `plan` is fixed."""
    starting: bool = False
    """A StartContainer is under way."""
    started_at_ns: int = 0
    """Nanoseconds since 1970; 0: not started."""
    pid: int = 0
    """Of the main process; 0: not started."""
    cgroup: cgroups.ContainerCgroup | None = None
    """While it runs, if its pod has a cgroup."""
    oom_killed: bool = False
    """A process of it was killed for memory; stays so (CRI-071)."""
    replies_given: dict[int, int] = field(default_factory=dict)
    """How often each of the plan's `replies` has answered, by its index."""


@dataclass(slots=True, eq=False)
class Container:
    """One container, and what its run has come to. Kept by `containers.py` and `running.py`."""

    id: str
    """Hexadecimal, made by the core."""
    sandbox: Sandbox
    """The one it was created in."""
    config: pb.ContainerConfig
    """Of the CreateContainer request; image volumes have got their `image_ref`."""
    pod: pb.PodSandboxMetadata
    """The metadata of its pod, as the CreateContainer request has it."""
    image: ImageUse
    created_at_ns: int
    """Nanoseconds since 1970."""
    inside: Inside
    output: Output = field(default_factory=Output)
    state: State = State.CREATED
    """Changed by `Core.change` alone."""
    resources: pb.LinuxContainerResources = field(default_factory=pb.LinuxContainerResources)
    """Its limits: of the create request, then of every UpdateContainerResources."""
    stop: Stop = field(default_factory=Stop)
    run: Run = field(default_factory=Run)
    end: PlannedEnd = NOT_PLANNED
    outcome: Outcome = NOT_ENDED
    shown: Shown = field(default_factory=Shown)

    def __repr__(self) -> str:
        end = (
            f" {self.outcome.exit_code} {self.outcome.reason}".rstrip()
            if self.state is State.EXITED
            else ""
        )
        identity = f"{_shown(self.pod)}/{self.name}/{self.config.metadata.attempt}"
        return f"<Container {identity} {self.state.name}{end} {self.id[:13]}>"

    # What tests look at; the code beside it looks into the records.

    @property
    def image_id(self) -> str:
        """Of the image it was created from."""
        return self.image.id

    @property
    def image_ref(self) -> str:
        """The first digest of that image, else its id."""
        return self.image.ref

    @property
    def pid(self) -> int:
        """Of the main process; 0: not started."""
        return self.run.pid

    @property
    def started_at_ns(self) -> int:
        """Nanoseconds since 1970; 0: not started."""
        return self.run.started_at_ns

    @property
    def finished_at_ns(self) -> int:
        """Nanoseconds since 1970; 0: not ended."""
        return self.outcome.finished_at_ns

    @property
    def exit_code(self) -> int:
        """Once it has ended."""
        return self.outcome.exit_code

    @property
    def reason(self) -> str:
        """Once it has ended."""
        return self.outcome.reason

    @property
    def message(self) -> str:
        """Once it has ended: what a failed start or a behaviour says."""
        return self.outcome.message

    @property
    def oom_killed(self) -> bool:
        """A process of it was killed for memory (CRI-071)."""
        return self.run.oom_killed

    @property
    def log(self) -> list[LogLine]:
        """What it has written."""
        return self.output.lines

    @property
    def log_path(self) -> str:
        """Of its log file; "": it has none."""
        return self.output.path

    def change(self, what: Input) -> None:
        """Take the transition of the table; `Core.change` is how. Raises KeyError for a pair that
        is not in it."""
        self.state = TRANSITIONS[(self.state, what)]

    @property
    def name(self) -> str:
        return str(self.config.metadata.name)

    @property
    def subject(self) -> Subject:
        """What rules match it by."""
        pod, spec = self.pod, self.config.image
        image = spec.user_specified_image or spec.image
        return Subject(
            pod=pod.name,
            namespace=pod.namespace,
            uid=pod.uid,
            container=self.name,
            image=image,
            attempt=self.attempt,
        )

    @property
    def program(self) -> str:
        """What its main process is called."""
        command = [*self.config.command, *self.config.args, self.name]
        return str(command[0]).rpartition("/")[2]

    @property
    def attempt(self) -> int:
        return int(self.config.metadata.attempt)

    def reply_rule(self, command: Sequence[str], age_s: float) -> words.replies | None:
        """What answers `command` at that age; None: nothing that was programmed."""
        return self.run.plan.reply_rule(command, age_s)

    def exec_context(
        self, rule: words.replies, command: Sequence[str], now_ns: int, limit_s: float | None
    ) -> ExecContext:
        """What `rule` is asked now; it counts as one more answer given."""
        index = self.run.plan.replies.index(rule)
        index_count = self.run.replies_given.get(index, 0)
        self.run.replies_given[index] = index_count + 1
        return ExecContext(
            command=tuple(command),
            pod=str(self.pod.name),
            namespace=str(self.pod.namespace),
            container=self.name,
            attempt=self.attempt,
            age_s=self.age_s(now_ns),
            given_before=index_count,
            limit_s=limit_s,
        )

    def age_s(self, now_ns: int) -> float:
        """Seconds since its start, up to its end; 0 before it."""
        if not self.run.started_at_ns:
            return 0.0
        return (
            max(0, min(now_ns, self.outcome.finished_at_ns or now_ns) - self.run.started_at_ns)
            / 1e9
        )

    def memory_now(self, age_s: float) -> tuple[int, int]:
        """Memory and page cache, bytes: what is charged, or what its plan says."""
        memory = self.run.cgroup.memory if self.run.cgroup is not None else None
        if memory is not None:
            return memory.anon_bytes, memory.file_bytes
        return self.run.plan.memory_bytes(age_s), self.run.plan.cache_bytes(age_s)

    def pids_now(self, age_s: float) -> int:
        """Processes: what there is, or what its plan says."""
        return self.run.cgroup.pids if self.run.cgroup is not None else self.run.plan.pids(age_s)


def _shown(pod: pb.PodSandboxMetadata) -> str:
    """`namespace/name`, the name alone where there is no namespace."""
    return f"{pod.namespace}/{pod.name}".lstrip("/")
