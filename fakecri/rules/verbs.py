"""The verbs of faults that are words: each with its fields, and the rule that it makes.

What must never happen here: a verb that cannot act on that method is taken silently.
"""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY
from typing import Annotated, Any, Final

from google.protobuf.message import Message

from fakecri.behaviors.matching import Match
from fakecri.calls.halfway import HALVES
from fakecri.cri.services import METHODS
from fakecri.errors import CriError, status_code
from fakecri.recording.call import Call
from fakecri.rules.faults import Proceed, Rule
from fakecri.rules.list_faults import leave_out, repeat, turn_back
from fakecri.rules.on_base import Calls, Duration, Fault, Status
from fakecri.rules.stream_faults import CutRule, SilentRule
from fakecri.words.kinds import Name, whole

_CREATES: Final = ("RunPodSandbox", "CreateContainer")
_READS: Final = frozenset(
    name
    for name, method in METHODS.items()
    if not method.streams
    and (name.startswith("List") or name.endswith(("Status", "Stats", "Info")))
)
"""The methods that change nothing."""


class fails(Fault):
    """The call fails and has no effect.

    `code`: a gRPC status code or its name; `message`: by default `<method> was told to fail`.
    """

    code: Status = "UNKNOWN"
    message: str = ""

    def rule_for(self, calls: Calls) -> Rule:
        code, text = status_code(self.code), self.message or f"{calls.method} was told to fail"

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            raise CriError(code, text)

        return calls.rule(f"fails {code.name}", effect, self.times)


class fails_halfway(Fault):
    """The call breaks off in the middle: a sandbox stays NOTREADY with its name taken, a pod's
    network is not torn down, a container has got its signal and runs on.

    With UNKNOWN unless `code` says another (fakes only). A stopped sandbox keeps its network; a
    removed one stays, without containers. A container's start has failed; a stopped one has got its
    signal and runs on; a removed one is dead but still there. `message`: by default what containerd
    says. Raises ValueError for a method without such a middle, or in front of a real runtime.
    """

    code: Status = "UNKNOWN"
    message: str = ""

    def rule_for(self, calls: Calls) -> Rule:
        fake = calls.need_fake("calls break off halfway")
        if calls.method not in HALVES:
            methods = ", ".join(HALVES)
            raise ValueError(
                f"{calls.method} has no middle to break off in; wanted one of {methods}"
            )
        code = status_code(self.code)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            text = fake.do_half(calls.method, call.request)
            raise CriError(code, self.message or text)

        return calls.rule("fails halfway", effect, self.times)


class delays(Fault):
    """The call takes longer; its effect comes after that time."""

    delay_s: Duration

    def rule_for(self, calls: Calls) -> Rule:
        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await asyncio.sleep(self.delay_s)
            return await proceed()

        return calls.rule(f"delays {self.delay_s} s", effect, self.times)


class hangs(Fault):
    """The call waits until the rule is released, then has its effect.

    Until `rule.release()`, or its own deadline.
    """

    def rule_for(self, calls: Calls) -> Rule:
        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await rule.wait_released()
            return await proceed()

        return calls.rule("hangs", effect, self.times)


class loses_answer(Fault):
    """The call has its effect, its caller gets an error.

    With that gRPC code and text. Raises ValueError for a stream.
    """

    code: Status = "UNAVAILABLE"
    message: str = "answer lost"

    def rule_for(self, calls: Calls) -> Rule:
        calls.need_answer()
        code = status_code(self.code)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await proceed()
            raise CriError(code, self.message)

        return calls.rule("loses the answer", effect, self.times)


class answers_late(Fault):
    """The call has its effect at once and answers later; never, if not said when.

    `after_s` None: not before `rule.release()`, so that a caller with a deadline sees
    DEADLINE_EXCEEDED. Raises ValueError for a stream.
    """

    after_s: Duration | None = None

    def rule_for(self, calls: Calls) -> Rule:
        calls.need_answer()
        after_s = self.after_s

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            await (rule.wait_released() if after_s is None else asyncio.sleep(after_s))
            return answer

        when = "once released" if after_s is None else f"{after_s} s late"
        return calls.rule(f"answers {when}", effect, self.times)


class holds_name(Fault):
    """The create never ends and keeps the name reserved.

    The name stays so also when the caller has given up (fakes only): the next attempt fails with
    `failed to reserve ... name ...` (CRI-025), until `rule.release()`. A caller that still waits
    then gets its answer. Raises ValueError for a method that creates nothing, or in front of a real
    runtime.
    """

    def rule_for(self, calls: Calls) -> Rule:
        fake = calls.need_fake("a name can be held")
        if calls.method not in _CREATES:
            raise ValueError(f"{calls.method} takes no name; wanted one of {', '.join(_CREATES)}")

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            rule.at_release(fake.hold_name(call.request))
            await rule.wait_released()
            return await proceed()

        return calls.rule("holds the name", effect, self.times)


class goes_stale(Fault):
    """The call answers what was true when the rule was made.

    In front of a real runtime: the first answer to each request under this rule is repeated. Raises
    ValueError for a method that changes something.
    """

    def rule_for(self, calls: Calls) -> Rule:
        if calls.method not in _READS:
            raise ValueError(f"{calls.method} changes something, so it cannot be stale")
        old = calls.fake.as_of_now(calls.method) if calls.fake else None
        first: dict[bytes, Message] = {}

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            if old is not None:
                return old(call.request)
            key = call.request.SerializeToString()
            if key not in first:
                first[key] = await proceed()
            return first[key]

        return calls.rule("is stale", effect, self.times)


class _OfItems(Fault):
    """Those items of a list that fit; without pod, container and image all of them."""

    _: KW_ONLY
    pod: Name | None = None
    container: Name | None = None
    image: Name | None = None

    @property
    def match(self) -> Match:
        """Which items these are."""
        return Match(self.pod, self.container, self.image)


class leaves_out(_OfItems):
    """The call lists less than there is.

    It leaves out the items that fit, but for the first `keep` of them; without pod, container and
    image every item fits. Raises ValueError for a method that answers no list.
    """

    _: KW_ONLY
    keep: (
        Annotated[int, whole(wanted="a number of items from 0"), "all but the first so many"] | None
    ) = None

    def rule_for(self, calls: Calls) -> Rule:
        field, match = calls.list_field(), self.match

        def change(answer: Any) -> None:
            leave_out(getattr(answer, field), match, self.keep, calls.subject_of)

        return calls.change(change, f"leaves out {match}", self.times)


class repeats(_OfItems):
    """The call lists things twice.

    Those that fit; without pod, container and image all of them. Raises ValueError for a method
    that answers no list.
    """

    def rule_for(self, calls: Calls) -> Rule:
        field, match = calls.list_field(), self.match

        def change(answer: Any) -> None:
            repeat(getattr(answer, field), match, calls.subject_of)

        return calls.change(change, f"repeats {match}", self.times)


class turns_back_time(Fault):
    """The call answers with earlier time stamps.

    Every time stamp of the answer is `by_s` seconds earlier than it should be.
    """

    by_s: Duration

    def rule_for(self, calls: Calls) -> Rule:
        by_ns = round(self.by_s * 1e9)
        return calls.change(
            lambda answer: turn_back(answer, by_ns), f"turns time back {self.by_s} s", self.times
        )


class cuts_stream(Fault):
    """The stream ends after so many messages.

    Also one that is open now. `code`: the gRPC code that it ends with; None: it ends without an
    error. Raises ValueError for a unary method.
    """

    after: Annotated[int, whole(wanted="a number of messages from 0")] = 0
    code: Status | None = "UNAVAILABLE"
    message: str = "the stream was cut"

    def rule_for(self, calls: Calls) -> Rule:
        calls.need_stream()
        error = None if self.code is None else CriError(status_code(self.code), self.message)
        rule = CutRule(calls.condition, self.times, after=self.after, error=error)
        calls.rules.add(rule)
        calls.streams.look_again()
        return rule


class goes_silent(Fault):
    """The stream stays open and tells nothing.

    Messages that it would have sent are lost. `times`: so many messages; None: all. Raises
    ValueError for a unary method.
    """

    def rule_for(self, calls: Calls) -> Rule:
        calls.need_stream()
        return calls.rules.add(SilentRule(calls.condition, self.times))
