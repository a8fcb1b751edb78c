"""The verbs of fault rules: `cri.on("StartContainer", pod="web").fails("UNKNOWN", "boom")`.

Every verb makes one rule and returns it; rules add up (see `faults.FaultRules.apply`). Most verbs
are words (`on_base.Fault`): plain data, so that script files and other languages can say the same.
Here are those, and the few that take Python's functions and messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec

from google.protobuf.message import Message

from fakecri.cri.foreign import own_answer
from fakecri.recording.call import Call
from fakecri.rules import verbs
from fakecri.rules.faults import Proceed, Rule
from fakecri.rules.on_base import Calls, Fault
from fakecri.words.behaviors import Behavior, exits
from kubeobjects.arguments import arguments_told

P = ParamSpec("P")
VERBS: Final = Fault.known
"""All faults by their verbs."""


class verb(Generic[P]):
    """A fault as a method of `On`: it takes the fields of the fault, and returns the rule."""

    def __init__(self, fault: Callable[P, Fault]) -> None:
        self._fault = fault

    def __get__(self, on: On | None, owner: type[On]) -> Callable[P, Rule]:
        def said(*args: P.args, **kwargs: P.kwargs) -> Rule:
            fault = self._fault(*args, **kwargs)
            assert on is not None, "a verb is said of calls: cri.on(...)"
            return fault.rule_for(on.calls)

        said.__name__, said.__doc__ = self._fault.__name__, self._fault.__doc__
        said.__signature__ = self._signature  # type: ignore[attr-defined]
        return said

    @cached_property
    def _signature(self) -> Signature:
        return signature(self._fault).replace(return_annotation=Rule)


@arguments_told
class On:
    """`cri.on("StartContainer", pod="web")`: calls that a verb makes a rule about.

    Every verb returns its `Rule`. `times`: how many calls the rule acts on before it ends; None: no
    limit.
    """

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def __repr__(self) -> str:
        return f"<on {self.calls.method} ({self.calls.condition.match}), no verb yet>"

    fails = verb(verbs.fails)
    fails_halfway = verb(verbs.fails_halfway)
    delays = verb(verbs.delays)
    hangs = verb(verbs.hangs)
    loses_answer = verb(verbs.loses_answer)
    answers_late = verb(verbs.answers_late)
    holds_name = verb(verbs.holds_name)
    goes_stale = verb(verbs.goes_stale)
    leaves_out = verb(verbs.leaves_out)
    repeats = verb(verbs.repeats)
    turns_back_time = verb(verbs.turns_back_time)
    cuts_stream = verb(verbs.cuts_stream)
    goes_silent = verb(verbs.goes_silent)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The verb of a fault that is declared elsewhere."""
            if name not in VERBS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return verb(VERBS[name]).__get__(self, type(self))

    def answers(self, answer: Message | Callable[[Any], Any], *, times: int | None = None) -> Rule:
        """The call has no effect and answers this message, or what a function makes of the
        request, which it gets in kubecri's class. Messages may be of any stubs of the contract.
        Raises ValueError for a stream, TypeError for another method's answer; a function that
        gives one is the mistake of the call."""
        method = self.calls.need_answer()
        if not callable(answer):
            answer = own_answer(method, answer)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            made = answer(call.request) if callable(answer) else answer
            return own_answer(method, made)

        return self.calls.rule("answers", effect, times)

    def changes_answer(
        self, change: Callable[[Any], None], *, verb: str = "changes", times: int | None = None
    ) -> Rule:
        """The call takes effect; `change` alters its answer in place; of a stream, each message.
        `verb`: what texts call the rule."""
        if not callable(change):
            raise TypeError(f"change: wanted a function of the answer, got {change!r}")
        return self.calls.change(change, verb, times)

    def does(self, *behaviors: Behavior, times: int | None = None) -> Rule:
        """Containers that fit behave like this from their next start on, as by `behaves` (fakes
        only). Raises ValueError in front of a real runtime, or for another method than
        StartContainer."""
        fake, method = self.calls.fake, self.calls.method
        if fake is None or method != "StartContainer":
            raise ValueError(
                "behaviours are programmed on StartContainer of a fake runtime; "
                f"this is {method}" + ("" if fake else " in front of a real one")
            )
        match = self.calls.condition.match
        return fake.behaves(
            *behaviors,
            pod=match.pod,
            container=match.container,
            image=match.image,
            attempt=match.attempt,
            times=times,
        )

    def exits(self, code: int = 0, *, after_s: float = 0.0, times: int | None = None) -> Rule:
        """Short for `does(exits(code, after_s=...))`."""
        return self.does(exits(code, after_s=after_s), times=times)
