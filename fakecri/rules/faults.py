"""Rules on calls: when they apply, how they are counted, how they end. The verbs are in `on.py`.

A rule is made by `on(...)` and one verb, and applies from then on; as a context manager it ends
with its block. The newest rule that fits a call acts first; if it lets the call go on, the next
older one acts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from msgspec import Struct

from fakecri.behaviors.matching import Match, Subject, require_count
from fakecri.recording.call import DISTURBED, Call

Proceed: TypeAlias = Callable[[], Awaitable[Message]]
R = TypeVar("R", bound="Rule")
Place: TypeAlias = tuple[str, str, str]
Effect: TypeAlias = Callable[["Rule", Call, Proceed], Awaitable[Message]]


class Condition(Struct, eq=False):
    """When a rule applies. `nth` counts the calls that fit the rest, from 1."""

    method: str
    match: Match
    nth: int | None = None
    where: Callable[[Call], bool] | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        if self.nth is not None:
            require_count("nth", self.nth)
        if self.where is not None and not callable(self.where):
            raise TypeError(f"where: wanted a function of the call, got {self.where!r}")

    def fits(self, call: Call) -> bool:
        if call.method != self.method or not self.match.fits(call.subject):
            return False
        if self.where is not None and not self.where(call):
            return False
        self.seen += 1
        return self.nth is None or self.seen == self.nth


class RuleBook(list["Rule"]):
    """The rules in force, oldest first; `add` puts one in force, `remove` and `clear` end them. It
    also remembers rules that have ended without ever acting."""

    def __init__(self) -> None:
        super().__init__()
        self.ended_unused: list[Rule] = []
        self._by_place: dict[Place, dict[int, Rule]] = {}
        self._methods: Counter[str] = Counter()
        self._added = 0

    def add(self, rule: R) -> R:
        """Put a rule in force; returns the rule."""
        rule.book = self
        self.append(rule)
        self._added += 1
        rule.number = self._added
        self._by_place.setdefault(rule.place, {})[rule.number] = rule
        self._methods[rule.place[0]] += 1
        return rule

    def remove(self, rule: Rule) -> None:
        """End a rule. Raises: ValueError if it is not in force."""
        super().remove(rule)
        same = self._by_place[rule.place]
        del same[rule.number]
        if not same:
            del self._by_place[rule.place]
        self._methods[rule.place[0]] -= 1

    def clear(self) -> None:
        super().clear()
        self._by_place.clear()
        self._methods.clear()

    def has_any(self, method: str) -> bool:
        """Whether a rule is about calls of this method."""
        return self._methods[method] > 0

    def about(self, method: str, subject: Subject) -> list[Rule]:
        """The rules that may be about it, oldest first: each pod may have one of its own, and those
        of others are not looked at."""
        found: list[Rule] = []
        for handle in subject.handles:
            found += self._by_place.get((method, *handle), {}).values()
        return sorted(found, key=_number)

    def unused(self) -> list[Rule]:
        """The rules that never acted: those that have ended, then those in force."""
        return [*self.ended_unused, *(rule for rule in self if not rule.hits)]


def _number(rule: Rule) -> int:
    return rule.number


class Rule:
    """One programmed rule: what `on(...).verb(...)` and `behaves(...)` return. As a context manager
    it ends with its block.

    `hits`: how often it has acted. `times`: how often it may still act; None: without limit. The
    last use ends it.
    """

    def __init__(self, what: str, times: int | None = None, place: Place = ("", "", "")) -> None:
        """`place`: the method that it is about, and the `Match.handle` of its subjects; empty where
        it is about all."""
        if times is not None:
            require_count("times", times)
        self.place = place
        self.number = 0
        """Of several in a book the one with the smaller number is older."""
        self.book: RuleBook | None = None
        """Where it is in force; None: not yet added."""
        self.what = what
        self.left = times
        self.hits = 0
        self._released = asyncio.Event()
        self._at_release: list[Callable[[], None]] = []

    def take(self) -> None:
        """Count one use; the last one ends the rule."""
        self.hits += 1
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.remove()

    def remove(self) -> None:
        """End the rule. Calls that it holds up wait on for `release`. May be called again."""
        if self.book is not None and self in self.book:
            self.book.remove(self)
            if not self.hits:
                self.book.ended_unused.append(self)

    def withdraw(self) -> None:
        """Undo the rule without a trace: the script that it is part of was refused as a whole."""
        if self.book is not None and self in self.book:
            self.book.remove(self)

    @property
    def active(self) -> bool:
        """Whether it still acts on new calls."""
        return self.book is not None and self in self.book

    def release(self) -> None:
        """Let the calls that the rule holds up go on; from now on it holds up none."""
        self.remove()
        self._released.set()
        for ended in self._at_release:
            ended()
        self._at_release.clear()

    def at_release(self, ended: Callable[[], None]) -> None:
        """Call `ended` when the rule is released."""
        self._at_release.append(ended)

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
    """A rule on calls: a condition, and what happens to a call that fits."""

    def __init__(
        self, condition: Condition, effect: Effect, what: str, times: int | None = None
    ) -> None:
        super().__init__(what, times, (condition.method, *condition.match.handle))
        self.condition = condition
        self.effect = effect


class FaultRules:
    """The call rules of one target, oldest first."""

    def __init__(self, *, of_proxy: bool = False) -> None:
        self.rules = RuleBook()
        self._of_proxy = of_proxy
        """Whether a real runtime answers: then calls are marked as disturbed."""

    def concern(self, method: str) -> bool:
        """Whether any rule is about this method."""
        return self.rules.has_any(method)

    async def apply(self, call: Call, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Answer a call: by the newest rule that fits, else by `proceed`.

        A rule that lets the call go on (delay, hang, changed answer) hands it to the next older
        rule that fits, so that a delay and a failure add up.
        """
        if not self.rules:
            return await proceed()
        return await self._apply(self.rules.about(call.method, call.subject)[::-1], call, proceed)

    async def _apply(self, rules: list[Rule], call: Call, proceed: Proceed) -> Message:
        for number, rule in enumerate(rules):
            if isinstance(rule, CallRule) and rule.condition.fits(call):
                rule.take()
                self._note(call)
                go_on = partial(self._apply, rules[number + 1 :], call, proceed)
                return await rule.effect(rule, call, go_on)
        return await proceed()

    def _note(self, call: Call) -> None:
        """Mark the call of a proxy as disturbed: its outcome is not the runtime's own."""
        if self._of_proxy:
            call.disturbed = True
            if (disturbed := DISTURBED.get()) is not None:
                disturbed.append(call.method)
