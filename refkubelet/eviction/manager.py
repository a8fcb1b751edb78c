"""The eviction manager: looks at the machine every 10 s and ends pods before it runs dry.

One cycle: observe; evaluate the thresholds (`cycle.py`); pods above their own storage limits go
first; else, for the most urgent starved resource, reclaim what no pod needs, then end the first
ranked pod that is not critical, and wait for its end. After an eviction the next cycle follows at
once. What must never happen: a critical pod is ended (EVIC-085), more than one pod is ended for a
threshold in one cycle (EVIC-086), or a failing look at the machine ends anything (EVIC-041).
Statistics of pods are asked for only when somebody may have to go: an idle cycle is cheap.
Upstream: pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from refkubelet.admission.handlers import Rejection
from refkubelet.config.eviction_thresholds import MEMORY, PIDS, SIGNALS, Threshold
from refkubelet.cri.client import CriCallError
from refkubelet.eviction.admission import admit_under_pressure
from refkubelet.eviction.config import EvictionConfig
from refkubelet.eviction.cycle import (
    HARD_GRACE_S,
    CycleMemory,
    CycleResult,
    evaluate,
    grace_override_s,
    thresholds_met,
)
from refkubelet.eviction.deps import NOBODY, Candidates, EvictionDeps, PressureCondition
from refkubelet.eviction.evictor import EvictionMetrics, Evictor
from refkubelet.eviction.layout import (
    Layout,
    containerfs_thresholds,
    disk_of,
    ignored_containerfs,
    reclaim_steps,
)
from refkubelet.eviction.local_storage import has_storage_limits, local_storage_violation
from refkubelet.eviction.messages import THRESHOLD_MET, EvictionText, eviction_text, reclaim_message
from refkubelet.eviction.notifier import MemoryNotifications
from refkubelet.eviction.observer import NodeObservations
from refkubelet.eviction.ranking import rank_pods
from refkubelet.eviction.trace import eviction_line, rank_line, threshold_line, violation_line
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name, uid
from refkubelet.stats.usage import PodUsage

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0  # EVIC-050
BLIND: Final = "eviction manager: cannot look at the node"
CLEANUP_POLL_S: Final = 1.0  # EVIC-051
CLEANUP_LIMIT_S: Final = 30.0


class EvictionManager:
    """One per kubelet; also an admission handler (EVIC-110)."""

    def __init__(self, config: EvictionConfig, deps: EvictionDeps) -> None:
        self._config = config
        self._deps = deps
        self._thresholds = config.thresholds
        self._looked_at: tuple[Pod, ...] | None = None
        self._limited: Mapping[str, tuple[object, bool]] = {}
        self._memory = CycleMemory()
        self._conditions: tuple[str, ...] = ()
        self._layout: Layout | None = None
        self._complaints = Complaints(log, deps.clock)
        self.metrics = EvictionMetrics()
        self._evictor = Evictor(deps.kill_pod, deps.events, self.metrics)
        self._sooner = asyncio.Event()
        self._notifications = self._notifications_of_the_kernel()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The pressure conditions that are True now, sorted; empty after a restart (EVIC-112)."""
        return self._conditions

    def node_conditions(self) -> tuple[PressureCondition, ...]:
        """All three pressure conditions, for the Node object (EVIC-060..062). Taints are somebody
        else's: the kubelet sets none (EVIC-064)."""
        types = dict.fromkeys(condition for _, condition in SIGNALS.values())
        return tuple(PressureCondition(t, str(t in self._conditions)) for t in types)

    def admit(self, pod: Pod) -> Rejection | None:
        """EVIC-110: None admits the pod."""
        return admit_under_pressure(pod, self._conditions)

    async def run(self) -> None:
        """Cycle until cancelled; a failing cycle is logged and tried again (EVIC-050)."""
        try:
            while True:
                await self._cycle()
        finally:
            if self._notifications is not None:
                self._notifications.close()

    async def _cycle(self) -> None:
        """One look, and what follows until the next one."""
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

    def _notifications_of_the_kernel(self) -> MemoryNotifications | None:
        """EVIC-058: None where there are none."""
        observer = self._deps.observer
        if not self._config.memcg_notification or observer.machine.cgroup_version() == 2:
            return None
        return MemoryNotifications(
            observer, self._config.thresholds, self._deps.clock, self._sooner.set
        )

    async def synchronize(self) -> tuple[Pod, ...]:
        """One cycle; the pods that were evicted. Raises when the node cannot be observed."""
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
            self._memory,
            self._deps.clock.monotonic_s(),
            self._config.pressure_transition_s,
        )
        candidates = await self._candidates(result)  # fails before anything is remembered
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

    async def _candidates(self, result: CycleResult) -> Candidates:
        """What somebody may have to go for is looked at, and nothing else."""
        limited = self._config.local_storage_isolation and self._any_limited()
        if not result.acting and not limited:
            return NOBODY
        pods = self._deps.active_pods()
        offenders = tuple(pod for pod in pods if has_storage_limits(pod)) if limited else ()
        files = await self._deps.stats.of(offenders, files=True) if offenders else {}
        if not result.acting:
            return Candidates(pods, {}, offenders, files)
        signal, resource = result.acting[0].signal, result.acting[0].resource
        usage = await self._deps.stats.of(
            pods,
            memory=resource == MEMORY,
            processes=resource == PIDS,
            files=disk_of(signal) is not None,
        )
        return Candidates(pods, usage, offenders, files)

    async def _observe(self) -> NodeObservations:
        signals = {threshold.signal for threshold in self._thresholds}
        return self._deps.observer.observe(await self._deps.image_fs_info(), signals)

    def _decide_layout(self, layout: Layout) -> tuple[Threshold, ...]:
        """EVIC-040, EVIC-042: once. The thresholds of this first cycle (EVIC-043)."""
        for complaint in ignored_containerfs(self._thresholds):
            log.error("eviction manager: %s", complaint)
        first, copied = containerfs_thresholds(self._thresholds, layout)
        self._layout = layout
        self._thresholds = (*first, *copied)
        return first

    @property
    def _decided(self) -> Layout:
        return self._layout or Layout.ONE

    def _any_limited(self) -> bool:
        """Whether any pod can break a limit of its own; specs are looked at once, and the very
        same pods not at all."""
        pods = self._deps.pods()
        if pods is self._looked_at:
            return any(limited for _, limited in self._limited.values())
        self._looked_at = pods
        known, found = self._limited, {}
        for pod in pods:
            seen = known.get(uid(pod))
            if seen is None or seen[0] is not pod.spec:
                seen = (pod.spec, has_storage_limits(pod))
            found[uid(pod)] = seen
        self._limited = found
        return any(limited for _, limited in found.values())

    async def _evict_above_limits(self, candidates: Candidates) -> tuple[Pod, ...]:
        """Section 8 of the rules: every offender, at once."""
        evicted: list[Pod] = []
        for pod in candidates.limited:
            found = candidates.files.get(uid(pod))
            violation = found and local_storage_violation(pod, found, self._decided)
            if not violation or self._evictor.spares(pod):
                continue
            log.info("%s", violation_line(pod, violation))
            text = EvictionText(violation.message, {})
            await self._evictor.evict(pod, text, HARD_GRACE_S, violation.signal, disruption=False)
            evicted.append(pod)
        return tuple(evicted)

    async def _reclaim(self, threshold: Threshold) -> bool:
        """EVIC-070: free what no pod needs; True when that was enough."""
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
        left = thresholds_met(self._thresholds, observed.signals, enforce_min_reclaim=True)
        outcome = "not enough" if left else "enough"
        log.info("reclaimed %s: %s (EVIC-070)", " and ".join(steps), outcome)
        return not left

    async def _evict_first(
        self, threshold: Threshold, result: CycleResult, candidates: Candidates
    ) -> tuple[Pod, ...]:
        """EVIC-085, EVIC-086: the first ranked pod that may be evicted, and no other."""
        observations, usage = result.memory.observations, candidates.usage
        ranked = rank_pods(threshold.signal, candidates.pods, usage, self._decided)
        now_ns = self._deps.clock.wall_ns()
        self.metrics.acted_on(
            {t.signal: observations[t.signal].time_ns for t in result.acting}, now_ns
        )
        for place, pod in enumerate(ranked, start=1):
            if self._evictor.spares(pod):
                continue
            found = usage.get(uid(pod))
            text = eviction_text(pod, found, threshold.resource, result.acting, observations)
            grace_s = grace_override_s(threshold, pod, self._config.max_pod_grace_s)
            self._explain(threshold, pod, found, (place, len(ranked)), grace_s)
            await self._evictor.evict(pod, text, grace_s, threshold.signal, disruption=True)
            return (pod,)
        log.info("no pod can be evicted to reclaim %s (EVIC-057)", threshold.resource)
        return ()

    def _explain(
        self,
        threshold: Threshold,
        pod: Pod,
        usage: PodUsage | None,
        place: tuple[int, int],
        grace_s: int,
    ) -> None:
        why = rank_line(pod, usage, threshold.signal, self._decided, place)
        log.info("%s", eviction_line(pod, f"{threshold.signal}, {why}", grace_s))

    async def _wait_for_cleanup(self, evicted: tuple[Pod, ...]) -> None:
        """EVIC-051: until the pods are gone for good, at most 30 s."""
        try:
            async with asyncio.timeout(CLEANUP_LIMIT_S):
                await self._deps.clock.sleep(CLEANUP_POLL_S)
                while not all(self._deps.pod_is_finished(pod) for pod in evicted):
                    await self._deps.clock.sleep(CLEANUP_POLL_S)
        except TimeoutError:
            names = ", ".join(full_name(pod) for pod in evicted)
            log.warning("eviction manager: timed out waiting for cleanup of %s", names)
