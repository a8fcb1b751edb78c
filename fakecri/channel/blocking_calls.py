"""Methods and calls of synchronous stubs on a fake in the same process.

A call is one of grpc.aio's on the channel's own loop; a question that must wait runs that loop. A
call that has ended answers without it: in its callbacks, and after the channel was closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio

from fakecri.channel.aio import InProcessChannel
from fakecri.channel.rpc import Metadata, Status

T = TypeVar("T")


class Waiting(Protocol):
    """What a call uses of the `BlockingChannel` it is made on."""

    @property
    def closed(self) -> bool: ...

    def start(self, begin: Callable[[InProcessChannel], T]) -> T:
        """What `begin` makes inside the loop. Raises ValueError when the channel is closed."""

    def wait(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Run the loop until that is done; what it gives."""

    def tell(self, callback: Callable[[], object]) -> None:
        """Call `callback` while the loop stands still."""


class BlockingRpcError(grpc.RpcError, grpc.Call):  # type: ignore[misc,unused-ignore]
    """A failed call, as synchronous stubs raise it: `code()`, `details()`, metadata."""

    def __init__(self, status: Status, initial_metadata: Metadata = ()) -> None:
        super().__init__(f"{status.code.name}: {status.details}")
        self._status = status
        self._initial_metadata = initial_metadata

    def code(self) -> grpc.StatusCode:
        return self._status.code

    def details(self) -> str:
        return self._status.details

    def initial_metadata(self) -> Metadata:
        return self._initial_metadata

    def trailing_metadata(self) -> Metadata:
        return self._status.trailing_metadata

    def debug_error_string(self) -> str:
        return self._status.details

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> None:
        return None

    def cancel(self) -> bool:
        return False

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False


class _Callable:
    """A method of a synchronous stub."""

    def __init__(self, channel: Waiting, method: str, *coders: Any) -> None:
        self._channel = channel
        self._method = method
        self._coders = coders


class UnaryUnary(_Callable, grpc.UnaryUnaryMultiCallable):  # type: ignore[misc,unused-ignore]
    """A method with one answer."""

    def __call__(self, request: Any, *given: Any, **options: Any) -> Any:
        return self.future(request, *given, **options).result()

    def with_call(self, request: Any, *given: Any, **options: Any) -> Any:
        call = self.future(request, *given, **options)
        return call.result(), call

    def future(
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> BlockingCall:
        return BlockingCall(
            self._channel,
            lambda channel: channel.unary_unary(self._method, *self._coders)(
                request, timeout=timeout, metadata=metadata
            ),
        )


class UnaryStream(_Callable, grpc.UnaryStreamMultiCallable):  # type: ignore[misc,unused-ignore]
    """A method with a stream of answers."""

    def __call__(
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> BlockingStream:
        return BlockingStream(
            self._channel,
            lambda channel: channel.unary_stream(self._method, *self._coders)(
                request, timeout=timeout, metadata=metadata
            ),
        )


class _Told(grpc.Call, grpc.Future):  # type: ignore[misc,unused-ignore]
    """What both kinds of calls tell; each question that must wait runs the channel's loop."""

    def __init__(self, channel: Waiting, begin: Callable[[InProcessChannel], Any]) -> None:
        self._channel = channel
        self._call, self._outcome = channel.start(lambda inner: self._begun(begin(inner)))
        self._failure: BlockingRpcError | None = None

    def _begun(self, call: Any) -> tuple[Any, asyncio.Task[Any]]:
        outcome = asyncio.ensure_future(self._outcome_of(call))
        outcome.add_done_callback(lambda task: task.cancelled() or task.exception())  # was seen
        return call, outcome

    @staticmethod
    async def _outcome_of(call: Any) -> Any:
        raise NotImplementedError

    def _ended(self) -> Status:
        ended: asyncio.Future[Status] = self._call.rpc.status
        if ended.done():
            return ended.result()
        return self._channel.wait(lambda: asyncio.shield(ended))

    def _error(self) -> BlockingRpcError:
        if self._failure is None:
            self._failure = BlockingRpcError(self._ended(), self.initial_metadata())
        return self._failure

    def code(self) -> grpc.StatusCode:
        return self._ended().code

    def details(self) -> str:
        return self._ended().details

    def initial_metadata(self) -> Metadata:
        first: asyncio.Future[Metadata] = self._call.rpc.initial_metadata
        return first.result() if first.done() else self._channel.wait(lambda: asyncio.shield(first))

    def trailing_metadata(self) -> Metadata:
        return self._ended().trailing_metadata

    def time_remaining(self) -> float | None:
        remaining: float | None = self._call.time_remaining()
        return remaining

    def is_active(self) -> bool:
        return not self.done()

    def running(self) -> bool:
        return not self.done()

    def done(self) -> bool:
        return bool(self._call.done())

    def cancel(self) -> bool:
        return bool(self._call.cancel())

    def cancelled(self) -> bool:
        return bool(self._call.cancelled())

    def add_callback(self, callback: Callable[[], None]) -> bool:
        if self.done():
            return False
        self._call.add_done_callback(lambda _: self._channel.tell(callback))
        return True

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        """`fn` is called at once if the call has ended; it may make calls."""
        if not self.add_callback(lambda: fn(self)):
            fn(self)

    def result(self, timeout: float | None = None) -> Any:
        """The outcome; `timeout` in seconds of the channel's time. None for a stream.

        Raises BlockingRpcError for a call that failed, FutureCancelledError for one that was
        cancelled, FutureTimeoutError.
        """
        ended = self._outcome
        try:
            if ended.done():
                return ended.result()
            return self._channel.wait(lambda: asyncio.wait_for(asyncio.shield(ended), timeout))
        except grpc.aio.AioRpcError:
            raise self._error() from None
        except TimeoutError:
            raise grpc.FutureTimeoutError from None
        except asyncio.CancelledError:
            raise grpc.FutureCancelledError from None

    def exception(self, timeout: float | None = None) -> BlockingRpcError | None:
        """How the call failed, None when it did not; waits and raises as `result`."""
        try:
            self.result(timeout)
        except BlockingRpcError as error:
            return error
        return None

    def traceback(self, timeout: float | None = None) -> Any:
        error = self.exception(timeout)
        return None if error is None else error.__traceback__


class BlockingCall(_Told):
    """A call with one answer: `result()`."""

    @staticmethod
    async def _outcome_of(call: Any) -> Any:
        return await call


class BlockingStream(_Told, Iterator[Any]):
    """A call with a stream of answers: iterate over it. It is cancelled when nothing holds it."""

    @staticmethod
    async def _outcome_of(call: Any) -> None:
        call.check(await asyncio.shield(call.rpc.status))

    def __next__(self) -> Any:
        if self._channel.closed:
            if self.code() is not grpc.StatusCode.OK:
                raise self._error()
            raise StopIteration
        try:
            message = self._channel.wait(self._call.read)
        except (grpc.aio.AioRpcError, asyncio.CancelledError):
            raise self._error() from None
        if message is grpc.aio.EOF:
            raise StopIteration
        return message

    def __del__(self) -> None:
        if hasattr(self, "_call") and not self._channel.closed:
            self._call.cancel()
