"""A `grpc.aio.Channel` to a fake in the same process, for clients with asyncio stubs.

    stub = RuntimeServiceStub(cri.channel())      # any stubs: generated anew, from PyPI, kubecri's
    await stub.Version(VersionRequest(), timeout=5)

It is no socket, so it works on a `VirtualLoop`: deadlines, delays and hangs pass in virtual time.
On an ordinary loop it works in real time. Calls, streams, metadata, cancellation and errors are
those of grpc.aio: a failed call raises `grpc.aio.AioRpcError`.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from fakecri.channel.rpc import Metadata, Rpc, Status, as_metadata
from fakecri.cri.services import MAX_MESSAGE_BYTES

Coder = Callable[[Any], Any] | None


class InProcessChannel(grpc.aio.Channel):  # type: ignore[misc,unused-ignore]
    """A channel whose calls are answered by `handlers`, in the loop that the client runs on.

    It is ready at once and stays so until it is closed. Options of gRPC that need a connection
    (credentials, compression, wait_for_ready) are taken and change nothing.
    """

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler],
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._handlers = tuple(handlers)
        self._max_bytes = max_message_bytes
        self._running: weakref.WeakSet[_Call] = weakref.WeakSet()
        self._closed = asyncio.Event()

    def start(self, method: str, request: bytes, *, timeout: float | None, metadata: Any) -> Rpc:
        """Begin a call. Raises UsageError when the channel is closed."""
        if self._closed.is_set():
            raise grpc.aio.UsageError("Channel is closed.")
        return Rpc(
            self._handlers,
            method,
            request,
            metadata=as_metadata(metadata),
            timeout_s=timeout,
            max_bytes=self._max_bytes,
        )

    def remember(self, call: _Call) -> None:
        """It is cancelled when the channel closes."""
        self._running.add(call)

    def unary_unary(
        self,
        method: str,
        request_serializer: Coder = None,
        response_deserializer: Coder = None,
        _registered_method: bool | None = False,
    ) -> Any:
        return _UnaryUnary(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Coder = None,
        response_deserializer: Coder = None,
        _registered_method: bool | None = False,
    ) -> Any:
        return _UnaryStream(self, method, request_serializer, response_deserializer)

    def stream_unary(self, method: str, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{method}: no method of the CRI takes a stream of requests")

    stream_stream = stream_unary

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state = grpc.ChannelConnectivity
        return state.SHUTDOWN if self._closed.is_set() else state.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        if self.get_state() is last_observed_state:
            await self._closed.wait()

    async def channel_ready(self) -> None:
        if self._closed.is_set():
            raise grpc.aio.UsageError("Channel is closed.")

    async def close(self, grace: float | None = None) -> None:
        """Refuse calls from now on; those that run are cancelled after `grace` s (None: 0)."""
        self._closed.set()
        calls = [call for call in self._running if not call.done()]
        if grace and calls:
            await asyncio.wait([call.rpc.status for call in calls], timeout=grace)
        for call in calls:
            call.cancel()

    async def __aenter__(self) -> InProcessChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Callable:
    """A method of a stub."""

    def __init__(
        self, channel: InProcessChannel, method: str, serializer: Coder, deserializer: Coder
    ) -> None:
        self._channel = channel
        self._method = method
        self._serializer = serializer
        self._deserializer = deserializer

    def _start(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> Rpc:
        data = request if self._serializer is None else self._serializer(request)
        return self._channel.start(self._method, data, timeout=timeout, metadata=metadata)


class _UnaryUnary(_Callable, grpc.aio.UnaryUnaryMultiCallable[Any, Any]):  # type: ignore[misc,unused-ignore]
    def __call__(self, request: Any, **options: Any) -> UnaryUnaryCall:
        call = UnaryUnaryCall(self._start(request, **options), self._deserializer)
        self._channel.remember(call)
        return call


class _UnaryStream(_Callable, grpc.aio.UnaryStreamMultiCallable[Any, Any]):  # type: ignore[misc,unused-ignore]
    def __call__(self, request: Any, **options: Any) -> UnaryStreamCall:
        call = UnaryStreamCall(self._start(request, **options), self._deserializer)
        self._channel.remember(call)
        return call


class _Call:
    """What calls of both kinds tell of themselves, by grpc.aio's names."""

    def __init__(self, rpc: Rpc, deserializer: Coder) -> None:
        self.rpc = rpc
        self._deserializer = deserializer

    def _message(self, received: bytes) -> Any:
        return received if self._deserializer is None else self._deserializer(received)

    def done(self) -> bool:
        return self.rpc.status.done()

    def cancelled(self) -> bool:
        return self.done() and self.rpc.status.result().code is grpc.StatusCode.CANCELLED

    def cancel(self) -> bool:
        return self.rpc.cancel()

    def time_remaining(self) -> float | None:
        return self.rpc.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.rpc.status.add_done_callback(lambda _: callback(self))

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*await asyncio.shield(self.rpc.initial_metadata))

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*(await self._status()).trailing_metadata)

    async def code(self) -> grpc.StatusCode:
        return (await self._status()).code

    async def details(self) -> str:
        return (await self._status()).details

    async def debug_error_string(self) -> str:
        return (await self._status()).details

    async def wait_for_connection(self) -> None:
        """Wait until the server has answered in some way. Raises AioRpcError when it failed."""
        await asyncio.shield(self.rpc.initial_metadata)
        if self.done():
            self.check(self.rpc.status.result())

    async def _status(self) -> Status:
        return await asyncio.shield(self.rpc.status)

    def check(self, status: Status) -> None:
        """Check that the call succeeded. Raises AioRpcError for one that failed, CancelledError for
        one that was cancelled here."""
        if self.rpc.cancelled:
            raise asyncio.CancelledError
        if status.code is not grpc.StatusCode.OK:
            raise grpc.aio.AioRpcError(
                status.code,
                initial_metadata=grpc.aio.Metadata(*self._first_metadata()),
                trailing_metadata=grpc.aio.Metadata(*status.trailing_metadata),
                details=status.details,
                debug_error_string=status.details,
            )

    def _first_metadata(self) -> Metadata:
        metadata = self.rpc.initial_metadata
        return metadata.result() if metadata.done() else ()


class UnaryUnaryCall(_Call, grpc.aio.UnaryUnaryCall[Any, Any]):  # type: ignore[misc,unused-ignore]
    """A call with one answer: `await` it, as often as wanted."""

    def __init__(self, rpc: Rpc, deserializer: Coder) -> None:
        super().__init__(rpc, deserializer)
        self._answer: asyncio.Task[Any] | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        if self._answer is None:
            self._answer = asyncio.ensure_future(self._wait())
        try:
            return (yield from asyncio.shield(self._answer).__await__())
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def _wait(self) -> Any:
        received = await self.rpc.read()
        self.check(await self._status())
        return None if received is None else self._message(received)


class UnaryStreamCall(_Call, grpc.aio.UnaryStreamCall[Any, Any]):  # type: ignore[misc,unused-ignore]
    """A call with a stream of answers: `async for`, or `read()` until it gives `grpc.aio.EOF`."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[Any]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    async def read(self) -> Any:
        """The next message, or EOF. Raises AioRpcError at the end of a stream that failed."""
        try:
            received = await self.rpc.read()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if received is not None:
            return self._message(received)
        self.check(self.rpc.status.result())
        return grpc.aio.EOF
