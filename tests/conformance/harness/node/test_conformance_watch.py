"""How often a wait looks at the kubelet."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.harness.limits import JUMPING, VIRTUAL, Pace
from conformance.harness.node.watch import Watch
from simclock import VirtualLoop
from timewarp.loop import WarpedLoop, run


class Kubelet:
    """A kubelet without pods that counts the looks."""

    def __init__(self) -> None:
        self.looks = 0

    async def pods(self) -> list[Any]:
        self.looks += 1
        return []


async def looks_in_a_minute(pace: Pace) -> int:
    kubelet, loop = Kubelet(), asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop | WarpedLoop)
    parts: Any = SimpleNamespace(
        kubelet=kubelet,
        runtime=SimpleNamespace(activity=lambda: 0),
        api=None,
        clock=loop.clock,
        pace=pace,
        node_name="node",
        disk=None,
    )
    await Watch(parts).run_for(60)
    return kubelet.looks


@pytest.mark.virtual_time
async def test_while_time_passes_a_quiet_kubelet_is_looked_at_seldom_in_jumping_time() -> None:
    assert 595 <= await looks_in_a_minute(VIRTUAL) <= 601
    assert 60 <= await looks_in_a_minute(JUMPING) <= 75


def test_in_jumping_time_ticks_wait_for_what_the_time_jumps_to_anyway() -> None:
    async def jumps() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)

        def work() -> None:
            loop.call_later(0.09, work)

        work()
        await looks_in_a_minute(JUMPING)
        assert loop.jumper is not None
        return loop.jumper.jumps

    assert 660 <= run(jumps) <= 750
