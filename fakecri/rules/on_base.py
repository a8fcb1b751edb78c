"""What all verbs of fault rules need: which calls are meant, and what can act on them.

The verbs are in `on.py`, those that change answers in `on_answers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from google.protobuf.message import Message

from fakecri.behaviors.behavior import Behavior
from fakecri.cri.services import METHODS
from fakecri.rules.faults import CallRule, Condition, Effect, Rule, RuleBook
from fakecri.rules.list_faults import ITEM_FIELDS, SubjectOf
from fakecri.rules.stream_faults import StreamFaults


class Programmable(Protocol):
    """What only a fake can be told: behaviours, names that stay taken, answers from the past, calls
    that break off."""

    def behaves(
        self,
        *behaviors: Behavior,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        first_attempts: int | None = None,
        times: int | None = None,
    ) -> Rule: ...

    def hold_name(self, request: Message) -> Callable[[], None]: ...

    def as_of_now(self, method: str) -> Callable[[Message], Message]: ...

    def do_half(self, method: str, request: Message) -> str: ...


class OnBase:
    """The calls that a rule is to be about, and the books that the rule goes into."""

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

    def __repr__(self) -> str:
        return f"<on {self._method} ({self._condition.match}), no verb yet>"

    @property
    def _method(self) -> str:
        return self._condition.method

    def _rule(self, verb: str, effect: Effect, times: int | None) -> Rule:
        what = f"{self._method} ({self._condition.match}) {verb}"
        return self._rules.add(CallRule(self._condition, effect, what, times))

    def _need_stream(self) -> None:
        if not METHODS[self._method].streams:
            raise ValueError(f"{self._method} is no stream; wanted for example GetContainerEvents")

    def _need_answer(self) -> str:
        """The name of the method, which answers with one message. Raises ValueError for a
        stream."""
        if METHODS[self._method].streams:
            raise ValueError(
                f"{self._method} answers with a stream, not with one message; wanted cuts_stream, "
                "goes_silent, changes_answer, fails, delays or hangs"
            )
        return self._method

    def _need_fake(self, what: str) -> Programmable:
        if self._fake is None:
            raise ValueError(f"{what} in a fake runtime only; this one is real")
        return self._fake

    def _list_field(self) -> str:
        if self._method not in ITEM_FIELDS:
            raise ValueError(f"{self._method} answers no list; wanted for example ListContainers")
        return ITEM_FIELDS[self._method]


def require_text(name: str, value: object) -> None:
    """Check that an argument is a text. Raises ValueError, which names it."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: wanted a text, got {value!r}")


def require_seconds(name: str, value: float) -> None:
    """Check that an argument is a number of seconds from 0 on. Raises ValueError, which names
    it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{name}: wanted seconds from 0, got {value!r}")
