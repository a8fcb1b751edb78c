"""The API source: the pods of this node, through outages and lost watches (SRC-050..060)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
import pytest_asyncio
from api_world import World, running_world
from pods import make_pod

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.kinds import PODS
from refkubelet.api.node_informer import NodeInformer
from refkubelet.model.objects import Pod
from refkubelet.pods.api_source import ApiSource

pytestmark = pytest.mark.virtual_time


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as found:
        yield found


class SilentWatches(InProcessTransport):
    """Watches are accepted, and nothing is heard of them."""

    silent = True

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.silent and "watch" in request.url.params:
            return httpx2.Response(200, stream=Silence())
        return await super().handle_async_request(request)


class Silence(httpx2.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def aclose(self) -> None:
        """Nothing is open."""


class RefusedVersions(InProcessTransport):
    """Watches from the version that the first of them asks for are refused."""

    def __init__(self, api: FakeApi, status: int) -> None:
        super().__init__(api)
        self.status = status
        self.refused: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        version = request.url.params.get("resourceVersion")
        if "watch" in request.url.params and request.url.path.endswith("/pods"):
            self.refused = self.refused or version
            if version == self.refused:
                return httpx2.Response(self.status, json={"message": "not that version"})
        return await super().handle_async_request(request)


class Source:
    """An API source of node n1 and what it delivered."""

    def __init__(self, world: World) -> None:
        self.sets: list[list[str]] = []
        self._more = asyncio.Event()
        informer = NodeInformer(world.client, "n1", world.clock, world.rng)
        source = ApiSource(world.client, "n1", informer, world.clock, world.rng)
        world.start(informer.run())
        world.start(source.run(self.take))

    async def take(self, pods: Sequence[Pod]) -> None:
        self.sets.append([p.metadata.name or "" for p in pods if p.metadata])
        self._more.set()

    async def until(self, *names: str, by_s: float = 60.0) -> None:
        async with asyncio.timeout(by_s):
            while not self.sets or self.sets[-1] != list(names):
                self._more.clear()
                await self._more.wait()


async def test_the_pods_of_this_node_arrive_and_go_SRC_050(world: World) -> None:
    await world.create_pod(make_pod(name="old", nodeName="n1"))
    await world.create_pod(make_pod(name="elsewhere", nodeName="n2"))
    source = Source(world)
    await source.until("old")
    await world.create_pod(make_pod(name="new", nodeName="n1"))
    await source.until("old", "new")
    await world.client.delete(PODS, "old", "default", grace_period_s=0)
    await source.until("new")


async def test_pods_are_not_asked_for_before_the_node_was_SRC_050(world: World) -> None:
    world.api.fails("GET", "/nodes", status=500, times=3)
    source = Source(world)
    await source.until()
    paths = [r.path for r in world.api.requests("GET") if r.status == 200]
    assert paths[0] == "/api/v1/nodes"
    assert world.api.requests(path="/api/v1/pods")[0].started_s > 1


async def test_an_outage_loses_nothing_SRC_060(world: World) -> None:
    await world.create_pod(make_pod(name="a", nodeName="n1"))
    source = Source(world)
    await source.until("a")
    with world.api.down():
        await asyncio.sleep(100)
        assert source.sets[-1] == ["a"]
    await world.create_pod(make_pod(name="b", nodeName="n1"))
    await source.until("a", "b")


async def test_a_connection_lost_without_a_word_is_noticed_SRC_051(world: World) -> None:
    """The server is silent, and so is the network: no end, no error, no more events."""

    source = Source(world)
    await source.until()
    transport = SilentWatches(world.api)
    world.use(transport)
    await asyncio.sleep(301)  # the first watch is over
    await world.create_pod(make_pod(name="a", nodeName="n1"))
    await asyncio.sleep(60)
    assert source.sets[-1] == []
    transport.silent = False
    await source.until("a", by_s=400)


async def test_a_watch_without_an_answer_is_given_up_SRC_051(world: World) -> None:
    source = Source(world)
    await source.until()
    with world.api.hangs("GET", "/api/v1/pods", times=1):
        await asyncio.sleep(301)
        await world.create_pod(make_pod(name="a", nodeName="n1"))
        await source.until("a", by_s=40)


@pytest.mark.parametrize("status", [403, 410, 500, 504])
async def test_after_a_refused_watch_everything_is_listed_anew_SRC_051(
    world: World, status: int
) -> None:
    """A server with restored data refuses the version of before for ever (504)."""

    source = Source(world)
    await source.until()
    transport = RefusedVersions(world.api, status)
    world.use(transport)
    await asyncio.sleep(301)
    await world.create_pod(make_pod(name="a", nodeName="n1"))
    await source.until("a", by_s=10)
