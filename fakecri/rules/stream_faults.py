"""Faults of streams that are under way: cut, silent, or with changed messages.

A fault of a unary call acts once; these act on every stream that fits, also on one that was open
when the rule was made. A cut does not wait for the next message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from fakecri.errors import CriError
from fakecri.recording.call import Call
from fakecri.rules.faults import Condition, Rule, RuleBook

T = TypeVar("T")


class StreamEnded(Exception):
    """A rule ends the stream as if the runtime had nothing more to say."""


class OpenStream:
    """A stream under way. It waits for its next message, its deadline, or a cut."""

    def __init__(self, call: Call, timeout_s: float | None) -> None:
        self.call = call
        loop = asyncio.get_running_loop()
        self._deadline = None if timeout_s is None else loop.time() + timeout_s
        self._waiting: asyncio.Timeout | None = None
        self._cut: Exception | None = None

    async def next(self, message: Awaitable[T]) -> T:
        """The message that `message` gives. Raises TimeoutError at the deadline, or the error of a
        cut."""
        try:
            async with asyncio.timeout_at(self._deadline) as self._waiting:
                return await message
        except TimeoutError:
            if self._cut is not None:
                raise self._cut from None
            raise
        finally:
            self._waiting = None

    def raise_cut(self) -> None:
        """End with the error of a cut that came while nothing waited, if there was one; raises that
        error."""
        if self._cut is not None:
            raise self._cut

    def cut(self, error: Exception) -> None:
        """End the stream now, with `error`; StreamEnded: without an error."""
        self._cut = error
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())


class StreamRule(Rule):
    """A rule on streams. Its condition is asked once for each stream."""

    def __init__(self, condition: Condition, verb: str, times: int | None) -> None:
        super().__init__(f"{condition.method} ({condition.match}) {verb}", times)
        self.condition = condition
        self._chosen: dict[int, bool] = {}

    def fits(self, call: Call) -> bool:
        chosen = self._chosen.get(call.seq)
        if chosen is None:
            chosen = self._chosen[call.seq] = self.condition.fits(call)
        return chosen

    def passes(self, message: Message) -> bool:
        """Whether a message may reach the caller; it may be changed on its way."""
        return True

    def cuts(self, call: Call) -> Exception | None:
        """The error that ends the stream now; None: it goes on."""
        return None


class CutRule(StreamRule):
    """Streams end after so many messages, with `error`; None: without an error."""

    def __init__(
        self,
        condition: Condition,
        times: int | None,
        *,
        after: int,
        error: CriError | None,
    ) -> None:
        super().__init__(condition, f"is cut after {after} messages", times)
        self.after = after
        self.error = error

    def cuts(self, call: Call) -> Exception | None:
        if call.messages < self.after:
            return None
        self.take()
        return self.error or StreamEnded()


class SilentRule(StreamRule):
    """Messages are lost, and the stream stays open. Every lost message counts as a use."""

    def __init__(self, condition: Condition, times: int | None) -> None:
        super().__init__(condition, "is silent", times)

    def passes(self, message: Message) -> bool:
        self.take()
        return False


class ChangeRule(StreamRule):
    """Messages are changed on their way. Every changed message counts as a use."""

    def __init__(
        self,
        condition: Condition,
        verb: str,
        times: int | None,
        change: Callable[[Any], None],
    ) -> None:
        super().__init__(condition, verb, times)
        self.change = change

    def passes(self, message: Message) -> bool:
        self.take()
        self.change(message)
        return True


class StreamFaults:
    """The streams that are open, and the rules that act on them."""

    def __init__(self, rules: RuleBook) -> None:
        self._rules = rules
        self._open: list[OpenStream] = []

    def opened(self, stream: OpenStream) -> None:
        self._open.append(stream)
        self._cut_if_due(stream)

    def closed(self, stream: OpenStream) -> None:
        if stream in self._open:
            self._open.remove(stream)

    def look_again(self) -> None:
        """Let a rule that was just made act on the streams that are open."""
        for stream in list(self._open):
            self._cut_if_due(stream)

    def pass_on(self, stream: OpenStream, message: Message) -> Message | None:
        """The message as the caller gets it; None: it is lost."""
        rules = [r for r in self._rules if isinstance(r, StreamRule) and r.fits(stream.call)]
        if not rules:
            return message
        copy = type(message)()
        copy.CopyFrom(message)
        return copy if all(rule.passes(copy) for rule in reversed(rules)) else None

    def sent(self, stream: OpenStream) -> None:
        """Count a message that the caller has got; rules may now cut the stream."""
        self._cut_if_due(stream)

    def _cut_if_due(self, stream: OpenStream) -> None:
        for rule in reversed(self._rules):
            if isinstance(rule, StreamRule) and rule.fits(stream.call):
                error = rule.cuts(stream.call)
                if error is not None:
                    stream.cut(error)
                    return
