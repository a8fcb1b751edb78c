"""How often a wait looks at the kubelet."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.harness.limits import JUMPING, VIRTUAL, Pace
from kubelet_conformance.harness.node.watch import Watch
from simclock import VirtualLoop
from simclock.timewarp.loop import WarpedLoop, run


class Kubelet:
    """A kubelet without pods that counts the looks."""

    def __init__(self) -> None:
        self.looks = 0

    async def pods(self) -> list[Any]:
        self.looks += 1
        return []


def watch_of(kubelet: Kubelet, pace: Pace) -> Watch:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop | WarpedLoop)
    parts: Any = SimpleNamespace(
        kubelet=kubelet,
        runtime=SimpleNamespace(activity=lambda: 0),
        api=None,
        clock=loop.clock,
        pace=pace,
        node_name="node",
        machine=SimpleNamespace(disk=None),
    )
    return Watch(parts)


async def looks_in_a_minute(pace: Pace) -> int:
    kubelet = Kubelet()
    await watch_of(kubelet, pace).run_for(60)
    return kubelet.looks


@pytest.fixture
async def at_work() -> AsyncIterator[None]:
    """Something runs between any two ticks, of which nothing is seen."""

    loop = asyncio.get_running_loop()

    def work() -> None:
        timers.append(loop.call_later(0.03, work))

    timers: list[asyncio.TimerHandle] = []
    work()
    yield
    timers[-1].cancel()


async def looks_in_a_minutes_wait(pace: Pace, *, asks: bool) -> int:
    """The looks of a wait for the end of a minute. `asks`: its condition asks for a pod, too."""
    kubelet = Kubelet()
    watch = watch_of(kubelet, pace)
    await watch.run_until(
        lambda: (asks and watch.pod("web")) or watch.now_s >= 60, within_s=61, what="a minute"
    )
    return kubelet.looks


@pytest.mark.virtual_time
@pytest.mark.usefixtures("at_work")
async def test_while_time_passes_a_quiet_kubelet_is_looked_at_seldom_in_jumping_time() -> None:
    assert 595 <= await looks_in_a_minute(VIRTUAL) <= 601
    assert 60 <= await looks_in_a_minute(JUMPING) <= 75


@pytest.mark.virtual_time
@pytest.mark.usefixtures("at_work")
async def test_a_wait_looks_at_a_quiet_kubelet_when_its_condition_asks_for_pods() -> None:
    assert await looks_in_a_minutes_wait(JUMPING, asks=True) >= 290, "at each tick, of 0.2 s"
    assert 55 <= await looks_in_a_minutes_wait(JUMPING, asks=False) <= 75
    assert await looks_in_a_minutes_wait(VIRTUAL, asks=False) >= 290


@pytest.mark.virtual_time
@pytest.mark.usefixtures("at_work")
async def test_after_a_wait_what_was_seen_is_new() -> None:
    """Even if the condition became true between two looks at a quiet kubelet."""
    kubelet = Kubelet()
    watch = watch_of(kubelet, JUMPING)
    looks = 0

    def condition() -> bool:
        nonlocal looks
        looks = kubelet.looks
        return watch.now_s >= 30.5

    await watch.run_until(condition, within_s=31)
    assert kubelet.looks == looks + 1


@pytest.mark.virtual_time
async def test_in_virtual_time_nobody_looks_where_nothing_has_run() -> None:
    assert await looks_in_a_minute(VIRTUAL) == 1
    assert await looks_in_a_minutes_wait(VIRTUAL, asks=True) == 1


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
