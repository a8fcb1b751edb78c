"""The small loops of the kubelet go on after an error that nobody thought of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from refkubelet.cri.records import RuntimeConditions, RuntimeVersion
from refkubelet.kuberuntime.gc import CONTAINER_GC_PERIOD_S, GarbageCollection
from refkubelet.sync_loop.runtime_state import RuntimeState, RuntimeWatch
from simtime import Clock

pytestmark = pytest.mark.virtual_time


class SurprisingRuntime:
    """Fails once in a way that no runtime should."""

    def __init__(self) -> None:
        self.asked = 0

    async def version(self) -> RuntimeVersion:
        return RuntimeVersion("0.1.0", "fake", "1", "v1")

    async def runtime_status(self) -> RuntimeConditions:
        self.asked += 1
        if self.asked == 1:
            raise ValueError("surprise")
        return RuntimeConditions(runtime_ready=True, network_ready=True)


class SurprisingCollector:
    """Fails at every run."""

    runs = 0

    async def garbage_collect(self, all_sources_ready: bool, evict_terminated: bool) -> list[str]:
        self.runs += 1
        raise ValueError("surprise")


class NodeEvents:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def node_event(self, event_type: str, reason: str, message: str) -> None:
        self.seen.append((event_type, reason, message))


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


async def test_container_gc_runs_again_and_tells_the_node_GC_001(
    caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    collector: Any = SurprisingCollector()
    events: Any = NodeEvents()
    task = asyncio.ensure_future(GarbageCollection(collector, lambda: True, events, clock).run())
    await clock.sleep(CONTAINER_GC_PERIOD_S + 1)
    assert collector.runs == 2
    assert events.seen == 2 * [("Warning", "ContainerGCFailed", "surprise")]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert caplog.text.count("Traceback") == 2
