"""Measures the volumes of pods in the background, those of each pod every one to two periods
(EVIC-029, EVIC-103).

New pods are searched for once a period, and measured at once. What the kubelet made is read file by
file; volumes of claims and drivers are measured by `ClaimSizes` in a task of their pod, since a
driver may not answer. What must never happen here: one pod's driver holds up what others are
measured for. Upstream: pkg/kubelet/server/stats: fs_resource_analyzer.go,
volume_stat_calculator.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from refkubelet.failures import Complaints
from refkubelet.host.disk_use import VolumeSize
from refkubelet.model.objects import Pod
from refkubelet.model.pod import name_and_namespace, pod_ref, uid
from refkubelet.stats.files import PodFilesReader, has_claims
from simclock import Clock

log = logging.getLogger(__name__)

ClaimSizes = Callable[[Pod], Awaitable[Mapping[str, VolumeSize]]]
"""Measures the pod's volumes of claims and drivers, by name; raises nothing."""


def _nothing() -> Mapping[str, VolumeSize]:
    return MappingProxyType({})


@dataclass(slots=True)
class _Watched:
    """A pod; `sizes` of volumes that the kubelet made, `claimed` of others; `task`: asks for
    these."""

    pod: Pod
    due_s: float
    sizes: Mapping[str, VolumeSize] = field(default_factory=_nothing)
    claimed: Mapping[str, VolumeSize] = field(default_factory=_nothing)
    task: asyncio.Task[None] | None = None

    def is_answered(self, _task: asyncio.Task[None]) -> None:
        """The task has ended, or was cancelled before it began."""
        self.task = None


class VolumeStats:
    """The last sizes of all volumes. `period_s`: volumeStatsAggPeriod; 0 or less: nothing is
    measured."""

    def __init__(
        self,
        files: PodFilesReader,
        *,
        claimed: ClaimSizes,
        pods: Callable[[], Sequence[Pod]],
        clock: Clock,
        random: Callable[[], float],
        period_s: float,
    ) -> None:
        self._files = files
        self._claimed = claimed
        self._pods = pods
        self._clock = clock
        self._random = random
        self._period_s = period_s
        self._complaints = Complaints(log, clock)
        self._watched: dict[str, _Watched] = {}

    def of(self, pod_uid: str) -> Mapping[str, VolumeSize]:
        """The last measurements of the pod's volumes, by name; empty before the first."""
        watched = self._watched.get(pod_uid)
        return _nothing() if watched is None else {**watched.sizes, **watched.claimed}

    def of_claims(self) -> dict[tuple[str, str], VolumeSize]:
        """The last measurements of the volumes of claims, by the claim's namespace and name
        (SRV-035)."""
        sizes: dict[tuple[str, str], VolumeSize] = {}
        for pod in self._pods():
            _, namespace = name_and_namespace(pod)
            watched = self._watched.get(uid(pod))
            for size in watched.claimed.values() if watched is not None else ():
                if size.claim:
                    sizes.setdefault((namespace, size.claim), size)
        return sizes

    async def run(self) -> None:
        """Measure until cancelled."""
        if self._period_s <= 0:
            await asyncio.Event().wait()
        look_s = self._clock.monotonic_s()
        async with asyncio.TaskGroup() as asking:
            while True:
                if self._clock.monotonic_s() >= look_s:
                    self._look()
                    look_s = self._clock.monotonic_s() + self._period_s
                await self._measure(asking)
                next_s = min([look_s, *(w.due_s for w in self._watched.values())])
                await self._clock.sleep(max(0.0, next_s - self._clock.monotonic_s()))

    def _look(self) -> None:
        """Add new pods with volumes, and drop those that are gone."""
        pods = {uid(pod): pod for pod in self._pods() if pod.spec.volumes}
        for stale_uid in [pod_uid for pod_uid in self._watched if pod_uid not in pods]:
            task = self._watched.pop(stale_uid).task
            if task is not None:
                task.cancel()
        for pod_uid, pod in pods.items():
            self._watched.setdefault(pod_uid, _Watched(pod, self._clock.monotonic_s())).pod = pod

    async def _measure(self, asking: asyncio.TaskGroup) -> None:
        """Measure the volumes of pods that are due; `asking` has the tasks of those of drivers."""
        for watched in list(self._watched.values()):
            if watched.due_s <= self._clock.monotonic_s():
                if watched.task is None and has_claims(watched.pod):
                    name = f"sizes of volumes of {pod_ref(watched.pod)}"
                    watched.task = asking.create_task(self._ask(watched), name=name)
                    watched.task.add_done_callback(watched.is_answered)
                now_ns = self._clock.wall_ns()
                sizes = await self._files.volumes(watched.pod, now_ns, self._complaints)
                watched.sizes = sizes
                jitter = 1.0 + self._random()
                watched.due_s = self._clock.monotonic_s() + self._period_s * jitter

    async def _ask(self, watched: _Watched) -> None:
        watched.claimed = await self._claimed(watched.pod)
