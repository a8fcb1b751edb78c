"""One ending part never ends the kubelet: it is told and started again (architecture.md)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from node_world import Node, running_node
from pods import manifest

from fakecri.deviceplugin import InProcessPlugins
from kubeobjects.structs import replace
from refkubelet.container_manager.cgroups.manager import ContainerManagerError
from refkubelet.failures import LONGEST_RESTART_S, Part, keep_running
from refkubelet.kubelet import Kubelet
from simclock import Clock

pytestmark = pytest.mark.virtual_time

PARTS = (
    "awake time",
    "runtime watch",
    "pleg",
    "status manager",
    "events",
    "pod config",
    "volume stats",
    "eviction",
    "garbage collection",
    "container deletor",
    "container logs",
    "sync loop",
    "pending resizes",
    "cgroups",
    "image garbage collection",
    "device plugins",
    "cpu manager",
    "oom watcher",
    "node informer",
    "config maps",
    "secrets",
    "tokens",
    "CSINode",
    "CSIDriver objects",
    "CSI volumes",
    "services",
    "first mirrors",
    "node",
    "node soon ready",
    "node images",
    "node lease",
)
BREAKS_AFTER_S = 5.0


class Broken:
    """A part that fails after each `after_s` of its life."""

    def __init__(self, clock: Clock, after_s: float = 0.0) -> None:
        self.clock = clock
        self.after_s = after_s
        self.began_s: list[float] = []

    async def run(self) -> None:
        self.began_s.append(self.clock.monotonic_s())
        await asyncio.sleep(self.after_s)
        raise ValueError("surprise")


async def during(part: Part, clock: Clock, lasts_s: float) -> None:
    task = asyncio.create_task(keep_running(part, clock))
    await clock.sleep(lasts_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_part_that_fails_is_started_later_and_later(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    part = Broken(clock)
    await during(Part("odd", part.run), clock, 200)
    assert part.began_s == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert LONGEST_RESTART_S == 60
    assert caplog.text.count("Traceback") == 1
    assert len(caplog.records) == 4  # at once, and once a minute
    assert "the part 'odd' of the kubelet ended" in caplog.text


async def test_a_part_that_was_sound_is_started_at_once_again(clock: Clock) -> None:
    part = Broken(clock, after_s=300)
    await during(Part("odd", part.run), clock, 1000)
    assert part.began_s == [0, 301, 602, 903]


class Ending:
    """A part that returns at its first run, and is cancelled from inside at every other."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.began_s: list[float] = []

    async def run(self) -> None:
        self.began_s.append(self.clock.monotonic_s())
        if len(self.began_s) > 1:
            raise asyncio.CancelledError


async def test_a_part_that_returns_or_is_cancelled_from_inside_is_started_again(
    clock: Clock,
) -> None:
    part = Ending(clock)
    await during(Part("odd", part.run), clock, 8)
    assert part.began_s == [0, 1, 3, 7]


async def test_what_is_fatal_ends_the_kubelet_CG_035(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:

        def refuse() -> None:
            raise ContainerManagerError("no cgroups here")

        assert node.kubelet.work.cgroups is not None
        node.kubelet.work.cgroups.start = refuse  # type: ignore[method-assign]
        with pytest.raises(ContainerManagerError, match="no cgroups here"):
            await node.ended()


async def test_what_is_fatal_is_told_once_whoever_sees_the_runtime_first_CG_035(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The node that waits to be ready looks at the runtime, too (NODE-013)."""

    async with running_node(tmp_path, api=True, started=False) as node:

        def refuse() -> None:
            raise ContainerManagerError("no cgroups here")

        node.cri.on("Status").fails("UNAVAILABLE", "late", times=1)
        await node.start()
        assert node.kubelet.work.cgroups is not None
        node.kubelet.work.cgroups.start = refuse  # type: ignore[method-assign]
        with pytest.raises(ContainerManagerError, match="no cgroups here"):
            await node.ended()
    assert [r.getMessage() for r in caplog.records if r.exc_info] == []


@asynccontextmanager
async def full_node(directory: Path) -> AsyncIterator[Node]:
    """A node with every part there is, but for shutdowns."""
    settings = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}
    async with running_node(directory, api=True, started=False, **settings) as node:
        node.world.device_plugins = InProcessPlugins()
        await node.start()
        yield node


async def test_all_parts_are_tried_here(tmp_path: Path) -> None:
    async with full_node(tmp_path) as node:
        assert tuple(part.name for part in node.kubelet.parts()) == PARTS


class BrokenOnce:
    """A part that fails after a while, and works from then on."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.times = 0

    async def run(self) -> None:
        self.times += 1
        if self.times > 1:
            return await self.part.run()
        try:
            async with asyncio.timeout(BREAKS_AFTER_S):
                await self.part.run()
        except TimeoutError:
            raise KeyError("surprise") from None


@pytest.mark.parametrize("name", PARTS)
async def test_a_node_goes_on_when_a_part_of_it_fails(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    parts = Kubelet.parts

    def with_a_broken_one(kubelet: Kubelet) -> list[Part]:
        return [replace(p, run=BrokenOnce(p).run) if p.name == name else p for p in parts(kubelet)]

    monkeypatch.setattr(Kubelet, "parts", with_a_broken_one)

    async with full_node(tmp_path) as node:
        node.apply(manifest(name="before"), "before.yaml")
        await node.until(lambda: node.phase("before-golden") == "Running", 5)
        await node.clock.sleep(BREAKS_AFTER_S + 2)
        node.apply(manifest(name="after"), "after.yaml")
        await node.until(lambda: node.phase("after-golden") == "Running", 40)
        node.remove("before.yaml")
        await node.until(lambda: node.phase("before-golden") is None, 60)
        await node.until(
            lambda: [c.pod.name for c in node.cri.containers()] == ["after-golden"], 90
        )
        found = await node.live("after-golden")
        assert found.status is not None
        assert found.status.phase == "Running"

    assert caplog.text.count("Traceback") == 1
    assert f"the part '{name}' of the kubelet ended" in caplog.text
