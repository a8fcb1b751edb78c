"""What containers do, as plain data: the words in which a test programs the fake.

Every behaviour is a frozen value with a constructor that reads like a sentence (`exits(1,
after_s=2)`), and travels to and from plain dicts, so that scenario and script files hold the same
things. Units: seconds after the start of the container, bytes, thousandths of a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeAlias

from fakecri import stop_signals

FOREVER: Final = float("inf")
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


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of ExecSync."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers ExecSync of `command` (None: of every command) while `from_s` <= age < `until_s`.

    `answers` are given in turn, the last one repeats. `handler(command) -> Reply` decides instead,
    where plain data does not reach.
    """

    command: tuple[str, ...] | None = None
    answers: tuple[Reply, ...] = (Reply(),)
    from_s: float = 0.0
    until_s: float = FOREVER
    handler: Callable[[Sequence[str]], Reply] | None = None


@dataclass(frozen=True, slots=True)
class Uses:
    """Resources it uses: constants or curves; 0 before the first point of a curve."""

    memory: Curve = ()
    cpu: Curve = ()
    disk: Curve = ()
    pids: int = 1


@dataclass(frozen=True, slots=True)
class StartFails:
    """StartContainer fails: exit code 128, reason StartError (CRI-056)."""

    message: str = "failed to create containerd task: exec: not found"


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
    | Uses
    | StartFails
    | OomKillsChild
    | WritesTerminationMessage
)

KINDS: Final[Mapping[str, type[Any]]] = {
    "exits": Exits,
    "stops": Stops,
    "ignores": Ignores,
    "prints": Prints,
    "replies": Replies,
    "uses": Uses,
    "start_fails": StartFails,
    "oom_kills_child": OomKillsChild,
    "writes_termination_message": WritesTerminationMessage,
}


def exits(code: int = 0, *, after_s: float = 0.0, reason: str = "", message: str = "") -> Exits:
    """The container ends by itself with `code`, `after_s` seconds after its start."""
    return Exits(code, after_s, reason, message)


def stops(code: int | None = None, *, after_s: float = 0.0) -> Stops:
    """On the stop signal the container ends with `code` (None: as killed by the signal, 143 for
    SIGTERM), after `after_s` seconds."""
    return Stops(code, after_s)


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
    handler: Callable[[Sequence[str]], Reply] | None = None,
) -> Replies:
    """The container answers ExecSync of `command` (a list, or words in one string)."""
    words = tuple(command.split() if isinstance(command, str) else command or ()) or None
    given = tuple(answers) or (Reply(exit_code, stdout, stderr, delay_s),)
    return Replies(words, given, from_s, until_s, handler)


def uses(
    *,
    memory_bytes: int | Sequence[tuple[float, int]] = (),
    cpu_millicores: int | Sequence[tuple[float, int]] = (),
    disk_bytes: int | Sequence[tuple[float, int]] = (),
    pids: int = 1,
) -> Uses:
    """The container uses this much: a constant, or a curve of (seconds after start, value)."""
    return Uses(_curve(memory_bytes), _curve(cpu_millicores), _curve(disk_bytes), pids)


def start_fails(message: str = StartFails().message) -> StartFails:
    """StartContainer fails with this text."""
    return StartFails(message)


def oom_kills_child(*, at_s: float = 0.0) -> OomKillsChild:
    """The kernel kills a child process of the container for memory, `at_s` after the start."""
    return OomKillsChild(at_s)


def writes_termination_message(text: str) -> WritesTerminationMessage:
    """The container leaves `text` as its termination message."""
    return WritesTerminationMessage(text)


def _curve(value: int | Sequence[tuple[float, int]]) -> Curve:
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


def to_dict(behavior: Behavior) -> dict[str, Any]:
    """Plain data: `{"exits": {"code": 1, "after_s": 2.0}}`; fields at their default are left out.

    Raises: BehaviorError for a behaviour with a Python handler.
    """
    if isinstance(behavior, Replies) and behavior.handler is not None:
        raise BehaviorError("replies(handler=...) is Python code and has no plain-data form")
    name = next(n for n, kind in KINDS.items() if type(behavior) is kind)
    given = {
        f.name: _plain(getattr(behavior, f.name))
        for f in fields(behavior)
        if getattr(behavior, f.name) != f.default
    }
    return {name: given}


def _plain(value: Any) -> Any:
    if isinstance(value, Reply):
        return asdict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def from_dict(value: Mapping[str, Any]) -> Behavior:
    """The behaviour of `{"exits": {"code": 1}}`. Raises BehaviorError, which names the place."""
    if len(value) != 1:
        raise BehaviorError(f"wanted one behaviour, got the keys {sorted(value)}")
    name, given = next(iter(value.items()))
    if name not in KINDS:
        raise BehaviorError(f"unknown behaviour {name!r}; wanted one of {', '.join(KINDS)}")
    if not isinstance(given, Mapping):
        raise BehaviorError(f"{name}: wanted a mapping of its fields, got {given!r}")
    kind = KINDS[name]
    known = {f.name: f for f in fields(kind) if f.name != "handler"}
    for key in given:
        if key not in known:
            raise BehaviorError(f"{name}: unknown field {key!r}; wanted one of {', '.join(known)}")
    try:
        behavior: Behavior = kind(**{key: _typed(name, key, item) for key, item in given.items()})
    except TypeError as error:
        raise BehaviorError(f"{name}: {error}") from None
    return behavior


MAX_EXIT_CODE: Final = 255
_NUMBERS: Final = frozenset({"code", "after_s", "for_s", "at_s", "from_s", "until_s", "pids"})


def _typed(name: str, key: str, value: Any) -> Any:
    if key in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BehaviorError(f"{name}.{key}: wanted a number, got {value!r}")
        if value < 0:
            raise BehaviorError(f"{name}.{key}: wanted 0 or more, got {value!r}")
        if key == "code" and (value > MAX_EXIT_CODE or value != int(value)):
            raise BehaviorError(f"{name}.code: wanted 0 to {MAX_EXIT_CODE}, got {value!r}")
        return value
    if key in ("memory", "cpu", "disk"):
        return _typed_curve(name, key, value)
    if key == "answers":
        return tuple(_typed_reply(name, item) for item in value)
    if key == "command":
        return tuple(value.split() if isinstance(value, str) else value)
    if not isinstance(value, str):
        raise BehaviorError(f"{name}.{key}: wanted a text, got {value!r}")
    return value


def _typed_curve(name: str, key: str, value: Any) -> Curve:
    try:
        return _curve(value if isinstance(value, int) else [(p[0], p[1]) for p in value])
    except (TypeError, ValueError, IndexError):
        wanted = "a number or a list of [seconds, number]"
        raise BehaviorError(f"{name}.{key}: wanted {wanted}, got {value!r}") from None


def _typed_reply(name: str, value: Any) -> Reply:
    try:
        return Reply(**value)
    except TypeError:
        wanted = ", ".join(f.name for f in fields(Reply))
        raise BehaviorError(
            f"{name}.answers: wanted mappings with {wanted}, got {value!r}"
        ) from None
