"""A `grpc.Channel` to a fake in the same process, for clients with synchronous stubs.

    with cri.blocking_channel() as channel:
        stub = RuntimeServiceStub(channel)
        stub.Version(VersionRequest(), timeout=5)
        channel.sleep(3600)                        # an hour passes for the containers

A synchronous client knows no loop, so the channel has one of its own, a `VirtualLoop`: it runs
while a call waits or in `sleep`, and stands still otherwise. That needs no thread, and the same
program gives the same run each time. A client that sleeps by itself is given the channel's
`sleep` in place of `time.sleep`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from fakecri.channel.aio import InProcessChannel
from fakecri.channel.rpc import Metadata, Status, as_metadata
from simtime import Clock, VirtualLoop

T = TypeVar("T")


class BlockingChannel(grpc.Channel):  # type: ignore[misc,unused-ignore]
    """A channel whose calls are answered by `handlers` on a virtual loop of its own."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self._channel: InProcessChannel | None = InProcessChannel(handlers)

    @property
    def clock(self) -> Clock:
        """The channel's time."""
        clock: Clock = self._runner.get_loop().clock  # type: ignore[attr-defined]
        return clock

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass for the fake; takes no real time."""
        self.wait(lambda: asyncio.sleep(seconds))

    def wait(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Run the loop until what `begin` starts has ended.

        Raises RuntimeError where an asyncio loop runs in this thread: it would stand still.
        """
        if _loop_runs():
            raise RuntimeError(
                "a blocking call cannot wait while an asyncio loop runs in this thread: use "
                "channel() with asyncio stubs, or fakecri.serve() and a socket"
            )

        async def main() -> T:
            return await begin()

        return self._runner.run(main())

    def start(self, begin: Callable[[InProcessChannel], T]) -> T:
        """What `begin` makes inside the loop. Raises ValueError when the channel is closed."""
        channel = self._channel
        if channel is None:
            raise ValueError("Cannot invoke RPC on closed channel!")

        async def made() -> T:
            return begin(channel)

        return self.wait(made)

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        return _UnaryUnary(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        return _UnaryStream(self, method, request_serializer, response_deserializer)

    def stream_unary(self, method: str, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{method}: no method of the CRI takes a stream of requests")

    stream_stream = stream_unary

    def subscribe(
        self,
        callback: Callable[[grpc.ChannelConnectivity], None],
        try_to_connect: bool | None = None,
    ) -> None:
        """Tells `callback` at once that the channel is ready; that does not change."""
        callback(grpc.ChannelConnectivity.READY)

    def unsubscribe(self, callback: Callable[[grpc.ChannelConnectivity], None]) -> None:
        """Nothing would be told."""

    def close(self) -> None:
        """Cancel what runs and end the loop; a second time changes nothing."""
        channel, self._channel = self._channel, None
        if channel is not None:
            self.wait(channel.close)
            self._runner.close()

    def __enter__(self) -> BlockingChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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

    def __init__(self, channel: BlockingChannel, method: str, *coders: Any) -> None:
        self._channel = channel
        self._method = method
        self._coders = coders


class _UnaryUnary(_Callable, grpc.UnaryUnaryMultiCallable):  # type: ignore[misc,unused-ignore]
    def __call__(self, request: Any, timeout: float | None = None, **options: Any) -> Any:
        return self.future(request, timeout, **options).result()

    def with_call(self, request: Any, timeout: float | None = None, **options: Any) -> Any:
        call = self.future(request, timeout, **options)
        return call.result(), call

    def future(self, request: Any, timeout: float | None = None, **options: Any) -> BlockingCall:
        return BlockingCall(
            self._channel,
            lambda channel: channel.unary_unary(self._method, *self._coders)(
                request, timeout=timeout, **options
            ),
        )


class _UnaryStream(_Callable, grpc.UnaryStreamMultiCallable):  # type: ignore[misc,unused-ignore]
    def __call__(
        self, request: Any, timeout: float | None = None, **options: Any
    ) -> BlockingStream:
        return BlockingStream(
            self._channel,
            lambda channel: channel.unary_stream(self._method, *self._coders)(
                request, timeout=timeout, **options
            ),
        )


class _Told(grpc.Call, grpc.Future):  # type: ignore[misc,unused-ignore]
    """What both kinds of calls tell; each question that must wait runs the channel's loop."""

    def __init__(self, channel: BlockingChannel, begin: Callable[[InProcessChannel], Any]) -> None:
        self._channel = channel
        self._call: Any = channel.start(begin)

    def _ended(self) -> Status:
        status: Status = self._channel.wait(lambda: asyncio.shield(self._call.rpc.status))
        return status

    def _error(self) -> BlockingRpcError:
        return BlockingRpcError(self._ended(), self.initial_metadata())

    def code(self) -> grpc.StatusCode:
        return self._ended().code

    def details(self) -> str:
        return self._ended().details

    def initial_metadata(self) -> Metadata:
        return as_metadata(self._channel.wait(self._call.initial_metadata))

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
        self._call.add_done_callback(lambda _: callback())
        return True

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        self._call.add_done_callback(lambda _: fn(self))

    def result(self, timeout: float | None = None) -> Any:
        """The outcome; `timeout` in seconds of the channel's time.

        Raises BlockingRpcError for a call that failed, FutureCancelledError for one that was
        cancelled, FutureTimeoutError.
        """
        try:
            return self._channel.wait(lambda: asyncio.wait_for(self._outcome(), timeout))
        except grpc.aio.AioRpcError:
            raise self._error() from None
        except TimeoutError:
            raise grpc.FutureTimeoutError from None
        except asyncio.CancelledError:
            raise grpc.FutureCancelledError from None

    async def _outcome(self) -> Any:
        raise NotImplementedError

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

    async def _outcome(self) -> Any:
        answer = asyncio.ensure_future(_awaited(self._call))
        return await asyncio.shield(answer)  # a time-out of `result` leaves the call alone


class BlockingStream(_Told, Iterator[Any]):
    """A call with a stream of answers: iterate over it."""

    def __next__(self) -> Any:
        try:
            message = self._channel.wait(self._call.read)
        except (grpc.aio.AioRpcError, asyncio.CancelledError):
            raise self._error() from None
        if message is grpc.aio.EOF:
            raise StopIteration
        return message

    async def _outcome(self) -> Any:
        return await asyncio.shield(self._call.rpc.status)


async def _awaited(call: Any) -> Any:
    return await call
