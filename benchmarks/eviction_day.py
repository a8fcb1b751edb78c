"""A day on a node with 110 pods whose memory crosses thresholds 100 times, in virtual time.

Every quarter of an hour a pod begins to use so much memory that a threshold is crossed (`WAVES`). A
controller replaces evicted pods. Two runs leave the same trace, and every eviction has a line in it
that names the rules (`refkubelet/eviction/trace.py`). Pods are synced every five minutes instead of
every one (syncFrequency), as syncs are measured elsewhere.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crash_loop import IN_MEMORY, WITH_CGROUPS, configuration, virtual_clock
from measure import Row
from msgspec import structs

from fakecri import FakeCRI, FakeNode, stops, uses
from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from kubeobjects.machine import MemoryStats
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.kubelet import Directories, Kubelet, KubeletDeps, ThisNode
from refkubelet.node.facts import node_facts
from simclock import Clock, Ids, Rng, run_virtual

MI: Final = 1 << 20
BASE_BYTES: Final = 2 << 30
SOFT_BYTES: Final = 1 << 30  # the higher one of the thresholds below
ROOM_MI: Final = 7700
DAY_S: Final = 24 * 3600.0
NODE: Final = "node"
PATH: Final = "/api/v1/namespaces/default/pods"
REPLACE_S: Final = 30.0
CALM_MI, REQUEST_MI = 60, 64
GREEDY_MI: Final = 70  # what two pods use when calm: more than they request, but no harm is done
SETTINGS: Final[Mapping[str, Any]] = {
    "sync_frequency_s": 300.0,
    "eviction_hard": {"memory.available": "500Mi"},
    "eviction_soft": {"memory.available": "1Gi"},
    "eviction_soft_grace_period": {"memory.available": "1m"},
    "eviction_minimum_reclaim": {"memory.available": "100Mi"},
}
WAVES: Final = (
    (7400, DAY_S),  # a leak that crosses the hard threshold; it lasts until the pod is evicted
    (6900, DAY_S),  # crosses the soft threshold only; it lasts until the pod is evicted
    (6900, 30.0),  # the same, but it ends within the soft threshold's grace period
    (7400, 12.0),  # crosses the hard threshold in a pod of high priority: others are evicted
)
"""How much memory a pod uses, in MiB, and for how many seconds, each in turn."""


@dataclass(slots=True)
class WatchedNode(FakeNode):
    """A node that counts how often its memory ran low, as far as the kubelet saw it: `crossings` is
    how often it read less than `below_bytes` of available memory after it had read more."""

    below_bytes: int = SOFT_BYTES
    crossings: int = 0
    _low: bool = False

    def memory(self) -> MemoryStats:
        """As for any fake node; counts a crossing."""
        seen = FakeNode.memory(self)
        low = seen.total_bytes - seen.working_set_bytes < self.below_bytes
        self.crossings += low and not self._low
        self._low = low
        return seen


@dataclass(slots=True)
class Day:
    """What happened in one run."""

    trace: list[str] = field(default_factory=list)
    """The log lines of the eviction manager, each after its virtual second."""
    evicted: list[str] = field(default_factory=list)
    """The names of the pods that have an Evicted event."""
    crossings: int = 0
    """As in `WatchedNode`."""
    took_s: float = 0.0
    """Real seconds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run goes: `pods` on the node, and `waves` times, every `every_s` seconds, one of them
    begins to use more memory. A pod keeps its slot, a number, when it is replaced."""

    pods: int
    waves: int
    every_s: float

    @property
    def memory_bytes(self) -> int:
        """The memory of the node: what all pods need without waves, and some of what a wave
        needs."""
        return BASE_BYTES + (self.pods * (CALM_MI + 1) + ROOM_MI) * MI

    def wave_of(self, slot: int) -> int | None:
        """Which wave comes from the pod in that slot; None if none does."""
        return slot if slot < self.waves else None

    def curve(self, slot: int, from_s: float) -> list[tuple[float, int]]:
        """The memory of the pod in that slot if it starts at `from_s`: from how many seconds after
        its start it uses how many bytes."""
        calm = (GREEDY_MI if slot % 55 == 5 else CALM_MI) * MI
        points, wave = [(0.0, calm)], self.wave_of(slot)
        if wave is not None:
            most_mi, lasts_s = WAVES[wave % len(WAVES)]
            begins_s = (wave + 1) * self.every_s - from_s
            if begins_s > 0:
                points += [(begins_s, most_mi * MI), (begins_s + lasts_s, calm)]
        return points

    def priority(self, slot: int) -> int:
        """The priority of the pod in that slot: high for the fourth kind of wave, so that other
        pods are evicted."""
        wave = self.wave_of(slot)
        return 1000 if wave is not None and wave % len(WAVES) == 3 else slot % 3


class Controller:
    """Keeps one pod in every slot: deletes pods that have failed and creates new ones for them."""

    def __init__(self, plan: Plan, api: FakeApi, cri: FakeCRI, clock: Clock) -> None:
        self._plan, self._api, self._cri, self._clock = plan, api, cri, clock
        self._rules: dict[int, Any] = {}
        self._lives = [0] * plan.pods

    async def start(self) -> None:
        """Create the first pod of every slot."""
        for slot in range(self._plan.pods):
            await self._create(slot)

    async def run(self) -> None:
        """Replace failed pods every `REPLACE_S` seconds, until cancelled."""
        while True:
            await self._clock.sleep(REPLACE_S)
            for pod in list(self._api.store.items("pods")):
                if (pod.get("status") or {}).get("phase") == "Failed":
                    name = pod["metadata"]["name"]
                    await self._must("DELETE", f"{PATH}/{name}", {"gracePeriodSeconds": 0})
                    await self._create(int(name.split("-")[1]))

    async def _create(self, slot: int) -> None:
        self._lives[slot] += 1
        name = f"pod-{slot:03d}-{self._lives[slot]}"
        if slot in self._rules:
            self._rules[slot].remove()
        curve = self._plan.curve(slot, self._clock.monotonic_s())
        self._rules[slot] = self._cri.behaves(uses(memory_bytes=curve), stops(1), pod=name)
        resources = {"requests": {"memory": f"{REQUEST_MI}Mi"}}
        spec = {
            "nodeName": NODE,
            "priority": self._plan.priority(slot),
            "terminationGracePeriodSeconds": 2,
            "containers": [
                {"name": "main", "image": "localhost/busybox:1", "resources": resources}
            ],
        }
        await self._must("POST", PATH, {"metadata": {"name": name}, "spec": spec})

    async def _must(self, method: str, path: str, body: Any) -> None:
        answer = await self._api.request(method, path, body=body)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body}")


@contextmanager
def told(day: Day, clock: Clock) -> Iterator[None]:
    """Until the block ends, put what the eviction manager logs into the trace of `day`."""
    logger = logging.getLogger("refkubelet.eviction")

    class Trace(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            day.trace.append(f"{clock.monotonic_s():.3f} {record.getMessage()}")

    handler, level, up = Trace(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = up


def kubelet_of(directory: Path, api: FakeApi, cri: FakeCRI, node: FakeNode) -> Kubelet:
    """A kubelet with an API server and the thresholds of the day."""
    clock, rng = virtual_clock(), Rng(1)
    config = structs.replace(configuration(directory, **WITH_CGROUPS), **SETTINGS)
    root = directory / "root"
    facts = node_facts(config, NODE, node, root_dir=str(root))
    deps = KubeletDeps(
        target=cri,
        machine=node,
        clock=clock,
        rng=rng,
        ids=Ids(rng),
        node=ThisNode(NODE, facts=facts),
        directories=Directories(root),
        api=LightkubeApiClient.in_process(InProcessTransport(api)),
    )
    return Kubelet(config, deps)


async def live(directory: Path, plan: Plan, duration_s: float) -> Day:
    """Run the plan for `duration_s` virtual seconds, with files below `directory`."""
    clock = virtual_clock()
    node = WatchedNode(memory_bytes=plan.memory_bytes, base_memory_used_bytes=BASE_BYTES)
    cri = FakeCRI(clock, node=node, write_logs=True)
    api, day = FakeApi(clock), Day()
    controller = Controller(plan, api, cri, clock)
    kubelet = kubelet_of(directory, api, cri, node)
    gc.collect()
    gc.disable()  # as in crash_loop.measured
    began = time.perf_counter()
    with told(day, clock):
        await controller.start()
        tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(controller.run())]
        await clock.sleep(duration_s)
        await kubelet.stop()
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    day.took_s = time.perf_counter() - began
    gc.enable()
    for event in api.store.items("events"):
        if event["reason"] == "Evicted":
            day.evicted.append(event["involvedObject"]["name"])
    day.crossings = node.crossings
    return day


def a_day(duration_s: float = DAY_S, pods: int = 110, waves: int = 100) -> Day:
    """One run of `duration_s` virtual seconds, with the waves spread over it evenly."""
    plan = Plan(pods, waves, duration_s / (waves + 1))
    parent = IN_MEMORY if Path(IN_MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        directory = Path(name)
        for part in ("manifests", "root", "logs"):
            (directory / part).mkdir()
        return run_virtual(lambda: live(directory, plan, duration_s), limit_s=duration_s + 3600)


def rows(hours: float = 24.0) -> list[Row]:
    """The real time of one day, or of fewer hours with as many waves an hour."""
    waves = max(4, round(100 * hours / 24))
    day = a_day(hours * 3600, waves=waves)
    what = f"{hours:g} h of 110 pods, memory fell {day.crossings} times below a threshold"
    explained = sum(" evicting " in line for line in day.trace)
    remark = f"{len(day.evicted)} evictions, {explained} explained by rule"
    return [Row(what=what, value=day.took_s, unit="s", limit=60 * hours / 24, remark=remark)]


if __name__ == "__main__":
    for row in rows():
        print(row)
