"""What containers do, as plain data: the words in which a test programs the fake.

Every behaviour is a frozen value with a constructor that reads like a sentence (`exits(1,
after_s=2)`), and travels to and from plain dicts, so that scenario and script files hold the same
things (`behavior_data`). Units: seconds after the start of the container, bytes, thousandths of a
CPU.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fakecri import stop_signals

if TYPE_CHECKING:
    from fakecri.streaming.commands import Program

FOREVER: Final = float("inf")
PROTOCOLS: Final = ("http", "https", "grpc", "tcp")
HEALTH: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
Curve: TypeAlias = tuple[tuple[float, int], ...]
"""A step function: (seconds after start, value), in rising order of time."""


class BehaviorError(ValueError):
    """A behaviour is not one the fake knows; the text names the field and what was wanted."""


@dataclass(frozen=True, slots=True)
class Exits:
    """Ends by itself."""

    code: int = 0
    after_s: float = 0.0
    reason: str = ""  # "": as the runtime names that code (CRI-070)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stops:
    """How it answers the stop signal: ends with `code`, `after_s` seconds after the signal.

    `code` None: as killed by the signal, 143 for SIGTERM.
    """

    code: int | None = None
    after_s: float = 0.0
    reason: str = ""  # "": as the runtime names that code (CRI-070)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Ignores:
    """Does not react to the stop signal, for `for_s` seconds after its start (default: ever)."""

    signal: str = "SIGTERM"
    for_s: float = FOREVER

    def __post_init__(self) -> None:
        try:
            stop_signals.normal(self.signal)
        except ValueError as error:
            raise BehaviorError(f"ignores.signal: {error}") from None


@dataclass(frozen=True, slots=True)
class Prints:
    """Writes one line to its log."""

    text: str
    at_s: float = 0.0
    stream: str = "stdout"

    def __post_init__(self) -> None:
        if self.stream not in ("stdout", "stderr"):
            raise BehaviorError(f"prints.stream: wanted stdout or stderr, got {self.stream!r}")


@dataclass(frozen=True, slots=True)
class Reply:
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
class Replies:
    """Answers exec of `command` (None: of every command) while `from_s` <= age < `until_s`.

    `answers` are given in turn, the last one repeats. `handler(context)` decides instead, where
    plain data does not reach; it may be async.
    """

    command: tuple[str, ...] | None = None
    answers: tuple[Reply, ...] = (Reply(),)
    from_s: float = 0.0
    until_s: float = FOREVER
    handler: ReplyHandler | None = None


@dataclass(frozen=True, slots=True)
class Serves:
    """Listens on a TCP port of its pod while `from_s` <= age < `until_s`.

    `protocol`: `http`, `https`, `grpc` (the health service) or `tcp` (takes the connection and ends
    it). An HTTP request for `path` (None: for every path) is answered with `status`, `location`
    (a redirect's) and `body`, a health check of `service` (None: of every one) with `health`, both
    after `delay_s`. Of several rules of a port the last one that fits answers; a path that none
    fits is 404, a service NOT_FOUND.
    """

    port: int
    protocol: str = "http"
    status: int = 200
    path: str | None = None
    location: str = ""
    body: str = ""
    service: str | None = None
    health: str = "SERVING"
    delay_s: float = 0.0
    from_s: float = 0.0
    until_s: float = FOREVER

    def __post_init__(self) -> None:
        wanted = {
            "port": (1 <= self.port <= 65535, "1 to 65535"),
            "status": (100 <= self.status <= 599, "100 to 599"),
            "protocol": (self.protocol in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}"),
            "health": (self.health in HEALTH, f"one of {', '.join(HEALTH)}"),
        }
        for name, (holds, what) in wanted.items():
            if not holds:
                raise BehaviorError(f"serves.{name}: wanted {what}, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Uses:
    """Resources it uses: constants or curves; 0 before the first point of a curve."""

    memory: Curve = ()
    cpu: Curve = ()
    disk: Curve = ()
    pids: int | Curve = 1


@dataclass(frozen=True, slots=True)
class StartFails:
    """StartContainer fails: exit code 128, reason StartError (CRI-056)."""

    message: str = "failed to create containerd task: exec: not found"


@dataclass(frozen=True, slots=True)
class StartHangs:
    """StartContainer takes `for_s` seconds; for ever: until its caller gives up, and then it has
    failed."""

    for_s: float = FOREVER


@dataclass(frozen=True, slots=True)
class ReadyAfter:
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
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class OomKillsChild:
    """The kernel kills a child process for memory: the container runs on, with reason OOMKilled
    from then on, whatever it ends with (CRI-071)."""

    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WritesTerminationMessage:
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
    "runs": Runs,
    "writes_termination_message": WritesTerminationMessage,
}


def exits(code: int = 0, *, after_s: float = 0.0, reason: str = "", message: str = "") -> Exits:
    """The container ends by itself with `code`, `after_s` seconds after its start."""
    return Exits(code, after_s, reason, message)


def stops(
    code: int | None = None, *, after_s: float = 0.0, reason: str = "", message: str = ""
) -> Stops:
    """On the stop signal the container ends with `code` (None: as killed by the signal, 143 for
    SIGTERM), after `after_s` seconds."""
    return Stops(code, after_s, reason, message)


def ignores(signal: str = "SIGTERM", *, for_s: float = FOREVER) -> Ignores:
    """The container does not react to the stop signal (for its first `for_s` seconds)."""
    return Ignores(signal, for_s)


def prints(text: str, *, at_s: float = 0.0, stream: str = "stdout") -> Prints:
    """The container writes a line to `stream` (stdout or stderr), `at_s` after its start."""
    return Prints(text, at_s, stream)


def replies(
    command: Sequence[str] | str | None = None,
    exit_code: int = 0,
    stdout: str = "",
    stderr: str = "",
    *,
    delay_s: float = 0.0,
    answers: Sequence[Reply] = (),
    from_s: float = 0.0,
    until_s: float = FOREVER,
    handler: ReplyHandler | None = None,
) -> Replies:
    """The container answers exec of `command` (a list, or words in one string; None: of all).

    `handler(context: ExecContext)` gives a Reply or an exit code, and may be async.
    """
    given = tuple(answers) or (Reply(exit_code, stdout, stderr, delay_s),)
    return Replies(_words(command), given, from_s, until_s, handler)


def serves(
    port: int,
    protocol: str = "http",
    status: int = 200,
    *,
    path: str | None = None,
    location: str = "",
    body: str = "",
    service: str | None = None,
    health: str = "SERVING",
    delay_s: float = 0.0,
    from_s: float = 0.0,
    until_s: float = FOREVER,
) -> Serves:
    """The container listens on a port of its pod: see `Serves`."""
    return Serves(
        port,
        protocol,
        status,
        path,
        location,
        body,
        service,
        health,
        delay_s,
        from_s,
        until_s,
    )


def uses(
    *,
    memory_bytes: int | Sequence[tuple[float, int]] = (),
    cpu_millicores: int | Sequence[tuple[float, int]] = (),
    disk_bytes: int | Sequence[tuple[float, int]] = (),
    pids: int | Sequence[tuple[float, int]] = 1,
) -> Uses:
    """The container uses this much: a constant, or a curve of (seconds after start, value).

    A container whose memory exceeds its limit is killed for it (OOMKilled, 137).
    """
    processes = pids if isinstance(pids, int) else curve(pids)
    return Uses(curve(memory_bytes), curve(cpu_millicores), curve(disk_bytes), processes)


def start_fails(message: str = StartFails().message) -> StartFails:
    """StartContainer fails with this text."""
    return StartFails(message)


def start_hangs(for_s: float = FOREVER) -> StartHangs:
    """StartContainer takes `for_s` seconds (default: until the caller gives up)."""
    return StartHangs(for_s)


def ready_after(after_s: float, command: Sequence[str] | str | None = None) -> ReadyAfter:
    """Exec of `command` (default: of every command) fails with 1 until then; what it answers later
    is what it would answer without this."""
    return ReadyAfter(after_s, _words(command))


def runs(what: Sequence[str] | str | Program | None = None) -> Runs:
    """The container's main process is run by the fake: its own command, another one, or a Python
    `program(Invocation) -> exit code`, which may be async. SIGTERM ends it as any container; with
    `ignores()` a program can wait for `run.stop` and end by itself."""
    return Runs(program=what) if callable(what) else Runs(_words(what))


def oom_kills_child(*, at_s: float = 0.0) -> OomKillsChild:
    """The kernel kills a child process of the container for memory, `at_s` after the start."""
    return OomKillsChild(at_s)


def writes_termination_message(text: str) -> WritesTerminationMessage:
    """The container leaves `text` as its termination message."""
    return WritesTerminationMessage(text)


def _words(command: Sequence[str] | str | None) -> tuple[str, ...] | None:
    return tuple(command.split() if isinstance(command, str) else command or ()) or None


def curve(value: int | Sequence[tuple[float, int]]) -> Curve:
    """A constant, or points in any order, as a curve."""
    if isinstance(value, int):
        return ((0.0, value),)
    return tuple(sorted((float(at_s), int(amount)) for at_s, amount in value))


def at(curve: Curve, age_s: float) -> int:
    """The value of a curve `age_s` seconds after the start.

    >>> at(((0.0, 1), (5.0, 7)), 4.9), at(((0.0, 1), (5.0, 7)), 5.0)
    (1, 7)
    """
    value = 0
    for at_s, amount in curve:
        if at_s > age_s:
            break
        value = amount
    return value
