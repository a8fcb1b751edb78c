"""The eviction manager: observes the machine every 10 s and evicts pods before a resource runs out.

One cycle: observe; evaluate the thresholds (`cycle.py`); evict pods above their own storage limits.
If there were none, take the most urgent starved resource: reclaim what no pod needs, and if that is
not enough evict the first ranked pod that is not critical. After an eviction the manager waits for
the pod's end, and the next cycle follows at once. What must never happen: a critical pod is evicted
(EVIC-085), more than one pod is evicted for a threshold in one cycle (EVIC-086), or a pod is
evicted although the observation failed (EVIC-041).
Upstream: pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from refkubelet.admission.admit_handler import Rejection
from refkubelet.admission.node_fit import admit_under_pressure
from refkubelet.config.eviction_thresholds import SIGNALS, Threshold
from refkubelet.cri.target import CriCallError
from refkubelet.cri.usage import ImageFilesystems
from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.candidates import Candidates, CandidateSearch
from refkubelet.eviction.cycle import (
    HARD_GRACE_S,
    CycleMemory,
    CycleResult,
    EvictionConfig,
    evaluate,
    grace_override_s,
    thresholds_met,
)
from refkubelet.eviction.evictor import EvictionMetrics, Evictor, KillRequest
from refkubelet.eviction.layout import (
    Layout,
    containerfs_thresholds,
    ignored_containerfs,
    reclaim_steps,
)
from refkubelet.eviction.local_storage import local_storage_violation
from refkubelet.eviction.messages import THRESHOLD_MET, EvictionText, eviction_text, reclaim_message
from refkubelet.eviction.notifier import MemoryNotifications
from refkubelet.eviction.observer import NodeObservations, Observer
from refkubelet.eviction.ranking import rank_pods
from refkubelet.eviction.trace import eviction_line, rank_line, threshold_line, violation_line
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name, uid
from refkubelet.stats.provider import PodStats
from simclock import Clock

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0  # EVIC-050
BLIND: Final = "eviction manager: cannot observe the node"
CLEANUP_POLL_S: Final = 1.0  # EVIC-051
CLEANUP_LIMIT_S: Final = 30.0

Reclaim = Callable[[], Awaitable[None]]


class PressureCondition(Struct, frozen=True):
    """One pressure condition of the node; `status` is "True" or "False"."""

    type: str
    status: str


class EvictionDeps(Struct, frozen=True):
    """What the eviction manager works with."""

    clock: Clock  # for cycles and grace periods
    observer: Observer  # measures the signals
    image_fs_info: Callable[[], Awaitable[ImageFilesystems]]
    """The runtime's answer about its disks (EVIC-028)."""
    stats: PodStats  # measures the pods
    pods: Callable[[], tuple[Pod, ...]]
    """All pods, in the same tuple object until one changes."""
    active_pods: Callable[[], tuple[Pod, ...]]
    """The pods neither terminal nor fully terminated, with allocated resources (EVIC-052)."""
    pod_is_finished: Callable[[Pod], bool]
    """Whether the containers and volumes of an evicted pod are gone (EVIC-051)."""
    kill_pod: Callable[[KillRequest], Awaitable[None]]
    """Returns when the containers have stopped; raises if that takes too long (EVIC-089)."""
    events: EventRecorder  # about pods and the node
    reclaim: Mapping[str, Reclaim]
    """Functions that remove what no pod needs, by `CONTAINERS` and `IMAGES` (EVIC-071,
    EVIC-072)."""


class EvictionManager:
    """Runs the cycles, and refuses pods under pressure as an admission handler (EVIC-110)."""

    def __init__(self, config: EvictionConfig, deps: EvictionDeps) -> None:
        self._config = config
        self._deps = deps
        self._thresholds = config.thresholds
        self._search = CandidateSearch(deps.stats, deps.pods, deps.active_pods)
        self._memory = CycleMemory()
        self._conditions: tuple[str, ...] = ()
        self._layout: Layout | None = None
        self._complaints = Complaints(log, deps.clock)
        self.metrics = EvictionMetrics()
        self._evictor = Evictor(deps.kill_pod, deps.events, self.metrics)
        self._sooner = asyncio.Event()
        self._notifications = self._memory_notifications()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The pressure conditions that are True now, sorted; empty after a restart (EVIC-112)."""
        return self._conditions

    def node_conditions(self) -> tuple[PressureCondition, ...]:
        """All three pressure conditions, for the Node object (EVIC-060..062). The kubelet sets no
        taints; a controller of the cluster does (EVIC-064)."""
        types = dict.fromkeys(condition for _, condition in SIGNALS.values())
        return tuple(PressureCondition(t, str(t in self._conditions)) for t in types)

    def admit(self, pod: Pod) -> Rejection | None:
        """The refusal of a pod under pressure; None admits it (EVIC-110)."""
        return admit_under_pressure(pod, self._conditions)

    async def run(self) -> None:
        """Run cycles until cancelled; an error of a cycle is logged (EVIC-050)."""
        try:
            while True:
                await self._cycle()
        finally:
            if self._notifications is not None:
                self._notifications.close()

    async def _cycle(self) -> None:
        """One cycle, and the pause after it: until evicted pods are gone, or else 10 s or until a
        notification of the kernel."""
        evicted: tuple[Pod, ...] = ()
        self._sooner.clear()
        try:
            evicted = await self.synchronize()
        except Exception as error:
            self._complaints.failed(BLIND, error, CriCallError, OSError)
        else:
            self._complaints.over(BLIND)
        if evicted:
            await self._wait_for_cleanup(evicted)
        elif self._notifications is None:
            await self._deps.clock.sleep(INTERVAL_S)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_S):
                    await self._sooner.wait()

    def _memory_notifications(self) -> MemoryNotifications | None:
        """The kernel's notifications about memory; None unless they are configured and the machine
        has cgroup v1 (EVIC-058)."""
        observer = self._deps.observer
        if not self._config.memcg_notification or observer.machine.cgroup_version() == 2:
            return None
        return MemoryNotifications(
            observer, self._config.thresholds, self._deps.clock, self._sooner.set
        )

    async def synchronize(self) -> tuple[Pod, ...]:
        """Do one cycle; returns the evicted pods. Raises `CriCallError` or `OSError` if the node
        cannot be observed."""
        if not self._thresholds and not self._config.local_storage_isolation:
            return ()
        observed = await self._observe()
        if self._notifications is not None:
            self._notifications.update()
        thresholds = self._thresholds
        if self._layout is None:
            thresholds = self._decide_layout(observed.layout)
        result = evaluate(
            thresholds,
            observed.signals,
            memory=self._memory,
            now_s=self._deps.clock.monotonic_s(),
            transition_s=self._config.pressure_transition_s,
        )
        candidates = await self._search.find(  # may fail, so before the memory is replaced
            result.acting[0] if result.acting else None,
            local_storage=self._config.local_storage_isolation,
        )
        self._memory, self._conditions = result.memory, result.conditions
        evicted = await self._evict_above_limits(candidates)
        if evicted or not result.acting:
            return evicted
        threshold = result.acting[0]
        log.info("%s", threshold_line(threshold, observed.signals[threshold.signal]))
        message = reclaim_message(threshold.resource)
        self._deps.events.node_event("Warning", THRESHOLD_MET, message)
        if await self._reclaim(threshold):
            return ()
        return await self._evict_first(threshold, result, candidates)

    async def _observe(self) -> NodeObservations:
        signals = {threshold.signal for threshold in self._thresholds}
        return self._deps.observer.observe(await self._deps.image_fs_info(), signals)

    def _decide_layout(self, layout: Layout) -> tuple[Threshold, ...]:
        """Decide the layout and complete the thresholds, in the first cycle (EVIC-040, EVIC-042);
        returns the thresholds of this cycle (EVIC-043)."""
        for complaint in ignored_containerfs(self._thresholds):
            log.error("eviction manager: %s", complaint)
        first, copied = containerfs_thresholds(self._thresholds, layout)
        self._layout = layout
        self._thresholds = (*first, *copied)
        return first

    @property
    def _decided(self) -> Layout:
        return self._layout or Layout.ONE

    async def _evict_above_limits(self, candidates: Candidates) -> tuple[Pod, ...]:
        """Evict every pod above its own storage limits (EVIC-100..102)."""
        evicted: list[Pod] = []
        for pod in candidates.limited:
            usage = candidates.files.get(uid(pod))
            violation = usage and local_storage_violation(pod, usage, self._decided)
            if not violation or self._evictor.spares(pod):
                continue
            log.info("%s", violation_line(pod, violation))
            text = EvictionText(violation.message, {})
            await self._evictor.evict(pod, text, HARD_GRACE_S, violation.signal, disruption=False)
            evicted.append(pod)
        return tuple(evicted)

    async def _reclaim(self, threshold: Threshold) -> bool:
        """Remove what no pod needs; True: no threshold is met any more (EVIC-070)."""
        steps = reclaim_steps(threshold.signal, self._decided)
        if not steps:
            return False
        for step in steps:
            try:
                await self._deps.reclaim[step]()
            except Exception as error:
                log.warning("eviction manager: cannot reclaim disk (%s): %s", step, error)
        try:
            observed = await self._observe()
        except Exception as error:
            self._complaints.failed(BLIND, error, CriCallError, OSError)
            return False
        still_met = thresholds_met(self._thresholds, observed.signals, enforce_min_reclaim=True)
        outcome = "not enough" if still_met else "enough"
        log.info("reclaimed %s: %s (EVIC-070)", " and ".join(steps), outcome)
        return not still_met

    async def _evict_first(
        self, threshold: Threshold, result: CycleResult, candidates: Candidates
    ) -> tuple[Pod, ...]:
        """Evict the first ranked pod that is not critical, and no other (EVIC-085, EVIC-086)."""
        observations, usage = result.memory.observations, candidates.usage
        ranked = rank_pods(threshold.signal, candidates.pods, usage, self._decided)
        now_ns = self._deps.clock.wall_ns()
        self.metrics.acted_on(
            {t.signal: observations[t.signal].time_ns for t in result.acting}, now_ns
        )
        for place, pod in enumerate(ranked, start=1):
            if self._evictor.spares(pod):
                continue
            pod_usage = usage.get(uid(pod))
            text = eviction_text(
                pod,
                pod_usage,
                resource=threshold.resource,
                acting=result.acting,
                observations=observations,
            )
            grace_s = grace_override_s(threshold, pod, self._config.max_pod_grace_s)
            why = rank_line(
                pod,
                pod_usage,
                signal=threshold.signal,
                layout=self._decided,
                place=(place, len(ranked)),
            )
            log.info("%s", eviction_line(pod, f"{threshold.signal}, {why}", grace_s))
            await self._evictor.evict(pod, text, grace_s, threshold.signal, disruption=True)
            return (pod,)
        log.info("no pod can be evicted to reclaim %s (EVIC-057)", threshold.resource)
        return ()

    async def _wait_for_cleanup(self, evicted: tuple[Pod, ...]) -> None:
        """Wait until the containers and volumes of the pods are gone, at most 30 s (EVIC-051)."""
        try:
            async with asyncio.timeout(CLEANUP_LIMIT_S):
                await self._deps.clock.sleep(CLEANUP_POLL_S)
                while not all(self._deps.pod_is_finished(pod) for pod in evicted):
                    await self._deps.clock.sleep(CLEANUP_POLL_S)
        except TimeoutError:
            names = ", ".join(full_name(pod) for pod in evicted)
            log.warning("eviction manager: timed out waiting for cleanup of %s", names)
