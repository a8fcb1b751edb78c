"""A fake API server with a client of it, in virtual time, and pods to send there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from loops import virtual_loop
from pods import make_pod

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from fakekubeapi.in_process import InProcessWire
from refkubelet.api.kinds import NODES, PODS
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.wire import HttpWire
from refkubelet.model.objects import Node, Pod, to_dict
from simclock import Clock, Rng

STATIC_UID = "27b79038f0d0a88b3dbf5d3cabc1f1c0"


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class World:
    """A fake API server, a client of it, and tasks that end with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        loop = virtual_loop()
        self.clock: Clock = loop.clock
        self.rng = Rng(1)
        self.api = FakeApi(clock=self.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self._stack = stack
        stack.push_async_callback(self.client.aclose)

    def start(self, part: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(part)
        self._stack.push_async_callback(ended, task)

    async def node(self, name: str = "n1") -> Node:
        return await self.client.create(NODES, {"metadata": {"name": name}})

    async def create_pod(self, pod: Pod) -> Pod:
        return await self.client.create(PODS, to_dict(pod))

    def without_http(self) -> None:
        """From now on the client's requests reach the server without HTTP, as those of the suite's
        virtual runs do."""
        self.client.wire = InProcessWire(self.api)

    def use(self, transport: InProcessTransport) -> None:
        """From now on the client's requests go there."""
        assert isinstance(self.client.wire, HttpWire)
        self.client.wire.http._transport = transport


def static_pod() -> Pod:
    marks = {
        "kubernetes.io/config.hash": STATIC_UID,
        "kubernetes.io/config.seen": "2026-11-21T09:22:20.483347357Z",
        "kubernetes.io/config.source": "file",
    }
    return make_pod(name="st-n1", uid=STATIC_UID, meta={"annotations": marks}, nodeName="n1")


@asynccontextmanager
async def running_world() -> AsyncIterator[World]:
    """A world whose tasks end with the block."""
    async with AsyncExitStack() as stack:
        yield World(stack)
