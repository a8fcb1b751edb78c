"""What containers do: the words of `cri.behaves(exits(1), prints("hello"))`.

Units: seconds after the start of the container, bytes, thousandths of a CPU. What a word does is
in `fakecri.behaviors.plan`, which makes the plan of a run of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from fakecri import fakesh
from fakecri.words import stop_signals
from fakecri.words.curves import Curve, curve
from fakecri.words.kinds import (
    Command,
    ExitCode,
    Kind,
    Seconds,
    Text,
    code,
    is_a,
    one_of,
    whole,
    words_of,
)
from fakecri.words.word import Word, spoken

if TYPE_CHECKING:
    from fakecri.words.kinds import Turned

FOREVER: Final = float("inf")
Signal: TypeAlias = Annotated[str, Kind(str, (is_a(str, "a text"),), stop_signals.normal)]


class Behavior(Word):
    """One thing that a container does."""

    known: ClassVar[dict[str, type[Behavior]]] = {}
    """All of them by their words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Behavior.known[cls.__name__] = cls

    def means(self) -> Iterable[Behavior]:
        """The simpler behaviours that it is short for; by default it says itself what it is."""
        return (self,)


class exits(Behavior):
    """It ends by itself.

    With `code` (0 to 255), `after_s` seconds after its start; `message` is its termination message.
    """

    code: ExitCode = 0
    _: KW_ONLY
    after_s: Seconds = 0.0
    reason: Annotated[str, "as the runtime names that code, if not given"] = ""  # CRI-070
    message: str = ""


class stops(Behavior):
    """It ends like this at its stop signal.

    `code` None: as killed by the signal, 143 for SIGTERM. `after_s`: seconds after the signal.
    """

    code: Annotated[ExitCode, "as killed by the signal, if not given"] | None = None
    _: KW_ONLY
    after_s: Seconds = 0.0
    reason: Annotated[str, "as the runtime names that code, if not given"] = ""  # CRI-070
    message: str = ""


class ignores(Behavior):
    """It does not react to the stop signal, for ever or for some seconds after its start."""

    signal: Signal = "SIGTERM"
    _: KW_ONLY
    for_s: Seconds = FOREVER


class start_fails(Behavior):
    """It does not start: exit code 128, reason StartError.

    StartContainer fails with `message` (CRI-056).
    """

    message: str = spoken(default="failed to create containerd task: exec: not found", told=False)


class start_hangs(Behavior):
    """Its start takes long; for ever, if not said: until the caller gives up.

    Then it has failed. `for_s`: seconds that StartContainer takes.
    """

    for_s: Seconds = FOREVER


class prints(Behavior):
    """It writes a line to its log."""

    text: Text
    _: KW_ONLY
    at_s: Seconds = 0.0
    stream: Annotated[str, one_of("stdout", "stderr")] = "stdout"


class Reply(Word):
    """One answer to an exec."""

    exit_code: ExitCode = 0
    stdout: str = ""
    stderr: str = ""
    delay_s: Seconds = 0.0


class ExecContext(Struct, frozen=True):
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


Answer: TypeAlias = Reply | int
"""What a handler gives: a reply, or the exit code alone."""
ReplyHandler: TypeAlias = Callable[[ExecContext], Answer | Awaitable[Answer]]


def _all_replies(answers: Any) -> tuple[Reply, ...]:
    given = tuple(answers)
    if not all(isinstance(answer, Reply) for answer in given):
        raise ValueError(f"wanted Reply(...) values, got {given!r}")
    return given or (Reply(),)


if TYPE_CHECKING:
    Answers: TypeAlias = Turned[Sequence[Reply], tuple[Reply, ...]]
    Handler: TypeAlias = ReplyHandler
else:
    Answers = Annotated[
        Sequence[Reply], Kind("Answers", (is_a(Sequence, "a list of Reply(...)"),), _all_replies)
    ]
    Handler = Annotated[ReplyHandler, code("a function")]


class ready_after(Behavior):
    """Exec of the command fails with 1 until then.

    What it answers later is what it would answer without this. `after_s`: seconds after the start;
    `command`: words in a list or a text; None: every command.
    """

    after_s: Seconds = 0.0
    command: Command = spoken(default=None)

    def means(self) -> Iterable[Behavior]:
        not_ready = Reply(1, stderr="not ready yet")
        return (replies(self.command, answers=(not_ready,), until_s=self.after_s),)


class replies(Behavior):
    """It answers exec of the command, in turn; the last answer stays.

    No program is run then. `command`: a list, or words in one string; None: every command. The
    answer is `exit_code` with `stdout` and `stderr`, `delay_s` seconds after the call; `answers`,
    if given, are taken in turn instead, and the last one repeats; `handler(context: ExecContext)`
    decides instead of both: it gives a Reply or an exit code, and may be async. The rule counts
    while the container's age is in `from_s` <= age < `until_s` seconds; by default as long as it
    runs. Raises WordError.
    """

    command: Command = spoken(default=None)
    exit_code: InitVar[int] = 0
    stdout: InitVar[str] = ""
    stderr: InitVar[str] = ""
    _: KW_ONLY
    delay_s: InitVar[float] = 0.0
    answers: Answers = spoken(default=())
    from_s: Seconds = 0.0
    until_s: Seconds = FOREVER
    handler: Handler | None = spoken(default=None, code="handler")

    def __post_init__(self, exit_code: int, stdout: str, stderr: str, delay_s: float) -> None:
        if not self.answers:
            object.__setattr__(self, "answers", (Reply(exit_code, stdout, stderr, delay_s),))
        super().__post_init__()


class serves(Behavior):
    """It listens on a port of its pod, and answers probes there.

    While `from_s` <= its age < `until_s`, in seconds. Of several rules for a port the last one that
    fits answers. A path for which there is no rule is 404, a service without one NOT_FOUND.
    `protocol`: `http`, `https`, `grpc` (the health service) or `tcp` (takes the connection and ends
    it); `path` None: every path; `body`: of the HTTP answer; `service` None: every service;
    `delay_s`: seconds from the request to the answer.
    """

    port: Annotated[int, whole(1, 65535)]
    protocol: Annotated[str, one_of("http", "https", "grpc", "tcp")] = "http"
    status: Annotated[int, whole(100, 599), "of HTTP"] = 200
    _: KW_ONLY
    path: Annotated[str, "every path, if not given"] | None = None
    location: Annotated[str, "of a redirect; {ip} is the pod's address"] = ""
    body: str = ""
    lost_bytes: Annotated[int, whole(), "so many bytes of the body never come"] = 0
    service: Annotated[str, "of gRPC; every one, if not given"] | None = None
    health: Annotated[str, one_of("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")] = (
        "SERVING"
    )
    delay_s: Seconds = 0.0
    from_s: Seconds = 0.0
    until_s: Seconds = FOREVER


def _main(what: Any) -> Any:
    return what if callable(what) else words_of(what)


if TYPE_CHECKING:
    Amounts: TypeAlias = Turned[int | Sequence[tuple[float, int]], Curve]
    Bytes: TypeAlias = Amounts
    Main: TypeAlias = Turned[
        Sequence[str] | str | fakesh.Program | None,
        tuple[str, ...] | fakesh.Program | None,
    ]
else:
    Amounts = Annotated[int | Sequence[tuple[float, int]], Kind("Curve", turned=curve)]
    Bytes = Annotated[int | Sequence[tuple[float, int]], Kind("CurveOfBytes", turned=curve)]
    Main = Annotated[Sequence[str] | str | Callable[..., Any] | None, Kind("Command", turned=_main)]


class uses(Behavior):
    """It uses that much: a number, or a list of [seconds after its start, number], or a ramp
    {from, to, over_s}; bytes, thousandths of a CPU.

    In Python a ramp is what `ramp(...)` makes. A container whose memory exceeds its limit is killed
    for it (OOMKilled, 137). `memory_bytes`: of its main process; `cache_bytes`: clean page cache,
    which counts as usage but not as working set; `disk_bytes`, `inodes`: of the writable layer;
    `pids`: processes, the main one among them. Before its first point a curve is 0.
    """

    _: KW_ONLY
    memory_bytes: Bytes = spoken(default=(), said="memory")
    cpu_millicores: Annotated[Amounts, "thousandths of a CPU"] = spoken(default=(), said="cpu")
    disk_bytes: Bytes = spoken(default=(), said="disk")
    pids: Amounts = spoken(default=1, told=False)
    cache_bytes: Bytes = spoken(default=(), said="cache")
    inodes: Amounts = spoken(default=())

    @property
    def moments_s(self) -> list[float]:
        """When memory or the number of processes changes."""
        curves = (self.memory_bytes, self.pids, self.cache_bytes)
        return sorted({at_s for curve in curves for at_s, _ in curve})


class oom_kills_child(Behavior):
    """It loses a child process to an OOM kill and goes on.

    With reason OOMKilled from then on, whatever it ends with (CRI-071). `at_s`: seconds after its
    start.
    """

    _: KW_ONLY
    at_s: Seconds = 0.0


class oom_at(Behavior):
    """It wants more memory than there is.

    `at_s` seconds after its start. In a cgroup the kernel kills the process that has most below the
    nearest limit, or, without any, this one for the whole machine: OOMKilled, 137.
    """

    at_s: Seconds = 0.0


class runs(Behavior):
    """It really runs its command, or this one, with the programs of the fake.

    Its main process writes to the log and ends with its exit code. `what`: another command than its
    own, or a Python `program(Invocation) -> exit code`, which may be async. SIGTERM ends it as any
    container; with `ignores()` a program can wait for `run.stop` and end by itself.
    """

    what: Main = spoken(default=None, said="command", code="program")

    @property
    def command(self) -> tuple[str, ...] | None:
        """The command that it runs; None: its own, or a program."""
        return self.what if isinstance(self.what, tuple) else None

    @property
    def program(self) -> fakesh.Program | None:
        """The Python program that it runs; None: there is none."""
        return None if isinstance(self.what, tuple) else self.what


class writes_termination_message(Behavior):
    """It leaves a termination message.

    `text`: what it writes into the file for that, just before it ends.
    """

    text: Text
