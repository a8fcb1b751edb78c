"""What all verbs of fault rules need: which calls are meant, and what can act on them.

A verb is a word, a `Fault`: its fields, and the rule that it makes of them. `on.On` has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias

import grpc
from google.protobuf.message import Message

from fakecri.cri.services import METHODS
from fakecri.recording.call import Call
from fakecri.rules.faults import CallRule, Condition, Effect, Proceed, Rule, RuleBook
from fakecri.rules.list_faults import ITEM_FIELDS, SubjectOf
from fakecri.rules.stream_faults import ChangeRule, StreamFaults
from fakecri.words.behaviors import Behavior
from fakecri.words.kinds import Kind, seconds, whole
from fakecri.words.word import Field, Word


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


class Calls:
    """The calls that a rule is to be about, and the books that the rule goes into. `fake` is None
    in front of a real runtime."""

    def __init__(
        self,
        rules: RuleBook,
        streams: StreamFaults,
        condition: Condition,
        subject_of: SubjectOf,
        fake: Programmable | None = None,
    ) -> None:
        self.rules = rules
        self.streams = streams
        self.condition = condition
        self.subject_of = subject_of
        self.fake = fake
        self.method = condition.method

    def rule(self, verb: str, effect: Effect, times: int | None) -> Rule:
        """A rule that is in force from now on, for so many calls. `verb`: what texts call it."""
        what = f"{self.method} ({self.condition.match}) {verb}"
        return self.rules.add(CallRule(self.condition, effect, what, times))

    def change(self, change: Callable[[Any], None], verb: str, times: int | None) -> Rule:
        """A rule that alters the answers in place; of a stream, each message."""
        if METHODS[self.method].streams:
            return self.rules.add(ChangeRule(self.condition, verb, times, change))

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            answer = await proceed()
            change(answer)
            return answer

        return self.rule(verb, effect, times)

    def need_stream(self) -> None:
        """Raises ValueError for a unary method."""
        if not METHODS[self.method].streams:
            raise ValueError(f"{self.method} is no stream; wanted for example GetContainerEvents")

    def need_answer(self) -> str:
        """The name of the method, which answers with one message. Raises ValueError for a
        stream."""
        if METHODS[self.method].streams:
            raise ValueError(
                f"{self.method} answers with a stream, not with one message; wanted cuts_stream, "
                "goes_silent, changes_answer, fails, delays or hangs"
            )
        return self.method

    def need_fake(self, what: str) -> Programmable:
        """The fake. Raises ValueError in front of a real runtime; `what` cannot be there."""
        if self.fake is None:
            raise ValueError(f"{what} in a fake runtime only; this one is real")
        return self.fake

    def list_field(self) -> str:
        """The field of the answer that is a list. Raises ValueError if there is none."""
        if self.method not in ITEM_FIELDS:
            raise ValueError(f"{self.method} answers no list; wanted for example ListContainers")
        return ITEM_FIELDS[self.method]


Duration: TypeAlias = Annotated[float, seconds("seconds from 0")]
Status: TypeAlias = Annotated[grpc.StatusCode | str, Kind("StatusCode")]
"""A gRPC status code of an error, or its name; the rule that is made of it checks it."""


class Fault(Word):
    """What is done to calls."""

    known: ClassVar[dict[str, type[Fault]]] = {}
    """All of them by their verbs."""

    _: KW_ONLY
    times: (
        Annotated[
            int,
            whole(1, wanted="1 or more", name="Count"),
            "so many calls; no limit, if not given",
        ]
        | None
    ) = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.__name__.startswith("_"):
            Fault.known[cls.__name__] = cls

    @classmethod
    def place(cls, field: Field) -> str:
        return f"{field.said}: "

    def rule_for(self, calls: Calls) -> Rule:
        """The rule that it makes. Raises ValueError for calls that it cannot be done to."""
        raise NotImplementedError
