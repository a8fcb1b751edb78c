"""The verbs of fault rules: `cri.on("StartContainer", pod="web").fails("UNKNOWN", "boom")`.

Every verb makes one rule and returns it; rules add up (see `faults.FaultRules.apply`). Arguments
are plain data wherever the meaning allows, so that script files and other languages can say the
same. What must never happen here: a verb that cannot act on that method is taken silently.
"""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
from google.protobuf.message import Message

from fakecri.behaviors.behavior import Behavior
from fakecri.behaviors.matching import require_count
from fakecri.behaviors.words import exits
from fakecri.calls.halfway import HALVES
from fakecri.errors import CriError, status_code
from fakecri.recording.call import Call
from fakecri.rules.faults import Proceed, Rule
from fakecri.rules.on_answers import AnswerVerbs
from fakecri.rules.on_base import require_seconds, require_text
from fakecri.rules.stream_faults import CutRule, SilentRule

_CREATES: Final = ("RunPodSandbox", "CreateContainer")


class On(AnswerVerbs):
    """`cri.on("StartContainer", pod="web")`: calls that a verb makes a rule about.

    Every verb returns its `Rule`. `times`: how many calls the rule acts on before it ends; None: no
    limit.
    """

    def fails(
        self,
        code: grpc.StatusCode | str = "UNKNOWN",
        message: str = "",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call fails and has no effect. `code`: a gRPC status code or its name; `message`: by
        default `<method> was told to fail`."""
        error_code = status_code(code)
        require_text("message", message)
        text = message or f"{self._method} was told to fail"

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            raise CriError(error_code, text)

        return self._rule(f"fails {error_code.name}", effect, times)

    def fails_halfway(
        self,
        code: grpc.StatusCode | str = "UNKNOWN",
        message: str = "",
        *,
        times: int | None = None,
    ) -> Rule:
        """The call breaks off in the middle, with UNKNOWN unless `code` says another (fakes only).

        A sandbox that was run stays NOTREADY with its name taken; a stopped one keeps its network;
        a removed one stays, without containers. A container's start has failed; a stopped one has
        got its signal and runs on; a removed one is dead but still there. `message`: by default
        what containerd says. Raises ValueError for a method without such a middle, or in front of a
        real runtime.
        """
        fake = self._need_fake("calls break off halfway")
        if self._method not in HALVES:
            raise ValueError(
                f"{self._method} has no middle to break off in; wanted one of {', '.join(HALVES)}"
            )
        error_code = status_code(code)
        require_text("message", message)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            text = fake.do_half(self._method, call.request)
            raise CriError(error_code, message or text)

        return self._rule("fails halfway", effect, times)

    def delays(self, delay_s: float, *, times: int | None = None) -> Rule:
        """The call takes `delay_s` seconds longer; its effect comes after them."""
        require_seconds("delay_s", delay_s)

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await asyncio.sleep(delay_s)
            return await proceed()

        return self._rule(f"delays {delay_s} s", effect, times)

    def hangs(self, *, times: int | None = None) -> Rule:
        """The call waits until `rule.release()` or its own deadline. After a release it takes
        effect."""

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            await rule.wait_released()
            return await proceed()

        return self._rule("hangs", effect, times)

    def holds_name(self, *, times: int | None = None) -> Rule:
        """The create does not end, and its name stays reserved (fakes only).

        The name stays so also when the caller has given up: the next attempt fails with `failed to
        reserve ... name ...` (CRI-025), until `rule.release()`. A caller that still waits then gets
        its answer. Raises ValueError for a method that creates nothing, or in front of a real
        runtime.
        """
        fake = self._need_fake("a name can be held")
        if self._method not in _CREATES:
            raise ValueError(f"{self._method} takes no name; wanted one of {', '.join(_CREATES)}")

        async def effect(rule: Rule, call: Call, proceed: Proceed) -> Message:
            rule.at_release(fake.hold_name(call.request))
            await rule.wait_released()
            return await proceed()

        return self._rule("holds the name", effect, times)

    def cuts_stream(
        self,
        after: int = 0,
        code: grpc.StatusCode | str | None = "UNAVAILABLE",
        message: str = "the stream was cut",
        *,
        times: int | None = None,
    ) -> Rule:
        """The stream ends once it has sent `after` messages, also one that is open now.

        `code`: the gRPC code that it ends with; None: it ends without an error. Raises ValueError
        for a unary method.
        """
        self._need_stream()
        require_count("after", after, 0, "a number of messages from 0")
        require_text("message", message)
        error = None if code is None else CriError(status_code(code), message)
        rule = self._rules.add(CutRule(self._condition, times, after=after, error=error))
        self._streams.look_again()
        return rule

    def goes_silent(self, *, times: int | None = None) -> Rule:
        """The stream stays open and sends nothing; messages that it would have sent are lost.
        `times`: so many messages; None: all. Raises ValueError for a unary method."""
        self._need_stream()
        return self._rules.add(SilentRule(self._condition, times))

    def does(self, *behaviors: Behavior, times: int | None = None) -> Rule:
        """Containers that fit behave like this from their next start on, as by `behaves` (fakes
        only). Raises ValueError in front of a real runtime, or for another method than
        StartContainer."""
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
        return self.does(exits(code, after_s=after_s), times=times)
