"""`python_clocks`: what Python's clocks show, in which thread, of which clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from time import time_ns

import pytest
from kubecri.v1 import api_pb2 as cri
from kubecri.v1.api_pb2_grpc import RuntimeServiceStub

from fakecri import FakeCRI
from simclock import RealClock, VirtualLoop, python_clocks, run_virtual
from simclock.python_clocks import LoopsClock
from simclock.virtual_loop import DEFAULT_START

pytest.importorskip("time_machine", reason="not installed: time-machine")


def test_they_follow_a_loop_to_the_nanosecond_and_are_real_again_afterwards() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with python_clocks(loop.clock):
            for _ in range(3):
                await asyncio.sleep(1234.567_890_123)
                assert time_ns() == time.time_ns() == loop.clock.wall_ns()
                assert time.monotonic() == loop.time()
                assert time.monotonic_ns() == round(loop.time() * 1e9)
            passed = timedelta(seconds=loop.time())
            assert abs(datetime.now(UTC) - DEFAULT_START - passed) <= timedelta(microseconds=1)
            assert time.localtime()[:5] == datetime.now().timetuple()[:5]

    before = time.time(), time.monotonic()
    run_virtual(main)
    assert before[0] <= time.time() < before[0] + 600
    assert before[1] <= time.monotonic() < before[1] + 600


def test_the_machines_clock_shows_itself() -> None:
    with python_clocks(RealClock()):
        before = RealClock().wall_ns(), RealClock().monotonic_s()
        assert before <= (time.time_ns(), time.monotonic())


def test_a_blocking_client_sees_the_time_of_its_channel() -> None:
    config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", uid="1"))
    with FakeCRI().blocking_channel() as channel, python_clocks(channel.clock):
        runtime = RuntimeServiceStub(channel)
        runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config))
        channel.sleep(3600)
        (pod,) = runtime.ListPodSandbox(cri.ListPodSandboxRequest()).items
        assert time.time() - pod.created_at / 1e9 == 3600


def test_a_tests_clock_is_that_of_its_loops_and_real_below_others() -> None:
    clock = LoopsClock()
    assert (clock.now(), clock.monotonic_s()) == (DEFAULT_START, 0)

    async def passes() -> tuple[float, float]:
        before = clock.wall_ns(), clock.monotonic_s()
        await asyncio.sleep(0.01)
        return (clock.wall_ns() - before[0]) / 1e9, clock.monotonic_s() - before[1]

    with asyncio.Runner(loop_factory=clock.factory) as runner:
        assert runner.run(passes()) == (0.01, 0.01)
        assert clock.monotonic_s() == 0.01
    real = asyncio.run(passes())
    assert min(real) >= 0.009
    assert abs(clock.wall_ns() / 1e9 - DEFAULT_START.timestamp()) < 1
    clock.begin()
    assert (clock.now(), clock.monotonic_s()) == (DEFAULT_START, 0)
