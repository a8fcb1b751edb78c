"""What a file may say of containers: the behaviours of `fakecri.behaviors.behavior` as structs.

Each struct has the name, the fields and the defaults of the behaviour that it makes.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, UnsetType

from fakecri.behaviors import behavior
from fakecri.behaviors.behavior import KINDS, Behavior
from fakecri.behaviors.checked import BehaviorError
from fakecri.behaviors.curves import curve, ramp
from fakecri.scripts.fields import Amount, Bytes, Count, ExitCode, Name, Seconds, Text, Words
from kubeobjects.strict.reader import Placed, Strict

T = TypeVar("T")
OrList: TypeAlias = T | Annotated[list[T], Meta(min_length=1)] | UnsetType
Command: TypeAlias = Annotated[
    Words, Meta(description="a text or a list of words; every command, if not given")
]


class _Shape(Strict):
    def __post_init__(self) -> None:
        word = next(word for word, kind in KINDS.items() if kind.__name__ == type(self).__name__)
        try:
            self.behavior()
        except BehaviorError as error:
            raise ValueError(str(error).removeprefix(f"{word}.")) from None

    def behavior(self) -> Behavior:
        """The behaviour. Raises BehaviorError for one that cannot be."""
        made: Behavior = getattr(behavior, type(self).__name__)(**self.given())
        return made


class Exits(_Shape):
    """It ends by itself."""

    code: ExitCode = 0
    after_s: Seconds = 0.0
    reason: Annotated[str, Meta(description="as the runtime names that code, if not given")] = ""
    message: str = ""


class Stops(_Shape):
    """It ends like this at its stop signal."""

    code: Annotated[ExitCode, Meta(description="as killed by the signal, if not given")] | None = (
        None
    )
    after_s: Seconds = 0.0
    reason: Annotated[str, Meta(description="as the runtime names that code, if not given")] = ""
    message: str = ""


class Ignores(_Shape):
    """It does not react to the stop signal, for ever or for some seconds after its start."""

    signal: str = "SIGTERM"
    for_s: Seconds | UnsetType = UNSET


class StartFails(_Shape):
    """It does not start: exit code 128, reason StartError."""

    message: str | UnsetType = UNSET


class StartHangs(_Shape):
    """Its start takes long; for ever, if not said: until the caller gives up."""

    for_s: Seconds | UnsetType = UNSET


class Prints(_Shape):
    """It writes a line to its log."""

    text: Text
    at_s: Seconds = 0.0
    stream: Literal["stdout", "stderr"] = "stdout"


class ReadyAfter(_Shape):
    """Exec of the command fails with 1 until then."""

    after_s: Seconds = 0.0
    command: Command | None = None


class Reply(Strict):
    """One answer to an exec."""

    exit_code: ExitCode = 0
    stdout: str = ""
    stderr: str = ""
    delay_s: Seconds = 0.0


class Replies(_Shape):
    """It answers exec of the command, in turn; the last answer stays."""

    command: Command | None = None
    answers: Annotated[tuple[Reply, ...], Meta(min_length=1)] | UnsetType = UNSET
    from_s: Seconds = 0.0
    until_s: Seconds | UnsetType = UNSET

    def behavior(self) -> Behavior:
        given = self.given()
        if "answers" in given:
            given["answers"] = tuple(behavior.Reply(**one.given()) for one in given["answers"])
        return behavior.Replies(**given)


class Serves(_Shape):
    """It listens on a port of its pod, and answers probes there."""

    port: Annotated[int, Meta(ge=1, le=65535)]
    protocol: Literal["http", "https", "grpc", "tcp"] = "http"
    status: Annotated[int, Meta(ge=100, le=599, description="of HTTP")] = 200
    path: Annotated[str, Meta(description="every path, if not given")] | None = None
    location: Annotated[str, Meta(description="of a redirect; {ip} is the pod's address")] = ""
    body: str = ""
    lost_bytes: Annotated[Amount, Meta(description="so many bytes of the body never come")] = 0
    service: Annotated[str, Meta(description="of gRPC; every one, if not given")] | None = None
    health: Literal["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] = "SERVING"
    delay_s: Seconds = 0.0
    from_s: Seconds = 0.0
    until_s: Seconds | UnsetType = UNSET


class Ramp(Strict, rename={"start": "from", "end": "to"}):
    """An amount that grows or falls in equal steps."""

    start: Bytes
    end: Bytes
    over_s: Seconds
    from_s: Seconds = 0.0
    steps: Count = 20

    def __post_init__(self) -> None:
        ramp(**self.given())


_CURVE = "a number, a list of [seconds, number] or a ramp {from, to, over_s}"
Curve: TypeAlias = Annotated[
    Amount | list[tuple[Seconds, Amount]] | Ramp, Meta(extra={"wanted": _CURVE})
]
CurveOfBytes: TypeAlias = Annotated[
    Bytes | list[tuple[Seconds, Bytes]] | Ramp, Meta(extra={"wanted": _CURVE})
]


class Uses(_Shape):
    """It uses that much: a number, or a list of [seconds after its start, number], or a ramp."""

    memory: CurveOfBytes | UnsetType = UNSET
    cpu: Annotated[Curve, Meta(description="thousandths of a CPU")] | UnsetType = UNSET
    disk: CurveOfBytes | UnsetType = UNSET
    pids: Curve | UnsetType = UNSET
    cache: CurveOfBytes | UnsetType = UNSET
    inodes: Curve | UnsetType = UNSET

    def behavior(self) -> Behavior:
        return behavior.Uses(**{name: _steps(amount) for name, amount in self.given().items()})


def _steps(amount: Any) -> Any:
    return ramp(**amount.given()) if isinstance(amount, Ramp) else curve(amount)


class OomKillsChild(_Shape):
    """It loses a child process to an OOM kill and goes on."""

    at_s: Seconds = 0.0


class OomAt(_Shape):
    """It wants more memory than there is."""

    at_s: Seconds = 0.0


class Runs(_Shape):
    """It really runs its command, or this one, with the programs of the fake."""

    command: Command | None = None


class WritesTerminationMessage(_Shape):
    """It leaves a termination message."""

    text: Text


class Behaviors(Placed):
    """What a container does: each word once, or in a list."""

    exits: OrList[Exits] = UNSET
    stops: OrList[Stops] = UNSET
    ignores: OrList[Ignores] = UNSET
    start_fails: OrList[StartFails] = UNSET
    start_hangs: OrList[StartHangs] = UNSET
    prints: OrList[Prints] = UNSET
    ready_after: OrList[ReadyAfter] = UNSET
    replies: OrList[Replies] = UNSET
    serves: OrList[Serves] = UNSET
    uses: OrList[Uses] = UNSET
    oom_kills_child: OrList[OomKillsChild] = UNSET
    oom_at: OrList[OomAt] = UNSET
    runs: OrList[Runs] = UNSET
    writes_termination_message: OrList[WritesTerminationMessage] = UNSET

    at_least_one: ClassVar = tuple(KINDS)

    @property
    def behaviors(self) -> tuple[Behavior, ...]:
        """All of them, in the order of `KINDS`."""
        words = [getattr(self, word) for word in KINDS]
        several = (one if isinstance(one, list) else [one] for one in words if one is not UNSET)
        return tuple(shape.behavior() for shapes in several for shape in shapes)


class BehaviorEntry(Behaviors):
    """What containers do, and which ones."""

    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: Annotated[int, Meta(description="its number, from 0")] | UnsetType = UNSET
    first_attempts: Count | UnsetType = UNSET
    times: Annotated[Count, Meta(description="so many starts in all")] | UnsetType = UNSET

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of `behaves` that are no behaviours."""
        return {name: value for name, value in self.given().items() if name not in KINDS}
