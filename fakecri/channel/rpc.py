"""One RPC inside a process: it runs an asynchronous gRPC handler and keeps what the client gets.

The server's half sees an ordinary `grpc.aio.ServicerContext`. The client's half reads messages,
metadata and the status. A call ends once: by its handler, by its deadline, or because the client
cancels it; what comes later is dropped. Deadlines and cancellations end the handler's task, too.

What must never happen here: a message object is shared by both sides (they get bytes), or a call
stays open when its handler has failed in an unforeseen way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from msgspec import Struct

log = logging.getLogger("fakecri.channel.rpc")

Metadata = tuple[tuple[str, str | bytes], ...]

_WAITING_MESSAGES: Final = 64
"""So many messages of a stream wait for the client; then the handler waits."""
DEADLINE_DETAILS: Final = "Deadline Exceeded"
CANCEL_DETAILS: Final = "Locally cancelled by application!"


class Status(Struct, frozen=True):
    """How a call ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing_metadata: Metadata = ()


class _Aborted(Exception):
    """Ends a handler that has called `abort`."""


def as_metadata(metadata: Any) -> Metadata:
    """Metadata of any shape that gRPC takes, as pairs; None is none."""
    return tuple((key, value) for key, value in metadata or ())


class Rpc:
    """A call that runs. Made inside a running loop; the handler starts with the next pass.

    `timeout_s`: seconds until the deadline on the loop's clock, None for none; below 0 the call
    ends without its handler. `max_bytes`: of a message in either direction.
    """

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler],
        method: str,
        request: bytes,
        *,
        metadata: Metadata,
        timeout_s: float | None,
        max_bytes: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._handlers = handlers
        self._method = method
        self.metadata = metadata
        self._max_bytes = max_bytes
        self.deadline = None if timeout_s is None else self._loop.time() + timeout_s
        self.status: asyncio.Future[Status] = self._loop.create_future()
        self.initial_metadata: asyncio.Future[Metadata] = self._loop.create_future()
        self.cancelled = False
        """The client cancelled it."""
        self._messages: deque[bytes] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._timer = (
            None if self.deadline is None else self._loop.call_at(self.deadline, self._too_late)
        )
        self._task = self._loop.create_task(self._run(request), name=f"serves {method}")
        if timeout_s is not None and timeout_s < 0:
            self._too_late()

    # -- the client's half -----------------------------------------------------------

    async def read(self) -> bytes | None:
        """The next message; None when the call has ended and all were read."""
        while not self._messages:
            if self.status.done():
                return None
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._messages.popleft()

    def cancel(self) -> bool:
        """End the call with CANCELLED. False: it had ended before."""
        if self.status.done():
            return False
        self.cancelled = True
        self._drop(Status(grpc.StatusCode.CANCELLED, CANCEL_DETAILS))
        return True

    def time_remaining(self) -> float | None:
        """Seconds to the deadline, 0 after it; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - self._loop.time())

    # -- the server's half -----------------------------------------------------------

    async def write(self, message: bytes) -> None:
        """Give the client a message; waits while too many are unread."""
        if len(message) > self._max_bytes:
            raise _TooLarge(len(message), self._max_bytes)
        while len(self._messages) >= _WAITING_MESSAGES:
            self._room.clear()
            await self._room.wait()
        self.begin(())
        self._messages.append(message)
        self._news.set()

    def begin(self, metadata: Metadata) -> None:
        """Send the initial metadata, unless they were sent."""
        if not self.initial_metadata.done():
            self.initial_metadata.set_result(metadata)

    async def _run(self, request: bytes) -> None:
        context = ServerContext(self)
        try:
            await self._serve(request, context)
            status = context.status()
        except _Aborted:
            status = context.status()
        except _TooLarge as error:
            status = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except asyncio.CancelledError:
            status = Status(grpc.StatusCode.CANCELLED, "RPC cancelled by the server")
        except Exception as error:
            log.exception("%s failed", self._method)
            text = f"Unexpected {type(error)}: {error}"
            status = Status(grpc.StatusCode.UNKNOWN, text, context.trailing)
        self._end(status)

    async def _serve(self, request: bytes, context: ServerContext) -> None:
        handler = self._handler()
        if handler is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        if len(request) > self._max_bytes:
            raise _TooLarge(len(request), self._max_bytes)
        context.serializer = handler.response_serializer
        read = handler.request_deserializer
        message = request if read is None else read(request)
        if handler.response_streaming:
            async for answer in handler.unary_stream(message, context):
                await context.write(answer)
        else:
            await context.write(await handler.unary_unary(message, context))

    def _handler(self) -> Any:
        details = _CallDetails(self._method, self.metadata)
        services = (handler.service(details) for handler in self._handlers)
        return next((service for service in services if service is not None), None)

    def _too_late(self) -> None:
        self._drop(Status(grpc.StatusCode.DEADLINE_EXCEEDED, DEADLINE_DETAILS))

    def _drop(self, status: Status) -> None:
        """End it from the client's side: what was not read is lost, the handler is cancelled."""
        self._messages.clear()
        self._end(status)
        self._task.cancel()

    def _end(self, status: Status) -> None:
        if self.status.done():
            return
        if status.code is grpc.StatusCode.DEADLINE_EXCEEDED and self.time_remaining() == 0:
            # Handler and client saw the same deadline pass: the client speaks first.
            status = Status(status.code, DEADLINE_DETAILS, status.trailing_metadata)
        if self._timer is not None:
            self._timer.cancel()
        self.begin(())
        self.status.set_result(status)
        self._news.set()


class _TooLarge(Exception):
    """A message is larger than the channel takes; the text is gRPC's."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"Received message larger than max ({size} vs. {limit})")


@dataclass(frozen=True, slots=True)
class _CallDetails(grpc.HandlerCallDetails):  # type: ignore[misc,unused-ignore]
    """What a generic handler is asked with."""

    method: str
    invocation_metadata: Metadata


class ServerContext(grpc.aio.ServicerContext[Any, Any]):  # type: ignore[misc,unused-ignore]
    """The context of a handler, as an asyncio server gives it."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._code = grpc.StatusCode.OK
        self._details = ""
        self.trailing: Metadata = ()
        self.serializer: Callable[[Any], bytes] | None = None
        """Of the handler's answers; None: they are bytes."""

    def status(self) -> Status:
        """What the handler has set: OK, unless it said otherwise."""
        return Status(self._code, self._details, self.trailing)

    async def read(self) -> NoReturn:
        raise NotImplementedError("requests of the CRI are no streams")

    async def write(self, message: Any) -> None:
        await self._rpc.write(message if self.serializer is None else self.serializer(message))

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        self._code, self._details = code, details
        self.trailing = as_metadata(trailing_metadata) or self.trailing
        raise _Aborted

    async def abort_with_status(self, status: Any) -> NoReturn:
        await self.abort(status.code, status.details, status.trailing_metadata)

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        self._rpc.begin(as_metadata(initial_metadata))

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self.trailing = as_metadata(trailing_metadata)

    def invocation_metadata(self) -> Metadata:
        return self._rpc.metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Metadata:
        return self.trailing

    def set_compression(self, compression: grpc.Compression) -> None:
        """Nothing is compressed inside a process."""

    def disable_next_message_compression(self) -> None:
        """Nothing is compressed inside a process."""

    def peer(self) -> str:
        return "in-process"

    def peer_identities(self) -> None:
        return None

    def peer_identity_key(self) -> None:
        return None

    def auth_context(self) -> dict[str, Any]:
        return {}

    def time_remaining(self) -> float | None:
        return self._rpc.time_remaining()

    def cancelled(self) -> bool:
        return self._rpc.cancelled

    def done(self) -> bool:
        return self._rpc.status.done()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._rpc.status.add_done_callback(lambda _: callback(self))
