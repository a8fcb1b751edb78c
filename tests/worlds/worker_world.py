"""A small world for pod workers in virtual time: steps that are recorded and can be held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from loops import virtual_loop

from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.pleg.cache import PodCache
from refkubelet.pod_workers.sync_status import (
    KillPodOptions,
    PodStatusFn,
    StepCancelled,
    StepContext,
    StepError,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.workers import PodWorkers, WorkerSettings
from simclock import Clock, Rng


def version(text: str) -> dict[str, Any]:
    """Metadata that tells one version of a pod from another: `make_pod(meta=version("2"))`."""
    return {"labels": {"version": text}}


@dataclass
class Step:
    """One call of a step: which, for whom, when it began and ended."""

    kind: str
    uid: str
    began_s: float
    version: str = ""
    grace_s: int | None = None
    status: PodStatus | None = None
    ended_s: float | None = None


@dataclass
class FakeSyncer:
    """Records steps; `hold[kind]` keeps steps of a kind waiting, `fail[kind]` makes them fail;
    `slow[uid]` is how long all steps of a pod take, `broken` holds pods whose steps all fail."""

    clock: Clock
    steps: list[Step] = field(default_factory=list)
    hold: dict[str, asyncio.Event] = field(default_factory=dict)
    fail: dict[str, list[Exception]] = field(default_factory=dict)
    takes_s: dict[str, float] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    terminal: bool = False
    running: set[str] = field(default_factory=set)

    async def _do(self, kind: str, pod_uid: str, version: str = "") -> Step:
        assert pod_uid not in self.running, "two steps of one UID at the same time"
        self.running.add(pod_uid)
        step = Step(kind, pod_uid, self.clock.monotonic_s(), version)
        self.steps.append(step)
        try:
            if kind in self.hold:
                await self.hold[kind].wait()
            await self.clock.sleep(self.slow.get(pod_uid, self.takes_s.get(kind, 0.1)))
            if pod_uid in self.broken:
                raise StepError("broken")
            if self.fail.get(kind):
                raise self.fail[kind].pop(0)
        finally:
            self.running.discard(pod_uid)
        step.ended_s = self.clock.monotonic_s()
        return step

    async def sync_pod(
        self, context: StepContext, pod: Pod, mirror: Pod | None, status: RuntimePodStatus
    ) -> bool:
        await self._do("sync", uid(pod), _version(pod))
        if context.cancelled.is_set():
            raise StepCancelled
        return self.terminal

    async def sync_terminating_pod(
        self, pod: Pod, status: RuntimePodStatus, grace_s: int | None, status_fn: PodStatusFn | None
    ) -> None:
        step = await self._do("terminating", uid(pod), _version(pod))
        step.grace_s = grace_s
        step.status = status_fn(PodStatus()) if status_fn else None

    async def sync_terminating_runtime_pod(self, running: RuntimePod) -> None:
        await self._do("runtime", running.uid)

    async def sync_terminated_pod(self, pod: Pod, status: RuntimePodStatus) -> None:
        await self._do("terminated", uid(pod), _version(pod))

    def kinds(self, pod_uid: str = "") -> list[str]:
        return [s.kind for s in self.steps if pod_uid in ("", s.uid)]


def _version(pod: Pod) -> str:
    assert pod.metadata is not None
    return (pod.metadata.labels or {}).get("version", "")


@dataclass
class Recorder:
    """Keeps (reason, message) of pod events."""

    events: list[tuple[str, str]] = field(default_factory=list)

    def pod_event(self, pod: Pod, event_type: str, reason: str, message: str, **_: object) -> None:
        self.events.append((reason, message))

    def node_event(self, event_type: str, reason: str, message: str) -> None:
        self.events.append((reason, message))


class World:
    """Workers over a fake syncer, a relist every second and the work queue read every second."""

    def __init__(self) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.cache = PodCache(self.clock)
        self.syncer = FakeSyncer(self.clock)
        self.recorder = Recorder()
        settings = WorkerSettings(self.clock, Rng(1))
        self.workers = PodWorkers(self.syncer, self.cache, self.recorder, settings)
        self.pods: dict[str, Pod] = {}

    async def beat(self) -> None:
        """Relist and serve the work queue, for ever."""
        while True:
            self.cache.update_time(self.cache.stamp_s())
            for pod_uid in self.workers.work_queue.take_due():
                if pod_uid in self.pods:
                    self.tell(SyncPodType.SYNC, self.pods[pod_uid])
            await self.clock.sleep(1.0)

    def tell(self, update_type: SyncPodType, pod: Pod, kill: KillPodOptions | None = None) -> None:
        self.pods[uid(pod)] = pod
        self.workers.update_pod(UpdatePodOptions(update_type, pod, kill=kill))

    def create(self, pod: Pod) -> None:
        self.tell(SyncPodType.CREATE, pod)

    def kill(self, pod: Pod, kill: KillPodOptions | None = None) -> None:
        self.tell(SyncPodType.KILL, pod, kill)

    async def until(self, condition: Callable[[], bool], limit_s: float = 600.0) -> None:
        """Wait for a condition, looking often; fails after `limit_s`."""
        end_s = self.clock.monotonic_s() + limit_s
        while not condition():
            assert self.clock.monotonic_s() < end_s, self.syncer.steps
            await self.clock.sleep(0.01)


@asynccontextmanager
async def running_workers() -> AsyncIterator[World]:
    """A fresh world that beats; on a virtual loop."""
    world = World()
    beat = asyncio.create_task(world.beat())
    try:
        yield world
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        await world.workers.stop()


__all__ = ["FakeSyncer", "Recorder", "Step", "StepError", "World", "running_workers", "version"]
