"""The time in which the process was awake (NODE-054)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from loops import virtual_loop
from node_world import running_node

from refkubelet.host.awake import AwakeTime

pytestmark = pytest.mark.virtual_time


async def test_only_what_the_host_stood_still_is_not_counted_NODE_054() -> None:
    loop = virtual_loop()
    awake = AwakeTime(loop.clock)
    beats = asyncio.create_task(awake.run())
    began_s = awake.monotonic_s()
    await asyncio.sleep(33)
    assert awake.monotonic_s() - began_s == pytest.approx(33)
    loop.stand_still(45)
    at_once_s = awake.monotonic_s() - began_s
    assert 33 <= at_once_s <= 33 + 7  # up to the beat that was due, and what one may be late
    await asyncio.sleep(20)
    assert awake.monotonic_s() - began_s == pytest.approx(at_once_s + 20)
    beats.cancel()


async def test_a_busy_machine_loses_no_time_NODE_054() -> None:
    loop = virtual_loop()
    awake = AwakeTime(loop.clock)
    beats = asyncio.create_task(awake.run())
    began_s = awake.monotonic_s()
    for _ in range(10):
        await asyncio.sleep(4.5)
        loop.stand_still(1.5)
    assert awake.monotonic_s() - began_s == pytest.approx(60)
    beats.cancel()


@pytest.mark.parametrize("still_s", [45.0, 200.0, 400.0])
async def test_a_paused_node_is_not_told_to_be_not_ready_NODE_054(
    tmp_path: Path, still_s: float
) -> None:
    """At whatever moment it is paused, and also when all that is watched was silent for too long:
    the runtime's status (30 s), the relist (180 s), the loop (300 s)."""
    async with running_node(tmp_path, api=True) as node:
        assert node.api is not None
        await asyncio.sleep(30)
        for moment in range(8):
            await asyncio.sleep(20 + 1.3 * moment)
            virtual_loop().stand_still(still_s)
            assert node.kubelet.loop.sync_loop.health_check() is None
            await asyncio.sleep(5)
        events = (await node.api.request("GET", "/api/v1/events")).body["items"]
        assert "NodeNotReady" not in {event["reason"] for event in events}
