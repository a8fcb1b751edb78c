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
import logging
import threading  # noqa: TID251 - a client may have threads; they take turns
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc

from fakecri.channel.aio import InProcessChannel
from fakecri.channel.blocking_calls import UnaryStream, UnaryUnary
from simclock import Clock, VirtualLoop

log = logging.getLogger("fakecri.channel.blocking")

T = TypeVar("T")


class BlockingChannel(grpc.Channel):  # type: ignore[misc,unused-ignore]
    """A channel whose calls are answered by `handlers` on a virtual loop of its own."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self._channel: InProcessChannel | None = InProcessChannel(handlers)
        self._one_thread = threading.RLock()
        self._told: deque[Callable[[], object]] = deque()
        self._telling = asyncio.Event()

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

        Raises RuntimeError where an asyncio loop runs in this thread: it would stand still;
        ValueError when the channel is closed. Threads wait one after another.
        """
        if _loop_runs():
            raise RuntimeError(
                "a blocking call cannot wait while an asyncio loop runs in this thread: use "
                "channel() with asyncio stubs, or fakecri.serve() and a socket"
            )

        with self._one_thread:
            if self._channel is None:
                raise ValueError("Cannot wait on a closed channel!")
            return self._run(begin)

    def _run(self, begin: Callable[[], Awaitable[T]]) -> T:
        async def main() -> T:
            return await begin()

        waited_for = self._runner.get_loop().create_task(main())
        try:
            while not waited_for.done():
                self._runner.run(self._until_something_is_told(waited_for))
                self._call_back()
        except BaseException:
            waited_for.cancel()
            raise
        return waited_for.result()

    async def _until_something_is_told(self, waited_for: asyncio.Task[Any]) -> None:
        self._telling.clear()
        telling = asyncio.ensure_future(self._telling.wait())
        try:
            await asyncio.wait((waited_for, telling), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()

    def tell(self, callback: Callable[[], object]) -> None:
        """Call `callback` while the loop stands still, so that it may make calls itself. Time is
        then as it is now."""
        self._told.append(callback)
        self._telling.set()

    def _call_back(self) -> None:
        while self._told:
            callback = self._told.popleft()
            try:
                callback()
            except Exception:
                log.exception("a callback of a call failed")

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
        return UnaryUnary(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        return UnaryStream(self, method, request_serializer, response_deserializer)

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
        channel = self._channel
        if channel is not None:
            self.wait(channel.close)
            self._channel = None
            self._runner.close()
            self._call_back()

    @property
    def closed(self) -> bool:
        return self._channel is None

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
