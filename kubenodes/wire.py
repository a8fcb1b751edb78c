"""The ways of a kubelet in this process to its runtime and to the API server; each can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
)
from typing import Any, Final, TypeVar

from fakekubeapi import FakeApi
from fakekubeapi.in_process import InProcessWire
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.wire import Wire

T = TypeVar("T")

LOST: Final = "this node has lost the network to the API server"


def client_of(api: FakeApi) -> LightkubeApiClient:
    """A client of that API server in this process."""
    return LightkubeApiClient.over(InProcessWire(api))


class RuntimeWire:
    """The way of one kubelet to its runtime. Cut, nothing passes any more: a killed process sends
    nothing, however its tasks end here."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.is_cut = False

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        """As the target's."""
        self._refuse_when_cut(method)
        return await self._target.call(method, request, timeout_s=timeout_s)

    async def call_bytes(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> bytes:
        """As the target's."""
        self._refuse_when_cut(method)
        answer: bytes = await self._target.call_bytes(method, request, timeout_s=timeout_s)
        return answer

    def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        """As the target's."""
        self._refuse_when_cut(method)
        stream: AsyncIterator[Any] = self._target.stream(method, request, timeout_s=timeout_s)
        return stream

    def _refuse_when_cut(self, method: str) -> None:
        if self.is_cut:
            raise asyncio.CancelledError(f"{method} of a killed kubelet")


class NodeWire:
    """The way of one node to an API server that it may share with other nodes.

    While it is lost, requests fail at once, as without a route; those under way get no answer, and
    open watches break; once it is closed, for ever. The shared wire stays open. `gate` lets through
    so many requests of all nodes at a time, in the order in which they come; None: any number.
    """

    def __init__(self, wire: Wire, gate: asyncio.Semaphore | None = None) -> None:
        self._wire = wire
        self._gate: AbstractAsyncContextManager[Any] = gate or nullcontext()
        self._is_lost = self._is_closed = False
        self._under_way: set[asyncio.Timeout] = set()

    def lose(self) -> None:
        """Let nothing pass until `restore`."""
        self._is_lost = True
        now_s = asyncio.get_running_loop().time()
        for waiting in self._under_way:
            waiting.reschedule(now_s)
        self._under_way.clear()

    def restore(self) -> None:
        """Let everything pass again."""
        self._is_lost = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        """As `Wire.request`. Raises ConnectionError while the way is lost, and when it gets
        lost."""
        async with self.passing(), self._gate:
            return await self._wire.request(
                method, path, params=params, content=content, content_type=content_type
            )

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, bytes, AsyncIterator[bytes]]]:
        """As `Wire.watch`. Raises ConnectionError while the way is lost; so does reading the
        lines when it gets lost."""
        async with AsyncExitStack() as stack:
            async with self.passing():
                opening = self._wire.watch(path, params)
                status, refusal, lines = await stack.enter_async_context(opening)
            until_lost = await stack.enter_async_context(aclosing(self.until_lost(lines)))
            yield status, refusal, until_lost

    async def until_lost(self, lines: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """What comes of `lines`. Raises ConnectionError when the way gets lost."""
        while True:
            async with self.passing():
                line = await anext(lines, None)
            if line is None:
                return
            yield line

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """What is awaited inside comes by this way. Raises ConnectionError while the way is lost,
        and when it gets lost."""
        if self._is_lost or self._is_closed:
            raise ConnectionError(LOST)
        waiting = asyncio.timeout(None)
        try:
            async with waiting:
                self._under_way.add(waiting)
                try:
                    yield
                finally:
                    self._under_way.discard(waiting)
        except TimeoutError:
            if waiting.expired():
                raise ConnectionError(LOST) from None
            raise

    async def aclose(self) -> None:
        """Let nothing pass any more, whatever it is: the kubelet has ended. The shared wire stays
        open."""
        self._is_closed = True
        self.lose()
