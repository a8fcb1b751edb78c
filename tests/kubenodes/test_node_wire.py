"""The way of one node to the API server, lost and restored at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from kubenodes.wire import NodeWire

pytestmark = pytest.mark.virtual_time


class _Silent:
    """An API server that takes every request and never answers."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        await asyncio.Event().wait()
        return 200, b""

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[tuple[int, bytes, AsyncIterator[bytes]]]:
        yield 200, b"", _nothing()

    async def aclose(self) -> None: ...


async def _nothing() -> AsyncGenerator[bytes, None]:
    await asyncio.Event().wait()
    yield b""


async def _watched(line: NodeWire) -> None:
    async with line.watch("/api/v1/pods", {}) as (_, _, lines):
        await anext(lines)


async def test_a_request_under_way_gets_no_answer_any_more() -> None:
    line = NodeWire(_Silent())
    asking = asyncio.create_task(line.request("GET", "/api/v1/pods"))
    await asyncio.sleep(1)
    line.lose()
    with pytest.raises(ConnectionError, match="lost the network"):
        await asyncio.wait_for(asking, 1)


async def test_a_network_that_is_back_at_once_was_lost_all_the_same() -> None:
    line = NodeWire(_Silent())
    watching = asyncio.create_task(_watched(line))
    await asyncio.sleep(1)
    line.lose()
    line.restore()
    with pytest.raises(ConnectionError, match="lost the network"):
        await asyncio.wait_for(watching, 1)


async def test_a_network_is_lost_twice() -> None:
    line = NodeWire(_Silent())
    watching = asyncio.create_task(_watched(line))
    await asyncio.sleep(1)
    line.lose()
    await asyncio.sleep(0)
    line.lose()
    with pytest.raises(ConnectionError, match="lost the network"):
        await asyncio.wait_for(watching, 1)


class _Slow(_Silent):
    """Takes a second for each request. `most`: how many were under way at the same time."""

    def __init__(self) -> None:
        self.under_way = self.most = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> tuple[int, bytes]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(1)
        finally:
            self.under_way -= 1
        return 200, path.encode()


async def test_all_nodes_have_so_many_requests_at_a_time_in_the_order_in_which_they_come() -> None:
    server, gate = _Slow(), asyncio.Semaphore(3)
    lines = [NodeWire(server, gate) for _ in range(4)]
    order: list[bytes] = []

    async def ask(number: int) -> None:
        _, body = await lines[number % 4].request("GET", f"/{number}")
        order.append(body)

    await asyncio.gather(*(ask(number) for number in range(9)))
    assert (server.most, order) == (3, [b"/%d" % number for number in range(9)])


async def test_a_node_that_loses_the_network_gives_its_turn_to_others() -> None:
    server, gate = _Slow(), asyncio.Semaphore(1)
    lost, other = NodeWire(server, gate), NodeWire(server, gate)
    asking = [asyncio.create_task(line.request("GET", "/")) for line in (lost, lost, other)]
    await asyncio.sleep(0.5)
    lost.lose()
    ends = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(end) for end in ends] == [ConnectionError, ConnectionError, tuple]
    assert asyncio.get_running_loop().time() < 2


async def test_nothing_passes_once_it_is_closed() -> None:
    server = _Slow()
    line = NodeWire(server)
    asking = asyncio.create_task(line.request("GET", "/"))
    await asyncio.sleep(0.5)
    await line.aclose()
    line.restore()
    with pytest.raises(ConnectionError):
        await asking
    with pytest.raises(ConnectionError):
        await line.request("GET", "/")
