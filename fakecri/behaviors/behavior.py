"""What containers do, as plain data.

Every behaviour is a frozen value with a constructor that reads like a sentence (`words`: `exits(1,
after_s=2)`), and travels to and from plain dicts, so that scenario and script files hold the same
things (`behavior_data`). Units: seconds after the start of the container, bytes, thousandths of a
CPU.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeAlias

from fakecri import fakesh
from fakecri.behaviors import stop_signals
from fakecri.behaviors.checked import BehaviorError, Checked
from fakecri.behaviors.curves import Curve

FOREVER: Final = float("inf")
PROTOCOLS: Final = ("http", "https", "grpc", "tcp")
HEALTH: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")


@dataclass(frozen=True, slots=True)
class Exits(Checked):
    """Ends by itself."""

    code: int = 0
    after_s: float = 0.0
    reason: str = ""  # "": as the runtime names that code (CRI-070)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stops(Checked):
    """How it answers the stop signal: ends with `code`, `after_s` seconds after the signal.

    `code` None: as killed by the signal, 143 for SIGTERM.
    """

    code: int | None = None
    after_s: float = 0.0
    reason: str = ""  # "": as the runtime names that code (CRI-070)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Ignores(Checked):
    """Does not react to the stop signal, for `for_s` seconds after its start (default: ever)."""

    signal: str = "SIGTERM"
    for_s: float = FOREVER

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        try:
            stop_signals.normal(self.signal)
        except ValueError as error:
            raise BehaviorError(f"ignores.signal: {error}") from None


@dataclass(frozen=True, slots=True)
class Prints(Checked):
    """Writes one line to its log."""

    text: str
    at_s: float = 0.0
    stream: str = "stdout"

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.stream not in ("stdout", "stderr"):
            raise BehaviorError(f"prints.stream: wanted stdout or stderr, got {self.stream!r}")


@dataclass(frozen=True, slots=True)
class Reply(Checked):
    """One answer of ExecSync."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ExecContext:
    """What a handler of `replies` is told of one exec. Times are seconds, `age_s` since the start
    of the container; `given_before`: answers of this rule to this container; `limit_s`: the time
    limit of the exec, None for none."""

    command: tuple[str, ...]
    pod: str = ""
    namespace: str = ""
    container: str = ""
    attempt: int = 0
    age_s: float = 0.0
    given_before: int = 0
    limit_s: float | None = None


Answer: TypeAlias = "Reply | int"
"""What a handler gives: a reply, or the exit code alone."""
ReplyHandler: TypeAlias = Callable[[ExecContext], "Answer | Awaitable[Answer]"]


@dataclass(frozen=True, slots=True)
class Replies(Checked):
    """Answers exec of `command` (None: of every command) while `from_s` <= age < `until_s`.

    `answers` are given in turn, the last one repeats. `handler(context)` decides instead, where
    plain data does not reach; it may be async.
    """

    command: tuple[str, ...] | None = None
    answers: tuple[Reply, ...] = (Reply(),)
    from_s: float = 0.0
    until_s: float = FOREVER
    handler: ReplyHandler | None = None

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not self.answers or not all(isinstance(answer, Reply) for answer in self.answers):
            raise BehaviorError(f"replies.answers: wanted Reply(...) values, got {self.answers!r}")
        if self.handler is not None and not callable(self.handler):
            raise BehaviorError(f"replies.handler: wanted a function, got {self.handler!r}")


@dataclass(frozen=True, slots=True)
class Serves(Checked):
    """Listens on a TCP port of its pod while `from_s` <= age < `until_s`, and answers probes there.

    Of several rules for a port the last one that fits answers. A path for which there is no rule is
    404, a service without one NOT_FOUND.
    """

    port: int
    """1 to 65535."""
    protocol: str = "http"
    """`http`, `https`, `grpc` (the health service) or `tcp` (takes the connection and ends it)."""
    status: int = 200
    """The HTTP status, 100 to 599."""
    _: KW_ONLY
    path: str | None = None
    """The path that is answered; None: every path."""
    location: str = ""
    """The Location header of a redirect; `{ip}` is the pod's address. "": none."""
    body: str = ""
    """The body of the HTTP answer."""
    lost_bytes: int = 0
    """So many bytes more of the body are announced, but the connection ends before them."""
    service: str | None = None
    """grpc: the service whose health is told; None: of every service."""
    health: str = "SERVING"
    """grpc: the status of that service, one of `HEALTH`."""
    delay_s: float = 0.0
    """Seconds from the request to the answer."""
    from_s: float = 0.0
    """It listens from this age of the container on, in seconds."""
    until_s: float = FOREVER
    """It listens up to this age of the container, in seconds; by default as long as it runs."""

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        wanted = {
            "port": (1 <= self.port <= 65535, "1 to 65535"),
            "lost_bytes": (self.lost_bytes >= 0, "0 or more"),
            "status": (100 <= self.status <= 599, "100 to 599"),
            "protocol": (self.protocol in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}"),
            "health": (self.health in HEALTH, f"one of {', '.join(HEALTH)}"),
        }
        for name, (holds, what) in wanted.items():
            if not holds:
                raise BehaviorError(f"serves.{name}: wanted {what}, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Uses:
    """Resources it uses: constants or curves; 0 before the first point of a curve.

    `memory`: of its main process. `cache`: clean page cache, which is no part of the working set.
    `disk`, `inodes`: of the writable layer. `pids`: processes, the main one among them.
    """

    memory: Curve = ()
    cpu: Curve = ()
    disk: Curve = ()
    pids: Curve = ((0.0, 1),)
    cache: Curve = ()
    inodes: Curve = ()

    @property
    def moments_s(self) -> list[float]:
        """When memory or the number of processes changes."""
        return sorted({at_s for curve in (self.memory, self.pids, self.cache) for at_s, _ in curve})


@dataclass(frozen=True, slots=True)
class StartFails(Checked):
    """StartContainer fails: exit code 128, reason StartError (CRI-056)."""

    message: str = "failed to create containerd task: exec: not found"


@dataclass(frozen=True, slots=True)
class StartHangs(Checked):
    """StartContainer takes `for_s` seconds; for ever: until its caller gives up, and then it has
    failed."""

    for_s: float = FOREVER


@dataclass(frozen=True, slots=True)
class ReadyAfter(Checked):
    """Exec of `command` (None: of every one) fails with 1 for the first `after_s` seconds."""

    after_s: float = 0.0
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Runs:
    """Its main process is one of the programs that exec reaches, the small `sh` among them.

    It runs `command` (default: the command and arguments of the container), writes to the log and
    ends with its exit code. `program(Invocation)` is run instead, where plain data does not reach.
    """

    command: tuple[str, ...] | None = None
    program: fakesh.Program | None = None


@dataclass(frozen=True, slots=True)
class OomKillsChild(Checked):
    """The kernel kills a child process for memory: the container runs on, with reason OOMKilled
    from then on, whatever it ends with (CRI-071)."""

    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OomAt(Checked):
    """Wants more memory than it may have, at that time. In a cgroup the kernel kills the process
    that has most below the nearest limit, or, without any, this one for the whole machine."""

    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WritesTerminationMessage(Checked):
    """Writes its termination message file just before it ends."""

    text: str


Behavior: TypeAlias = (
    Exits
    | Stops
    | Ignores
    | Prints
    | Replies
    | Serves
    | Uses
    | StartFails
    | StartHangs
    | ReadyAfter
    | Runs
    | OomKillsChild
    | OomAt
    | WritesTerminationMessage
)

KINDS: Final[Mapping[str, type[Any]]] = {
    "exits": Exits,
    "stops": Stops,
    "ignores": Ignores,
    "start_fails": StartFails,
    "start_hangs": StartHangs,
    "prints": Prints,
    "ready_after": ReadyAfter,
    "replies": Replies,
    "serves": Serves,
    "uses": Uses,
    "oom_kills_child": OomKillsChild,
    "oom_at": OomAt,
    "runs": Runs,
    "writes_termination_message": WritesTerminationMessage,
}
