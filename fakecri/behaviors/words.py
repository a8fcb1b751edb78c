"""The words in which a test programs containers: `cri.behaves(exits(1), prints("hello"))`.

Each makes one behaviour (see `behavior`). Units: seconds after the start of the container, bytes,
thousandths of a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType

from fakecri import fakesh
from fakecri.behaviors.behavior import (
    FOREVER,
    Exits,
    Ignores,
    OomAt,
    OomKillsChild,
    Prints,
    ReadyAfter,
    Replies,
    Reply,
    ReplyHandler,
    Runs,
    Serves,
    StartFails,
    StartHangs,
    Stops,
    Uses,
    WritesTerminationMessage,
)
from fakecri.behaviors.checked import BehaviorError
from fakecri.behaviors.curves import curve


def exits(code: int = 0, *, after_s: float = 0.0, reason: str = "", message: str = "") -> Exits:
    """The container ends by itself with `code` (0 to 255), `after_s` seconds after its start.
    `reason`: "" for the one that follows from the code; `message`: its termination message."""
    return Exits(code, after_s, reason, message)


def stops(
    code: int | None = None, *, after_s: float = 0.0, reason: str = "", message: str = ""
) -> Stops:
    """On the stop signal the container ends with `code` (None: as killed by the signal, 143 for
    SIGTERM), after `after_s` seconds."""
    return Stops(code, after_s, reason, message)


def ignores(signal: str = "SIGTERM", *, for_s: float = FOREVER) -> Ignores:
    """The container does not react to the stop signal, in its first `for_s` seconds; by default
    ever."""
    return Ignores(signal, for_s)


def prints(text: str, *, at_s: float = 0.0, stream: str = "stdout") -> Prints:
    """The container writes a line to `stream` (stdout or stderr), `at_s` seconds after its
    start."""
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
    """The container answers exec of `command`, instead of running a program.

    `command`: a list, or words in one string; None: every command. The answer is `exit_code` with
    `stdout` and `stderr`, `delay_s` seconds after the call; `answers`, if given, are taken in turn
    instead, and the last one repeats; `handler(context: ExecContext)` decides instead of both: it
    gives a Reply or an exit code, and may be async. The rule counts while the container's age is in
    `from_s` <= age < `until_s` seconds; by default as long as it runs. Raises BehaviorError.
    """
    if not isinstance(answers, Sequence):
        raise BehaviorError(f"replies.answers: wanted a list of Reply(...), got {answers!r}")
    given = tuple(answers) or (Reply(exit_code, stdout, stderr, delay_s),)
    return Replies(
        command=_words(command), answers=given, from_s=from_s, until_s=until_s, handler=handler
    )


serves = Serves
"""The container listens on a port of its pod: `serves(80, status=503, until_s=10)`."""


def uses(
    *,
    memory_bytes: int | Sequence[tuple[float, int]] = (),
    cpu_millicores: int | Sequence[tuple[float, int]] = (),
    disk_bytes: int | Sequence[tuple[float, int]] = (),
    pids: int | Sequence[tuple[float, int]] = 1,
    cache_bytes: int | Sequence[tuple[float, int]] = (),
    inodes: int | Sequence[tuple[float, int]] = (),
) -> Uses:
    """The container uses this much: a constant, or a curve of (seconds after start, value), such as
    `ramp(...)` makes it.

    A container whose memory exceeds its limit is killed for it (OOMKilled, 137). `cache_bytes` is
    page cache, which counts as usage but not as working set.
    """
    amounts = (memory_bytes, cpu_millicores, disk_bytes, pids, cache_bytes, inodes)
    return Uses(*(curve(amount) for amount in amounts))


def start_fails(message: str = StartFails().message) -> StartFails:
    """StartContainer fails with this text: exit code 128, reason StartError (CRI-056)."""
    return StartFails(message)


def start_hangs(for_s: float = FOREVER) -> StartHangs:
    """StartContainer takes `for_s` seconds (default: until the caller gives up)."""
    return StartHangs(for_s)


def ready_after(after_s: float, command: Sequence[str] | str | None = None) -> ReadyAfter:
    """Exec of `command` (default: of every command) fails with 1 until then; what it answers later
    is what it would answer without this."""
    return ReadyAfter(after_s, _words(command))


def runs(what: Sequence[str] | str | fakesh.Program | None = None) -> Runs:
    """The container's main process is run by the fake: its own command, another one, or a Python
    `program(Invocation) -> exit code`, which may be async. SIGTERM ends it as any container; with
    `ignores()` a program can wait for `run.stop` and end by itself."""
    return Runs(program=what) if callable(what) else Runs(_words(what))


def oom_kills_child(*, at_s: float = 0.0) -> OomKillsChild:
    """The kernel kills a child process of the container for memory, `at_s` seconds after the start;
    the container runs on."""
    return OomKillsChild(at_s)


def oom_at(at_s: float = 0.0) -> OomAt:
    """The container uses more memory than it may, `at_s` seconds after the start, and is killed for
    it: OOMKilled, 137."""
    return OomAt(at_s)


def writes_termination_message(text: str) -> WritesTerminationMessage:
    """The container writes `text` into its termination message file before it ends."""
    return WritesTerminationMessage(text)


def _words(command: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if isinstance(command, str):
        return tuple(command.split()) or None
    if not isinstance(command, Sequence | NoneType):
        raise BehaviorError(f"command: wanted words in a text or a list, got {command!r}")
    if not all(isinstance(word, str) for word in command or ()):
        raise BehaviorError(f"command: wanted words that are texts, got {command!r}")
    return tuple(command or ()) or None
