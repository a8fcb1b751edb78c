"""The verbs that change answers: lost, late, old, replaced, or with wrong items and times.

What must never happen here: a verb that cannot act on that method is accepted in silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from fakecri.behaviors.matching import Match, require_count
from fakecri.cri.foreign import own_answer
from fakecri.cri.services import METHODS
from fakecri.errors import CriError, status_code
from fakecri.recording.call import Call
from fakecri.rules.faults import Proceed, Rule
from fakecri.rules.list_faults import leave_out, repeat, turn_back
from fakecri.rules.on_base import OnBase, require_seconds, require_text
from fakecri.rules.stream_faults import ChangeRule

_READS: Final = frozenset(
    name
    for name, method in METHODS.items()
    if not method.streams
    and (name.startswith("List") or name.endswith(("Status", "Stats", "Info")))
)
"""The methods that change nothing."""


class AnswerVerbs(OnBase):
    """Verbs that let a call have its effect and change its answer. (With `answers` and `goes_stale`
    the call has no effect.)

    `times`: how many calls the rule acts on before it ends; None: no limit.
    """

    def loses_answer(
        self,
        code: grpc.StatusCode | str = "UNAVAILABLE",
        message: str = "answer lost",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call takes effect, but its caller gets an error with that gRPC code and text. Raises
        ValueError for a stream."""
        self._need_answer()
        error_code = status_code(code)
        require_text("message", message)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await proceed()
            raise CriError(error_code, message)

        return self._rule("loses the answer", effect, times)

    def answers(self, answer: Message | Callable[[Any], Any], *, times: int | None = None) -> Rule:
        """The call has no effect and answers this message, or what a function makes of the
        request, which it gets in kubecri's class. Messages may be of any stubs of the contract.
        Raises ValueError for a stream, TypeError for another method's answer; a function that
        gives one is the mistake of the call."""
        method = self._need_answer()
        if not callable(answer):
            answer = own_answer(method, answer)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            made = answer(call.request) if callable(answer) else answer
            return own_answer(method, made)

        return self._rule("answers", effect, times)

    def answers_late(self, after_s: float | None = None, *, times: int | None = None) -> Rule:
        """The call takes effect at once, but its answer comes `after_s` seconds later.

        None: not before `rule.release()`, so that a caller with a deadline sees DEADLINE_EXCEEDED.
        Raises ValueError for a stream.
        """
        self._need_answer()
        if after_s is not None:
            require_seconds("after_s", after_s)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            await (rule.wait_released() if after_s is None else asyncio.sleep(after_s))
            return answer

        when = "once released" if after_s is None else f"{after_s} s late"
        return self._rule(f"answers {when}", effect, times)

    def goes_stale(self, *, times: int | None = None) -> Rule:
        """The answer stays as it would have been when this rule was made.

        In front of a real runtime: the first answer to each request under this rule is repeated.
        Raises ValueError for a method that changes something.
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
        """The call takes effect; `change` alters its answer in place; of a stream, each message.
        `verb`: what texts call the rule."""
        if not callable(change):
            raise TypeError(f"change: wanted a function of the answer, got {change!r}")
        if METHODS[self._method].streams:
            return self._rules.add(ChangeRule(self._condition, verb, times, change))

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
        """The list lacks the items that fit, but for the first `keep` of them. Without pod,
        container and image every item fits. Raises ValueError for a method that answers no list."""
        field, match = self._list_field(), Match(pod, container, image)
        if keep is not None:
            require_count("keep", keep, 0, "a number of items from 0")

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
        """The list has the items that fit twice. Raises ValueError for a method that answers no
        list."""
        field, match = self._list_field(), Match(pod, container, image)

        def change(answer: Any) -> None:
            repeat(getattr(answer, field), match, self._subject_of)

        return self.changes_answer(change, verb=f"repeats {match}", times=times)

    def turns_back_time(self, by_s: float, *, times: int | None = None) -> Rule:
        """Every time stamp of the answer is `by_s` seconds earlier than it should be."""
        require_seconds("by_s", by_s)
        by_ns = round(by_s * 1e9)
        verb = f"turns time back {by_s} s"
        return self.changes_answer(lambda answer: turn_back(answer, by_ns), verb=verb, times=times)
