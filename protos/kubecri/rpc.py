"""What the methods of gRPC stubs take and give, for type checkers: grpcio itself brings no types.

A stub over `grpc.insecure_channel` has `Unary` and `ServerStream` methods, one over a channel of
`grpc.aio` has `AsyncUnary` and `AsyncServerStream` ones. Nothing here does anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]
"""Keys and values that go with a call, or come with its answer."""
Q_contra = TypeVar("Q_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Channel(Protocol):
    """A channel whose stubs block: of `grpc.insecure_channel` and its like."""

    def subscribe(self, callback: Callable[[Any], None], try_to_connect: bool = False) -> None: ...


class AsyncChannel(Protocol):
    """A channel whose stubs are awaited: of `grpc.aio`."""

    async def channel_ready(self) -> None: ...


class UnderWay(Protocol):
    """A call that goes on, of a blocking stub; `code()` and `details()` wait for its end."""

    def cancel(self) -> bool: ...
    def is_active(self) -> bool: ...
    def time_remaining(self) -> float | None: ...
    def add_callback(self, callback: Callable[[], None]) -> bool: ...
    def initial_metadata(self) -> Any: ...
    def trailing_metadata(self) -> Any: ...
    def code(self) -> Any: ...
    def details(self) -> str: ...


class Answer(UnderWay, Protocol[R_co]):
    """The answer of a unary call that is waited for later."""

    def result(self, timeout: float | None = None) -> R_co: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def add_done_callback(self, fn: Callable[[Any], None]) -> None: ...


class Answers(UnderWay, Iterator[R_co], Protocol[R_co]):
    """The messages of a streaming call."""


class Unary(Protocol[Q_contra, R_co]):
    """One request, one answer; the caller's thread waits."""

    def __call__(
        self,
        request: Q_contra,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> R_co: ...

    def with_call(
        self,
        request: Q_contra,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> tuple[R_co, UnderWay]: ...

    def future(
        self,
        request: Q_contra,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> Answer[R_co]: ...


class ServerStream(Protocol[Q_contra, R_co]):
    """One request, a stream of answers; the caller's thread waits for each."""

    def __call__(
        self,
        request: Q_contra,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> Answers[R_co]: ...


class AsyncUnderWay(Protocol):
    """A call that goes on, of an asynchronous stub."""

    def cancel(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def done(self) -> bool: ...
    def time_remaining(self) -> float | None: ...
    def add_done_callback(self, callback: Callable[[Any], None]) -> None: ...
    async def initial_metadata(self) -> Any: ...
    async def trailing_metadata(self) -> Any: ...
    async def code(self) -> Any: ...
    async def details(self) -> str: ...
    async def wait_for_connection(self) -> None: ...


class AsyncAnswer(AsyncUnderWay, Awaitable[R_co], Protocol[R_co]):
    """The answer of a unary call; `await` gives the message."""


class AsyncAnswers(AsyncUnderWay, Protocol[R_co]):
    """The messages of a streaming call, for `async for`; `read` gives the next, or `grpc.aio.EOF`."""

    def __aiter__(self) -> AsyncIterator[R_co]: ...
    async def read(self) -> Any: ...


class AsyncUnary(Protocol[Q_contra, R_co]):
    """One request, one answer to `await`."""

    def __call__(
        self,
        request: Q_contra,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> AsyncAnswer[R_co]: ...


class AsyncServerStream(Protocol[Q_contra, R_co]):
    """One request, a stream of answers for `async for`."""

    def __call__(
        self,
        request: Q_contra,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> AsyncAnswers[R_co]: ...
