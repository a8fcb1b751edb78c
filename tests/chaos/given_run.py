"""One run about exclusive things: pods, restarts with other configurations, and after every call
that gives something the law that nothing is given twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from chaos_laws import Tracebacks
from chaos_run import fast_directory
from given_laws import GivenOnce, left_shared, too_much
from given_plan import DEVICES, WIDGET, Change, GivenPlan, given_plan
from node_world import PODS, Node, running_node

from fakecri import HugePages, exits, stops, uniform_topology
from fakecri.deviceplugin import FakeDevicePlugin, InProcessPlugins
from kubelet_conformance.harness.kubelets.base import KubeletDied
from simclock import run_virtual

QUIET_S: Final = 30.0  # reconciled, reported, housekept
STATE_FILES: Final = ("cpu_manager_state", "memory_manager_state")
HUGEPAGES: Final = (HugePages(2 << 20, 64),)


@dataclass(slots=True)
class Seen:
    """What a run saw. `refused`: why kubelets did not start."""

    wrong: list[str]
    refused: list[str]


def run_given(seed: int) -> Seen:
    """Run the plan of that seed."""
    with TemporaryDirectory(dir=fast_directory()) as directory:
        return run_virtual(lambda: _run(given_plan(seed), Path(directory)))


async def _run(plan: GivenPlan, directory: Path) -> Seen:
    async with running_node(
        directory, api=True, seed=plan.seed, started=False, **plan.settings
    ) as node:
        return await GivenCourse(node, plan).go()


class GivenCourse:
    """One run of a plan on a node."""

    def __init__(self, node: Node, plan: GivenPlan) -> None:
        self.node = node
        self.plan = plan
        self.law = GivenOnce(node, plan.pods)
        self.pods = {pod.name: pod for pod in plan.pods}
        self.plugin = FakeDevicePlugin(WIDGET, DEVICES)
        self.refused: list[str] = []

    async def go(self) -> Seen:
        """Do what the plan says, and tell what was wrong."""
        handler = Tracebacks(self.law)
        logging.getLogger("refkubelet").addHandler(handler)
        try:
            return await self._go()
        finally:
            logging.getLogger("refkubelet").removeHandler(handler)

    async def _go(self) -> Seen:
        node = self.node
        node.tap, node.world.device_plugins = self.law, InProcessPlugins()
        self._machine(4)
        if not await self._starts():
            return Seen([], self.refused)  # a configuration that cannot be: nothing to see
        await node.clock.sleep(1)
        await node.world.device_plugins.start(self.plugin)
        for pod in self.plan.pods:
            ends = exits(0, after_s=pod.ends_s) if pod.ends_s else stops(0, after_s=pod.stops_s)
            node.cri.behaves(ends, pod=pod.name)
        for change in self.plan.changes:
            await asyncio.sleep(change.wait_s)
            done = getattr(self, f"_{change.kind}")(change)
            if isinstance(done, Awaitable):
                await done
        await asyncio.sleep(QUIET_S)
        self.law.look()
        at_rest = [*left_shared(node, self.pods), *too_much(node, self.pods)]
        return Seen([*self.law.wrong, *at_rest], self.refused)

    def _machine(self, cores: int) -> None:
        """The machine has two sockets of so many cores from now on."""
        machine = self.node.cri.node
        machine.layout = uniform_topology(sockets=2, cores=cores, hugepages=HUGEPAGES)

    async def _starts(self) -> bool:
        try:
            await self.node.start()
        except KubeletDied as died:
            self.refused.append(str(died))
            return False
        return True

    # What a plan does

    async def _create(self, change: Change) -> None:
        pod = self.plan.pods[change.pod]
        if await self.node.find(pod.name) is None:
            await self.node.create(pod.manifest())

    async def _delete(self, change: Change) -> None:
        name = self.plan.pods[change.pod].name
        if await self.node.find(name) is not None:
            await self.node.delete(name)

    async def _force(self, change: Change) -> None:
        name = self.plan.pods[change.pod].name
        if await self.node.find(name) is not None:
            await self.node.delete(name, grace_s=0)

    def _exit(self, change: Change) -> None:
        with suppress(LookupError):  # it does not run
            self.node.cri.exit(pod=self.plan.pods[change.pod].name, code=1)

    def _devices(self, change: Change) -> None:
        self.plugin.set_devices(*change.devices)

    async def _restart(self, change: Change) -> None:
        """With other settings; where the kubelet refuses them, drained or as before."""
        node = self.node
        before = (node.settings, len(node.cri.node.topology().cpus) // 2)
        await node.stop()
        node.settings = before[0] | (change.settings or {})
        self._machine(change.cores)
        if await self._starts():
            return
        wanted = (node.settings, change.cores)
        node.settings = before[0]
        self._machine(before[1])
        assert await self._starts(), f"the old configuration is refused, too: {self.refused}"
        if change.drained:
            await self._drain()
            node.settings = wanted[0]
            self._machine(wanted[1])
            if not await self._starts():  # a configuration that cannot be
                node.settings = before[0]
                self._machine(before[1])
                assert await self._starts(), f"nothing starts any more: {self.refused}"

    async def _drain(self) -> None:
        """Delete all pods, stop the kubelet and remove its state files, as upstream's refusals ask
        for."""
        node = self.node
        for pod in self.plan.pods:
            if await node.find(pod.name) is not None:
                await node.delete(pod.name)
        await node.until(self._nothing_is_left, 120)
        await node.stop()
        for name in STATE_FILES:
            (node.paths.root / name).unlink(missing_ok=True)

    async def _nothing_is_left(self) -> bool:
        assert self.node.api is not None
        answer = await self.node.api.request("GET", PODS)
        listed: list[Any] = answer.body["items"]
        pods = self.node.paths.root / "pods"
        return not listed and not (pods.is_dir() and any(pods.iterdir()))
