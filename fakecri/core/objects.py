"""Sandboxes and containers: the state tables and what is remembered of each object.

The states and their changes are CRI-050 and the model of docs/spec/cri.md. A container is started
at most once; EXITED and NOTREADY are final. Times are nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri import late
from fakecri.behaviors.behavior import ExecContext, Replies
from fakecri.behaviors.matching import Subject
from fakecri.behaviors.plan import Plan
from fakecri.core.file_work import LogLine
from fakecri.core.image_store.images import Image
from fakecri.invocations.accounts import Accounts


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
    cgroup: late.container_cgroup.ContainerCgroup | None = field(
        default=None, repr=False, compare=False
    )
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
    image_id: str
    """Of the image it was created from."""
    image_ref: str
    """The first digest of that image, else its id."""
    created_at_ns: int
    """Nanoseconds since 1970."""
    log_path: str = ""
    """"": it has no log."""
    state: State = State.CREATED
    """Changed by `Core.change` alone."""
    started_at_ns: int = 0
    """Nanoseconds since 1970; 0: not started."""
    finished_at_ns: int = 0
    """Nanoseconds since 1970; 0: not ended."""
    exit_code: int = 0
    """Once it has ended."""
    reason: str = ""
    """Once it has ended; "": follows from the exit code (CRI-070)."""
    message: str = ""
    """Once it has ended: what a failed start or a behaviour says."""
    pid: int = 0
    """Of the main process; 0: not started."""
    plan: Plan = field(default_factory=Plan)
    """What this run does; fixed when the container starts."""
    planned: bool = False
    """Whether `plan` is fixed."""
    starting: bool = False
    """A StartContainer is under way."""
    resources: pb.LinuxContainerResources = field(default_factory=pb.LinuxContainerResources)
    """Its limits: of the create request, then of every UpdateContainerResources."""
    # The run's own clockwork: when it ends and why, and which lines are still to be written.
    end_due_ns: int | None = None
    """When it ends by itself or by a signal; None: not planned."""
    end_code: int = 0
    """The exit code of that end."""
    end_reason: str = ""
    """The reason of that end."""
    end_message: str = ""
    """The message of that end."""
    lines_written: int = 0
    """How many of the plan's `prints` are in the log."""
    stop_signal: str = "SIGTERM"
    """Its own, else its image's, else SIGTERM."""
    stop_signalled: bool = False
    """It has got that signal."""
    on_stop_signal: Callable[[], None] | None = None
    """Called when it gets the stop signal: set by the program that it runs."""
    oom_killed: bool = False
    """A process of it was killed for memory; stays so (CRI-071)."""
    replies_given: dict[int, int] = field(default_factory=dict)
    """How often each of the plan's `replies` has answered, by its index."""
    log: list[LogLine] = field(default_factory=list)
    """What it has written."""
    row: tuple[State, bytes] | None = None
    """Its row of ListContainers, and for which state it was made: see `messages.container_row`."""
    attributes: bytes = b""
    """The part of its statistics that stays the same: see `messages.fill_container_stats`."""
    cgroup: late.container_cgroup.ContainerCgroup | None = None
    """While it runs, if its pod has a cgroup."""
    files: object = field(default=None, repr=False, compare=False)
    """Its files, once they are asked for: see `programs.environment.files_of`."""
    image_volumes: Mapping[str, Image] = field(default_factory=dict, repr=False)
    """The images that are mounted, by place."""
    host_mounts: bool = False
    """Mounts of host paths show the files of this machine."""
    accounts: Accounts = field(default_factory=Accounts, repr=False)
    """The users and groups of its image."""
    table: object = field(default=None, repr=False, compare=False)
    """Its processes, once they are asked for: see `programs.environment.table_of`."""
    image_uid: int = 0
    """The user of its image; 0: not said."""
    traps_stop: bool = False
    """Its program says itself what the stop signal does."""
    now_ns: Callable[[], int] = field(default=lambda: 0, repr=False, compare=False)
    """The core's time, for its programs."""

    def __repr__(self) -> str:
        end = f" {self.exit_code} {self.reason}".rstrip() if self.state is State.EXITED else ""
        identity = f"{_shown(self.pod)}/{self.name}/{self.config.metadata.attempt}"
        return f"<Container {identity} {self.state.name}{end} {self.id[:13]}>"

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

    def reply_rule(self, command: Sequence[str], age_s: float) -> Replies | None:
        """What answers `command` at that age; None: nothing that was programmed."""
        return self.plan.reply_rule(command, age_s)

    def exec_context(
        self, rule: Replies, command: Sequence[str], now_ns: int, limit_s: float | None
    ) -> ExecContext:
        """What `rule` is asked now; it counts as one more answer given."""
        index = self.plan.replies.index(rule)
        index_count = self.replies_given.get(index, 0)
        self.replies_given[index] = index_count + 1
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
        if not self.started_at_ns:
            return 0.0
        return max(0, min(now_ns, self.finished_at_ns or now_ns) - self.started_at_ns) / 1e9

    def memory_now(self, age_s: float) -> tuple[int, int]:
        """Memory and page cache, bytes: what is charged, or what its plan says."""
        memory = self.cgroup.memory if self.cgroup is not None else None
        if memory is not None:
            return memory.anon_bytes, memory.file_bytes
        return self.plan.memory_bytes(age_s), self.plan.cache_bytes(age_s)

    def pids_now(self, age_s: float) -> int:
        """Processes: what there is, or what its plan says."""
        return self.cgroup.pids if self.cgroup is not None else self.plan.pids(age_s)


def _shown(pod: pb.PodSandboxMetadata) -> str:
    """`namespace/name`, the name alone where there is no namespace."""
    return f"{pod.namespace}/{pod.name}".lstrip("/")
