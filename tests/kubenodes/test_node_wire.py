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
