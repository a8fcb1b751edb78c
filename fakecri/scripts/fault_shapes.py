"""What a file may say of calls: those verbs of `fakecri.rules.on.On` that are plain data."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Amount, Count, Method, Name, Seconds, StatusCode
from kubeobjects.strict.reader import Placed, Strict


class _Fault(Strict):
    times: (
        Annotated[Count, Meta(description="so many calls; no limit, if not given")] | UnsetType
    ) = UNSET


class _Fails(_Fault):
    code: StatusCode | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Fails(_Fails):
    """The call fails and has no effect."""


class FailsHalfway(_Fails):
    """The call breaks off in the middle."""


class Delays(_Fault, kw_only=True):
    """The call takes longer."""

    delay_s: Seconds


class Hangs(_Fault):
    """The call waits until the rule is released, then has its effect."""


class LosesAnswer(_Fails):
    """The call has its effect, its caller gets an error."""


class AnswersLate(_Fault):
    """The call has its effect at once and answers later; never, if not said when."""

    after_s: Seconds | UnsetType = UNSET


class HoldsName(_Fault):
    """The create never ends and keeps the name reserved."""


class GoesStale(_Fault):
    """The call answers what was true when the rule was made."""


class Repeats(_Fault):
    """The call lists things twice."""

    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET


class LeavesOut(Repeats):
    """The call lists less than there is."""

    keep: Annotated[Amount, Meta(description="all but the first so many")] | UnsetType = UNSET


class TurnsBackTime(_Fault, kw_only=True):
    """The call answers with earlier time stamps."""

    by_s: Seconds


class CutsStream(_Fault):
    """The stream ends after so many messages."""

    after: Amount | UnsetType = UNSET
    code: StatusCode | UnsetType | None = UNSET
    message: str | UnsetType = UNSET


class GoesSilent(_Fault):
    """The stream stays open and tells nothing."""


FAULTS: Final = (
    "fails",
    "fails_halfway",
    "delays",
    "hangs",
    "loses_answer",
    "answers_late",
    "holds_name",
    "goes_stale",
    "leaves_out",
    "repeats",
    "turns_back_time",
    "cuts_stream",
    "goes_silent",
)
"""The verbs."""


class FaultEntry(Placed):
    """One fault, and which calls it is for."""

    on: Method
    pod: Name | UnsetType = UNSET
    container: Name | UnsetType = UNSET
    image: Name | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    nth: Annotated[Count, Meta(description="only this one of the calls that fit")] | UnsetType = (
        UNSET
    )
    fails: Fails | UnsetType = UNSET
    fails_halfway: FailsHalfway | UnsetType = UNSET
    delays: Delays | UnsetType = UNSET
    hangs: Hangs | UnsetType = UNSET
    loses_answer: LosesAnswer | UnsetType = UNSET
    answers_late: AnswersLate | UnsetType = UNSET
    holds_name: HoldsName | UnsetType = UNSET
    goes_stale: GoesStale | UnsetType = UNSET
    leaves_out: LeavesOut | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET
    turns_back_time: TurnsBackTime | UnsetType = UNSET
    cuts_stream: CutsStream | UnsetType = UNSET
    goes_silent: GoesSilent | UnsetType = UNSET

    exactly_one: ClassVar[tuple[str, ...]] = FAULTS

    @property
    def action(self) -> str:
        """The verb, one of `FAULTS`."""
        return next(name for name in FAULTS if getattr(self, name) is not UNSET)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the verb."""
        found: Strict = getattr(self, self.action)
        return found.given()

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of `on`, without the method."""
        given = self.given()
        return {name: value for name, value in given.items() if name not in (*FAULTS, "on")}
