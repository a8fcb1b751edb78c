"""Recorder and fault rules around the calls of a target.

`FakeCRI` and the recording proxy are `Instrumented`, so that a test asks and programs both in the
same words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from kubecri.v1.typed_calls import typed_call, typed_stream

from fakecri import channel as channels
from fakecri.behaviors.matching import Match
from fakecri.cri.foreign import exchange
from fakecri.cri.services import REQUEST_TYPES, Answerer, CriHandlers, require_method
from fakecri.errors import deadline_exceeded
from fakecri.recording.asked import Asked
from fakecri.recording.call import Call
from fakecri.recording.recorder import Recorder
from fakecri.rules.faults import Condition, FaultRules, Rule, RuleBook
from fakecri.rules.on import On
from fakecri.rules.on_base import Calls, Programmable
from fakecri.rules.stream_faults import OpenStream, StreamEnded, StreamFaults
from fakecri.rules.under_way import CallsUnderWay
from kubeobjects.arguments import arguments_told, called_often
from simclock import Clock, Delay, Latency, sleep
from simclock.latency import NO_DELAY

A = TypeVar("A")


@arguments_told
class Instrumented(Asked):
    """A call target that records calls and applies fault rules; `answerer` has the answers.

    `books`: all books of rules, in the order of `rules()`; None: that of `faults` alone. `fake`:
    what only a fake can be told; None in front of a real runtime. `call_limit`: so many calls are
    remembered; older ones are forgotten. `latency`: how long calls take beside what they do; None:
    no time.
    """

    def __init__(
        self,
        clock: Clock,
        answerer: Answerer,
        *,
        faults: FaultRules,
        books: Sequence[RuleBook] | None = None,
        under_way: CallsUnderWay | None = None,
        fake: Programmable | None = None,
        call_limit: int = 100_000,
        latency: Latency | None = None,
    ) -> None:
        self.clock = clock
        self._latency = None if latency is None or latency.none else latency
        self.recorder = Recorder(call_limit, t0_s=clock.monotonic_s())
        self.faults = faults
        self._answerer = answerer
        self._books = books or (faults.rules,)
        self._fake = fake
        self._stream_faults = StreamFaults(faults.rules)
        self._under_way = under_way or CallsUnderWay()

    # -- for clients with gRPC stubs -----------------------------------------------------------

    def channel(self) -> channels.InProcessChannel:
        """A `grpc.aio.Channel` whose calls are answered here, without a socket. asyncio stubs of
        any make work on it, on the clock of the loop they run on. It serves v1 and v1alpha2."""
        return channels.InProcessChannel([CriHandlers(self)])

    def blocking_channel(self) -> channels.BlockingChannel:
        """The same for synchronous stubs: a `grpc.Channel` with a virtual loop of its own.

        Time passes while a call waits, and in its `sleep`. Close it, or use it in a `with` block.
        """
        return channels.BlockingChannel([CriHandlers(self)])

    # -- CriTarget -----------------------------------------------------------------------------

    @typed_call
    async def call(
        self,
        method: str,
        request: Any,
        *,
        timeout_s: float | None = None,
        response: type[Any] | None = None,
    ) -> Any:
        """Answer one unary CRI call (see `fakecri.cri.services.CriTarget`).

        The request may be of any stubs of the contract; the answer is of the same stubs, or of the
        class `response`. Raises CriError; ValueError for a method CRI does not have; TypeError for
        another method's message.
        """
        in_theirs = None
        if type(request) is not REQUEST_TYPES.get(method) or response is not None:
            request, in_theirs = exchange(method, request, response)
        call = self.recorder.begin(method, request, self.clock.monotonic_s(), timeout_s)
        answer = None
        try:
            if self._latency is None and not (self.faults.rules and self.faults.concern(method)):
                answer = self._answerer.call_now(method, request)
            if answer is None:
                answer = await self._in_time(call, request, timeout_s)
        except TimeoutError:
            raise self._failed(call, deadline_exceeded()) from None
        except BaseException as error:
            self._failed(call, error)
            raise
        self.recorder.finish(call, self.clock.monotonic_s(), answer)
        return answer if in_theirs is None else in_theirs(answer)

    @property
    def in_bytes(self) -> Mapping[str, type[Message]]:
        """The methods whose answers `call_bytes` takes as bytes, with the types of their
        responses."""
        return self._answerer.in_bytes

    @called_often
    async def call_bytes(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> bytes:
        """As `call`, with the answer as bytes.

        Where the fake can tell that an answer has not changed since the last call, the bytes are
        the very same object, and the caller need not look at them again.
        """
        answerer, faults = self._answerer, self.faults
        kind = answerer.in_bytes.get(method)
        fits = type(request) is REQUEST_TYPES.get(method)
        if kind is None or not fits or (faults.rules and faults.concern(method)):
            answer: Message = await self.call(method, request, timeout_s=timeout_s)
            return answer.SerializeToString()
        call = self.recorder.begin(method, request, self.clock.monotonic_s(), timeout_s)
        try:
            if self._latency is None:
                data = await answerer.call_bytes(method, request, timeout_s)
            else:
                work = partial(answerer.call_bytes, method, request, timeout_s)
                delayed = partial(self._delayed, call, work)
                data = await self._under_way.answer(delayed, timeout_s)
        except TimeoutError:
            raise self._failed(call, deadline_exceeded()) from None
        except BaseException as error:
            self._failed(call, error)
            raise
        self.recorder.finish_bytes(call, self.clock.monotonic_s(), kind, data)
        return data

    def _failed(self, call: Call, error: BaseException) -> BaseException:
        """Record the failure of a call; returns it."""
        self.recorder.finish(call, self.clock.monotonic_s(), error=_told(error))
        return error

    async def _in_time(self, call: Call, request: Message, timeout_s: float | None) -> Message:
        """The answer after all rules, a message that belongs to the caller. Raises TimeoutError at
        the deadline, or the error that broke the call off."""
        proceed = partial(self._answerer.call, call.method, request, timeout_s)
        apply = self.faults.apply if self._latency is None else self._delayed
        ruled = bool(self.faults.rules)
        response: Message = await self._under_way.answer(partial(apply, call, proceed), timeout_s)
        if not ruled:
            return response
        copy = type(response)()  # a rule may give one message to many
        copy.CopyFrom(response)
        return copy

    async def _delayed(self, call: Call, work: Callable[[], Awaitable[A]]) -> A:
        """The answer after all rules and the call's latency.

        The rules decide when the call arrives, the work is done inside the call's time, and a
        failure takes that time, too.
        """
        delay, begun = self._delay_of(call.method), False

        async def proceed() -> A:
            nonlocal begun
            begun = True
            if delay.before_s:
                await sleep(delay.before_s)
            return await work()

        try:
            answer: A = await self.faults.apply(call, proceed)
        except grpc.RpcError:
            await sleep(delay.after_s if begun else sum(delay))
            raise
        if delay.after_s:
            await sleep(delay.after_s)
        return answer

    def _delay_of(self, method: str) -> Delay:
        return NO_DELAY if self._latency is None else self._latency.of(method)

    @typed_stream
    async def stream(
        self,
        method: str,
        request: Any,
        *,
        timeout_s: float | None = None,
        response: type[Any] | None = None,
    ) -> AsyncIterator[Any]:
        """Answer one streaming CRI call, with messages as `call` gives them. Rules on calls decide
        at its start, rules on streams at every message."""
        in_theirs = None
        if type(request) is not REQUEST_TYPES.get(method) or response is not None:
            request, in_theirs = exchange(method, request, response)
        call = self.recorder.begin(method, request, self.clock.monotonic_s(), timeout_s)
        stream = OpenStream(call, timeout_s)
        try:
            async for message in self._messages(stream, request, timeout_s):
                yield message if in_theirs is None else in_theirs(message)
        except TimeoutError:
            raise self._failed(call, deadline_exceeded()) from None
        except BaseException as error:
            self._failed(call, error)
            raise
        finally:
            self._stream_faults.closed(stream)
        self.recorder.finish(call, self.clock.monotonic_s())

    async def _messages(
        self, stream: OpenStream, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        """The messages that reach the caller, until the stream ends, is cut, or is late."""
        call = stream.call

        async def start() -> Message:
            if latency_s := sum(self._delay_of(call.method)):
                await sleep(latency_s)
            return request

        self._under_way.held_streams[stream] = None
        try:
            await stream.next(self.faults.apply(call, start))
        finally:
            del self._under_way.held_streams[stream]
        self._stream_faults.opened(stream)
        answers = aiter(self._answerer.stream(call.method, request, timeout_s))
        try:
            while True:
                stream.raise_cut()
                message = await stream.next(anext(answers))
                passed = self._stream_faults.pass_on(stream, message)
                if passed is not None:
                    call.messages += 1
                    yield passed
                    self._stream_faults.sent(stream)
        except (StopAsyncIteration, StreamEnded):
            return
        finally:
            await close(answers)

    # -- programming ---------------------------------------------------------------------------

    def on(
        self,
        method: str,
        *,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
        attempt: int | None = None,
        nth: int | None = None,
        where: Callable[[Call], bool] | None = None,
    ) -> On:
        """Begin a rule on calls of `method` (the bare RPC name, such as StartContainer); a verb of
        the `On` that is returned makes it: `cri.on("StartContainer", pod="web").fails("UNKNOWN",
        "boom")`.

        The rule is about calls that fit everything given: `pod` (a name or a UID), `container` and
        `image` may be patterns (`web*`); `where` is a predicate over the recorded call; `nth` picks
        the n-th call that fits the rest, counted from 1. Raises ValueError for a method that CRI
        does not have.
        """
        require_method(method)
        match = Match(pod, container, image, attempt)
        condition = Condition(method, match, nth, where)
        book, streams = self.faults.rules, self._stream_faults
        subject_of = self.recorder.subject_of_id
        return On(Calls(book, streams, condition, subject_of, self._fake))

    def rules(self) -> list[Rule]:
        """The rules in force: those on what containers do, then those on calls, each oldest
        first."""
        return [rule for book in self._books for rule in book]

    def unused_rules(self) -> list[Rule]:
        """The rules that never acted, also those that have ended."""
        return [rule for book in self._books for rule in book.unused()]


def _told(error: Any) -> tuple[str, str]:
    """The code and the text that a failure is recorded with. A mistake in a rule or a test's
    handler has no status of a runtime."""
    if isinstance(error, grpc.RpcError):
        return error.code().name, error.details() or ""
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED", "the caller went away"
    return "INTERNAL", f"{type(error).__name__}: {error}"


async def close(answers: AsyncIterator[Message]) -> None:
    """End a stream of answers that is not read to its end."""
    aclose = getattr(answers, "aclose", None)
    if aclose is not None:
        await aclose()
