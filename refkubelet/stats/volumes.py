"""Measures the volumes of pods in the background, those of each pod every one to two periods
(EVIC-029, EVIC-103).

New pods are searched for once a period, and measured at once. Upstream: pkg/kubelet/server/stats:
fs_resource_analyzer.go, volume_stat_calculator.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats.files import PodFilesReader, measured_volumes
from refkubelet.stats.usage import VolumeUse
from simclock import Clock


@dataclass(slots=True)
class _Watched:
    pod: Pod
    due_s: float
    sizes: Mapping[str, VolumeUse] = field(default_factory=lambda: MappingProxyType({}))


class VolumeStats:
    """The last sizes of all volumes. `period_s`: volumeStatsAggPeriod; 0 or less: nothing is
    measured."""

    def __init__(
        self,
        files: PodFilesReader,
        pods: Callable[[], Sequence[Pod]],
        clock: Clock,
        random: Callable[[], float],
        period_s: float,
    ) -> None:
        self._files = files
        self._pods = pods
        self._clock = clock
        self._random = random
        self._period_s = period_s
        self._watched: dict[str, _Watched] = {}

    def of(self, pod_uid: str) -> Mapping[str, VolumeUse]:
        """The last measurements of the pod's volumes, by name; empty before the first."""
        watched = self._watched.get(pod_uid)
        return MappingProxyType({}) if watched is None else watched.sizes

    async def run(self) -> None:
        """Measure until cancelled."""
        if self._period_s <= 0:
            await asyncio.Event().wait()
        look_s = self._clock.monotonic_s()
        while True:
            if self._clock.monotonic_s() >= look_s:
                self._look()
                look_s = self._clock.monotonic_s() + self._period_s
            await self._measure()
            next_s = min([look_s, *(w.due_s for w in self._watched.values())])
            await self._clock.sleep(max(0.0, next_s - self._clock.monotonic_s()))

    def _look(self) -> None:
        """Add new pods with volumes, and drop those that are gone."""
        pods = {uid(pod): pod for pod in self._pods() if measured_volumes(pod)}
        for gone in [pod_uid for pod_uid in self._watched if pod_uid not in pods]:
            del self._watched[gone]
        for pod_uid, pod in pods.items():
            self._watched.setdefault(pod_uid, _Watched(pod, self._clock.monotonic_s())).pod = pod

    async def _measure(self) -> None:
        """Measure the volumes of pods that are due."""
        for watched in list(self._watched.values()):
            if watched.due_s <= self._clock.monotonic_s():
                watched.sizes = await self._files.volumes(watched.pod, self._clock.wall_ns())
                jitter = 1.0 + self._random()
                watched.due_s = self._clock.monotonic_s() + self._period_s * jitter
