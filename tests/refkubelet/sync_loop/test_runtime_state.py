"""What keeps the sync loop from its work, and the watch that looks whether the runtime is there."""

from __future__ import annotations

import asyncio

import pytest

from refkubelet.cri.records import RuntimeConditions, RuntimeVersion
from refkubelet.sync_loop.runtime_state import RuntimeState, RuntimeWatch
from simclock import Clock

pytestmark = pytest.mark.virtual_time


async def test_a_full_queue_is_no_reason_to_stop_emptying_it_PLEG_303(clock: Clock) -> None:
    state = RuntimeState(clock, lambda: None, lambda: "the channel is full")
    state.observe(RuntimeConditions(runtime_ready=True, network_ready=True))
    assert state.runtime_errors() is None
    assert state.not_ready() == ["EventedPLEG is not healthy: the channel is full"]


async def test_runtime_errors_NODE_050_PLEG_202(clock: Clock) -> None:
    pleg: list[str | None] = [None]
    state = RuntimeState(clock, lambda: pleg[0])
    assert "may not have completed" in str(state.runtime_errors())
    state.observe(RuntimeConditions(runtime_ready=True, network_ready=False))
    assert state.runtime_errors() is None  # the network does not stop the loop
    assert state.network_error() is not None
    assert state.not_ready()
    state.observe(RuntimeConditions(runtime_ready=True, network_ready=True))
    assert state.not_ready() == []
    await clock.sleep(29.9)
    assert state.runtime_errors() is None
    await clock.sleep(0.1)
    assert state.runtime_errors() == "container runtime is down"
    state.observe(RuntimeConditions(runtime_ready=True, network_ready=True))
    pleg[0] = "pleg was last seen active 4m ago"
    assert str(state.runtime_errors()).startswith("PLEG is not healthy: ")
    pleg[0] = None
    state.observe(RuntimeConditions(runtime_ready=False, network_ready=True))
    assert "not ready" in str(state.runtime_errors())


class SurprisingRuntime:
    """Fails once in a way that no runtime should."""

    def __init__(self) -> None:
        self.asked = 0

    async def version(self, version: str = "") -> RuntimeVersion:
        return RuntimeVersion("0.1.0", "fake", "1", "v1")

    async def status(self) -> RuntimeConditions:
        self.asked += 1
        if self.asked == 1:
            raise ValueError("surprise")
        return RuntimeConditions(runtime_ready=True, network_ready=True)


async def test_the_runtime_watch_asks_again_NODE_050(
    caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    watch = RuntimeWatch(SurprisingRuntime(), RuntimeState(clock, lambda: None), clock)
    task = asyncio.ensure_future(watch.run())
    await watch.ready.wait()
    assert watch.runtime_name() == "fake"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert "Traceback" in caplog.text
