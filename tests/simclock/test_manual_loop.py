"""ManualLoop: real sockets, and time that passes only when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from simclock import ManualLoop

pytestmark = pytest.mark.manual_time


@pytest_asyncio.fixture
async def loop() -> AsyncIterator[ManualLoop]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualLoop)
    yield loop


async def test_timers_fire_in_order_each_at_its_own_time(loop: ManualLoop) -> None:
    fired: list[tuple[str, float]] = []
    for name, at_s in (("late", 5.0), ("early", 0.5), ("after", 10.5), ("edge", 10.0)):
        loop.call_later(at_s, lambda n=name: fired.append((n, loop.time())))
    assert await loop.advance(10) == 10.0
    assert fired == [("early", 0.5), ("late", 5.0), ("edge", 10.0)]
    assert loop.clock.now() == datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


async def test_what_a_timer_starts_within_the_advance_happens_too(loop: ManualLoop) -> None:
    ticks: list[float] = []

    async def ticking() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.time())

    task = asyncio.create_task(ticking())
    await loop.advance(3.5)
    assert ticks == [1.0, 2.0, 3.0]
    task.cancel()


async def test_time_stands_still_while_sockets_work(loop: ManualLoop, tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_unix_server(echo, str(tmp_path / "s"))
    hour = loop.call_later(3600, lambda: None)
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"
    writer.close()
    server.close()
    assert loop.time() == 0.0
    hour.cancel()


async def test_advances_that_overlap_add_up(loop: ManualLoop) -> None:
    await asyncio.gather(loop.advance(2), loop.advance(3))
    assert loop.time() == 5.0


async def test_many_small_advances_miss_no_timer(loop: ManualLoop) -> None:
    fired: list[float] = []
    loop.call_later(0.8, lambda: fired.append(loop.time()))
    for _ in range(8):
        await loop.advance(0.1)
    assert len(fired) == 1


async def test_what_falls_due_a_little_late_belongs_to_the_advance(loop: ManualLoop) -> None:
    fired: list[float] = []
    for late_s in (3e-9, 5e-5, 2e-4):
        loop.call_later(10 + late_s, lambda: fired.append(loop.time()))
    await loop.advance(10)
    assert fired == [10 + 3e-9, 10 + 5e-5]


@pytest.mark.parametrize("duration_s", [-1, float("inf"), float("nan")])
async def test_a_wrong_duration_is_refused(loop: ManualLoop, duration_s: float) -> None:
    with pytest.raises(ValueError, match="wanted a number of seconds from 0"):
        await loop.advance(duration_s)
