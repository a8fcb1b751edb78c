"""Rules on calls: fail, delay, hang, answer something else. Scoped, counted, removable.

A rule is made by `on(...)` and one verb, and applies from then on; as a context manager it ends
with its block. The newest rule that fits a call acts first; one that lets the
call go on leaves the rest to the older ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import Message

from fakecri.behavior import Behavior
from fakecri.errors import CriError, status_code
from fakecri.matching import Match
from fakecri.recorder import Call

Proceed: TypeAlias = Callable[[], Awaitable[Message]]
Effect: TypeAlias = Callable[["Rule", Call, Proceed], Awaitable[Message]]


@dataclass(slots=True)
class Condition:
    """When a rule applies. `nth` counts the calls that fit the rest, from 1."""

    method: str
    match: Match
    nth: int | None = None
    where: Callable[[Call], bool] | None = None
    seen: int = 0

    def fits(self, call: Call) -> bool:
        if call.method != self.method or not self.match.fits(call.subject):
            return False
        if self.where is not None and not self.where(call):
            return False
        self.seen += 1
        return self.nth is None or self.seen == self.nth


class RuleBook(list["Rule"]):
    """The rules in force, oldest first. Remembers those that ended without ever deciding."""

    def __init__(self) -> None:
        super().__init__()
        self.ended_unused: list[Rule] = []

    def unused(self) -> list[Rule]:
        """Rules that never decided anything, those that ended first."""
        return [*self.ended_unused, *(rule for rule in self if not rule.hits)]


class Rule:
    """One programmed rule. `hits`: how often it decided something; `times` left, None: no end."""

    def __init__(self, rules: list[Rule], what: str, times: int | None = None) -> None:
        self._rules = rules
        self.what = what
        self.left = times
        self.hits = 0
        self._released = asyncio.Event()
        rules.append(self)

    def take(self) -> None:
        """Note one use; the last one removes the rule."""
        self.hits += 1
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.remove()

    def remove(self) -> None:
        """The rule ends; calls that hang on it go on. Repeatable."""
        if self.active:
            self._rules.remove(self)
            if not self.hits and isinstance(self._rules, RuleBook):
                self._rules.ended_unused.append(self)

    @property
    def active(self) -> bool:
        """Whether it still decides."""
        return self in self._rules

    def release(self) -> None:
        """Let the calls that hang on this rule go on, and hold no more."""
        self.remove()
        self._released.set()

    async def wait_released(self) -> None:
        await self._released.wait()

    def __enter__(self) -> Rule:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{self.what}, {self.hits} hits>"


class CallRule(Rule):
    """A rule on calls: a condition and what then happens."""

    def __init__(
        self, rules: list[Rule], condition: Condition, effect: Effect, what: str, times: int | None
    ) -> None:
        super().__init__(rules, what, times)
        self.condition = condition
        self.effect = effect


class FaultRules:
    """The call rules of one target, oldest first."""

    def __init__(self) -> None:
        self.rules = RuleBook()

    def concern(self, method: str) -> bool:
        """Whether any rule is about this method."""
        return bool(self.rules) and any(
            isinstance(r, CallRule) and r.condition.method == method for r in self.rules
        )

    async def apply(self, call: Call, proceed: Proceed) -> Message:
        """Answer the call: by the newest rule that fits, else by `proceed`.

        A rule that lets the call go on (delay, hang, changed answer) hands it to the next older
        rule that fits, so a delay and a failure add up.
        """
        return await self._apply(list(reversed(self.rules)), call, proceed)

    async def _apply(self, rules: list[Rule], call: Call, proceed: Proceed) -> Message:
        for number, rule in enumerate(rules):
            if isinstance(rule, CallRule) and rule.condition.fits(call):
                rule.take()
                go_on = partial(self._apply, rules[number + 1 :], call, proceed)
                return await rule.effect(rule, call, go_on)
        return await proceed()


class On:
    """`cri.on("StartContainer", pod="web")`: the start of a sentence; a verb makes the rule."""

    def __init__(
        self,
        faults: FaultRules,
        condition: Condition,
        behaves: Callable[..., Rule] | None = None,
    ) -> None:
        self._faults = faults
        self._condition = condition
        self._behaves = behaves

    def _rule(self, verb: str, effect: Effect, times: int | None) -> Rule:
        what = f"{self._condition.method} ({self._condition.match}) {verb}"
        return CallRule(self._faults.rules, self._condition, effect, what, times)

    def fails(
        self,
        code: grpc.StatusCode | str = "UNKNOWN",
        message: str = "",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call fails with that code and text, and has no effect."""
        error_code = status_code(code)
        text = message or f"{self._condition.method} was told to fail"

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

    def changes_answer(self, change: Callable[[Any], None], *, times: int | None = None) -> Rule:
        """The call takes effect; `change` alters the answer in place (stale or partial lists)."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            change(answer)
            return answer

        return self._rule("changes the answer", effect, times)

    def does(self, *behaviors: Behavior, times: int | None = None) -> Rule:
        """Containers that fit behave like this from their next start on (fakes only).

        Raises: ValueError in front of a real runtime, or for another method than StartContainer.
        """
        if self._behaves is None or self._condition.method != "StartContainer":
            raise ValueError(
                "behaviours are programmed on StartContainer of a fake runtime; "
                f"this is {self._condition.method}"
                + ("" if self._behaves else " in front of a real one")
            )
        match = self._condition.match
        return self._behaves(
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
