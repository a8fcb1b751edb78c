"""The verbs of fault rules: `cri.on("StartContainer", pod="web").fails("UNKNOWN", "boom")`.

Every verb makes one rule and returns it; rules add up (see `faults.FaultRules.apply`). Arguments
are plain data wherever the meaning allows, so that script files and other languages can say the
same. What must never happen here: a verb that cannot act on that method is taken silently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import Message

from fakecri.behavior import Behavior
from fakecri.errors import CriError, status_code
from fakecri.faults import CallRule, Condition, Effect, Proceed, Rule, RuleBook
from fakecri.list_faults import ITEM_FIELDS, SubjectOf, leave_out, repeat, turn_back
from fakecri.matching import Match
from fakecri.recorder import Call
from fakecri.services import METHODS
from fakecri.stream_faults import ChangeRule, CutRule, SilentRule, StreamFaults

_READS: Final = frozenset(
    name
    for name, method in METHODS.items()
    if not method.streams
    and (name.startswith("List") or name.endswith(("Status", "Stats", "Info")))
)
"""The methods that only look."""
_CREATES: Final = ("RunPodSandbox", "CreateContainer")


class Programmable(Protocol):
    """What only a fake can be told: behaviours, names that stay taken, answers from the past."""

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        times: int | None = None,
    ) -> Rule: ...

    def hold_name(self, request: Message) -> Callable[[], None]: ...

    def as_of_now(self, method: str) -> Callable[[Message], Message]: ...


class On:
    """`cri.on("StartContainer", pod="web")`: the start of a sentence; a verb makes the rule."""

    def __init__(
        self,
        rules: RuleBook,
        streams: StreamFaults,
        condition: Condition,
        subject_of: SubjectOf,
        fake: Programmable | None = None,
    ) -> None:
        self._rules = rules
        self._streams = streams
        self._condition = condition
        self._subject_of = subject_of
        self._fake = fake

    @property
    def _method(self) -> str:
        return self._condition.method

    def _rule(self, verb: str, effect: Effect, times: int | None) -> Rule:
        what = f"{self._method} ({self._condition.match}) {verb}"
        return CallRule(self._rules, self._condition, effect, what, times)

    def fails(
        self,
        code: grpc.StatusCode | str = "UNKNOWN",
        message: str = "",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call fails with that code and text, and has no effect."""
        error_code = status_code(code)
        text = message or f"{self._method} was told to fail"

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            raise CriError(error_code, text)

        return self._rule(f"fails {error_code.name}", effect, times)

    def delays(self, delay_s: float, *, times: int | None = None) -> Rule:
        """The call takes `delay_s` seconds longer; its effect comes after them."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await asyncio.sleep(delay_s)
            return await proceed()

        return self._rule(f"delays {delay_s} s", effect, times)

    def hangs(self, *, times: int | None = None) -> Rule:
        """The call waits until `rule.release()` (or its own deadline); then it takes effect."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await rule.wait_released()
            return await proceed()

        return self._rule("hangs", effect, times)

    def loses_answer(
        self,
        code: grpc.StatusCode | str = "UNAVAILABLE",
        message: str = "answer lost",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call takes effect, but the caller gets an error."""
        error_code = status_code(code)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await proceed()
            raise CriError(error_code, message)

        return self._rule("loses the answer", effect, times)

    def answers(
        self, answer: Message | Callable[[Message], Message], *, times: int | None = None
    ) -> Rule:
        """The call has no effect and answers this message, or what a function makes of the
        request."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            return answer if isinstance(answer, Message) else answer(call.request)

        return self._rule("answers", effect, times)

    def answers_late(self, after_s: float | None = None, *, times: int | None = None) -> Rule:
        """The call takes effect at once, its answer comes `after_s` seconds later; None: not
        before `rule.release()`, so a caller with a deadline sees DEADLINE_EXCEEDED."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            await (rule.wait_released() if after_s is None else asyncio.sleep(after_s))
            return answer

        when = "once released" if after_s is None else f"{after_s} s late"
        return self._rule(f"answers {when}", effect, times)

    def holds_name(self, *, times: int | None = None) -> Rule:
        """The create does not end, and its name stays reserved also when the caller has given up
        (fakes only): the next attempt fails with `failed to reserve ... name ...` (CRI-025), until
        `rule.release()`. A caller that still waits then gets its answer.

        Raises: ValueError for a method that makes nothing, or in front of a real runtime.
        """
        fake = self._need_fake("a name can be held")
        if self._method not in _CREATES:
            raise ValueError(f"{self._method} takes no name; wanted one of {', '.join(_CREATES)}")

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            rule.at_release(fake.hold_name(call.request))
            await rule.wait_released()
            return await proceed()

        return self._rule("holds the name", effect, times)

    def goes_stale(self, *, times: int | None = None) -> Rule:
        """The answer is that of the moment this rule was made. (In front of a real runtime: the
        first answer to each request under this rule, again and again.)

        Raises: ValueError for a method that does more than look.
        """
        if self._method not in _READS:
            raise ValueError(f"{self._method} changes something, so it cannot be stale")
        old = self._fake.as_of_now(self._method) if self._fake else None
        first: dict[bytes, Message] = {}

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            if old is not None:
                return old(call.request)
            key = call.request.SerializeToString()
            if key not in first:
                first[key] = await proceed()
            return first[key]

        return self._rule("is stale", effect, times)

    def changes_answer(
        self, change: Callable[[Any], None], *, verb: str = "changes", times: int | None = None
    ) -> Rule:
        """The call takes effect; `change` alters the answer in place, of a stream each message."""
        if METHODS[self._method].streams:
            return ChangeRule(self._rules, self._condition, verb, times, change)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            change(answer)
            return answer

        return self._rule(verb, effect, times)

    def leaves_out(
        self,
        *,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        keep: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """The list lacks the items that fit (all, if nothing is named); `keep`: the first so many
        of them are there. Raises: ValueError for a method that answers no list."""
        field, match = self._list_field(), Match(pod, container, image)

        def change(answer: Any) -> None:
            leave_out(getattr(answer, field), match, keep, self._subject_of)

        return self.changes_answer(change, verb=f"leaves out {match}", times=times)

    def repeats(
        self,
        *,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        times: int | None = None,
    ) -> Rule:
        """The list has the items that fit twice. Raises: ValueError for a method without list."""
        field, match = self._list_field(), Match(pod, container, image)

        def change(answer: Any) -> None:
            repeat(getattr(answer, field), match, self._subject_of)

        return self.changes_answer(change, verb=f"repeats {match}", times=times)

    def turns_back_time(self, by_s: float, *, times: int | None = None) -> Rule:
        """Every time stamp of the answer lies `by_s` seconds earlier than it should."""
        by_ns = round(by_s * 1e9)
        verb = f"turns time back {by_s} s"
        return self.changes_answer(lambda answer: turn_back(answer, by_ns), verb=verb, times=times)

    def cuts_stream(
        self,
        after: int = 0,
        code: grpc.StatusCode | str | None = "UNAVAILABLE",
        message: str = "the stream was cut",
        *,
        times: int | None = None,
    ) -> Rule:
        """The stream ends once it has sent `after` messages, also one that is open now.

        `code` None: it ends in good order. Raises: ValueError for a unary method.
        """
        self._need_stream()
        error = None if code is None else CriError(status_code(code), message)
        rule = CutRule(self._rules, self._condition, times, after=after, error=error)
        self._streams.look_again()
        return rule

    def goes_silent(self, *, times: int | None = None) -> Rule:
        """The stream stays open and tells nothing; what happens meanwhile is never told. `times`:
        so many messages are lost. Raises: ValueError for a unary method."""
        self._need_stream()
        return SilentRule(self._rules, self._condition, times)

    def _need_stream(self) -> None:
        if not METHODS[self._method].streams:
            raise ValueError(f"{self._method} is no stream; wanted for example GetContainerEvents")

    def _need_fake(self, what: str) -> Programmable:
        if self._fake is None:
            raise ValueError(f"{what} in a fake runtime only; this one is real")
        return self._fake

    def _list_field(self) -> str:
        if self._method not in ITEM_FIELDS:
            raise ValueError(f"{self._method} answers no list; wanted for example ListContainers")
        return ITEM_FIELDS[self._method]

    def does(self, *behaviors: Behavior, times: int | None = None) -> Rule:
        """Containers that fit behave like this from their next start on (fakes only).

        Raises: ValueError in front of a real runtime, or for another method than StartContainer.
        """
        if self._fake is None or self._method != "StartContainer":
            raise ValueError(
                "behaviours are programmed on StartContainer of a fake runtime; "
                f"this is {self._method}" + ("" if self._fake else " in front of a real one")
            )
        match = self._condition.match
        return self._fake.behaves(
            *behaviors,
            pod=match.pod,
            container=match.container,
            image=match.image,
            attempt=match.attempt,
            times=times,
        )

    def exits(self, code: int = 0, *, after_s: float = 0.0, times: int | None = None) -> Rule:
        """Short for `does(exits(code, after_s=...))`."""
        from fakecri.behavior import exits

        return self.does(exits(code, after_s=after_s), times=times)
