"""Sandboxes and containers: the state tables and what is remembered of each object.

The states and their changes are CRI-050 and the model of docs/spec/cri.md. A container is started
at most once; EXITED and NOTREADY are final. Times are nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from criapi.v1 import api_pb2 as pb

from fakecri.behaviors.behavior import ExecContext, Replies
from fakecri.behaviors.matching import Subject
from fakecri.behaviors.plan import Plan
from fakecri.core.file_work import LogLine

if TYPE_CHECKING:
    from fakecri.core.container_cgroup import ContainerCgroup


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


@dataclass(slots=True)
class Sandbox:
    """One pod sandbox. `config` is the request's PodSandboxConfig, kept whole."""

    id: str
    config: pb.PodSandboxConfig
    runtime_handler: str
    created_at_ns: int
    ips: Sequence[str] = ()
    """The first is the one that counts, there is another one with two families."""
    ready: bool = True
    resources: pb.LinuxContainerResources | None = None  # of UpdatePodSandboxResources (CRI-122)
    overhead: pb.LinuxContainerResources | None = None
    containers: dict[str, Container] = field(default_factory=dict, repr=False, compare=False)
    row: tuple[bool, bytes] | None = None  # of ListPodSandbox, see messages.sandbox_row
    cgroup: ContainerCgroup | None = field(default=None, repr=False, compare=False)

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


@dataclass(slots=True)
class Container:
    """One container. `plan` is what this run does; it is fixed when the container starts."""

    id: str
    sandbox: Sandbox
    config: pb.ContainerConfig
    pod: pb.PodSandboxMetadata
    image_id: str
    image_ref: str
    created_at_ns: int
    log_path: str = ""
    state: State = State.CREATED
    started_at_ns: int = 0
    finished_at_ns: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    pid: int = 0
    plan: Plan = field(default_factory=Plan)
    planned: bool = False
    starting: bool = False  # a StartContainer is under way
    resources: pb.LinuxContainerResources = field(default_factory=pb.LinuxContainerResources)
    # The run's own clockwork: when it ends and why, and which lines are still to be written.
    end_due_ns: int | None = None
    end_code: int = 0
    end_reason: str = ""
    end_message: str = ""
    lines_written: int = 0
    stop_signal: str = "SIGTERM"
    stop_signalled: bool = False
    on_stop_signal: Callable[[], None] | None = None  # told when it gets the stop signal
    oom_killed: bool = False  # a process of it was: sticky (CRI-071)
    replies_given: dict[int, int] = field(default_factory=dict)
    log: list[LogLine] = field(default_factory=list)
    row: tuple[State, bytes] | None = None  # of ListContainers, see messages.container_row
    attributes: bytes = b""  # of its statistics, see messages.fill_container_stats
    cgroup: ContainerCgroup | None = None  # while it runs, if its pod has a cgroup
    files: object = field(default=None, repr=False, compare=False)  # see streaming.container_files
    image_uid: int = 0
    traps_stop: bool = False  # its program says itself what the stop signal does
    now_ns: Callable[[], int] = field(default=lambda: 0, repr=False, compare=False)

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
        given = self.replies_given.get(index, 0)
        self.replies_given[index] = given + 1
        return ExecContext(
            command=tuple(command),
            pod=str(self.pod.name),
            namespace=str(self.pod.namespace),
            container=self.name,
            attempt=self.attempt,
            age_s=self.age_s(now_ns),
            given_before=given,
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
