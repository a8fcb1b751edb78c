"""The eviction manager: looks at the machine every 10 s and ends pods before it runs dry.

One cycle: observe; evaluate the thresholds (`cycle.py`); pods above their own storage limits go
first; else, for the most urgent starved resource, reclaim what no pod needs, then end the first
ranked pod that is not critical, and wait for its end. After an eviction the next cycle follows at
once. What must never happen: a critical pod is ended (EVIC-085), more than one pod is ended for a
threshold in one cycle (EVIC-086), or a failing look at the machine ends anything (EVIC-041).
Upstream: pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from refkubelet.events import EventRecorder
from refkubelet.eviction.admission import Rejection, admit_under_pressure
from refkubelet.eviction.cycle import CycleMemory, CycleResult, evaluate, thresholds_met
from refkubelet.eviction.files import ReadFiles
from refkubelet.eviction.kill import (
    HARD_GRACE_S,
    evicted_status,
    grace_override_s,
    reclaim_steps,
)
from refkubelet.eviction.local_storage import has_storage_limits, local_storage_violation
from refkubelet.eviction.messages import (
    REASON,
    THRESHOLD_MET,
    EvictionText,
    eviction_text,
    reclaim_message,
)
from refkubelet.eviction.ranking import rank_pods
from refkubelet.eviction.signals import NodeObservations, observe
from refkubelet.eviction.thresholds import MEMORY, SIGNALS, Threshold, parse_thresholds
from refkubelet.eviction.usage import PodUsage, usage_by_pod, usage_on_disk
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, PodStatus, full_name, is_critical, uid
from refkubelet.node.machine import Machine
from refkubelet.runtime.client import CriCallError
from refkubelet.runtime.records import ContainerUsage, FilesystemUsage
from simtime import Clock

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0  # EVIC-050
BLIND: Final = "eviction manager: cannot look at the node"
CLEANUP_POLL_S: Final = 1.0  # EVIC-051
CLEANUP_LIMIT_S: Final = 30.0
Reclaim = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EvictionConfig:
    """Thresholds and times of one kubelet (EVIC-007)."""

    thresholds: tuple[Threshold, ...] = ()
    pressure_transition_s: float = 300.0
    max_pod_grace_s: int = 0
    local_storage_isolation: bool = True

    @classmethod
    def from_settings(
        cls,
        *,
        hard: Mapping[str, str],
        soft: Mapping[str, str],
        soft_grace_period: Mapping[str, str],
        minimum_reclaim: Mapping[str, str],
        pressure_transition_s: float = 300.0,
        max_pod_grace_s: int = 0,
    ) -> EvictionConfig:
        """From the maps of a KubeletConfiguration, defaults already applied (EVIC-006).

        Raises `ThresholdError`.
        """
        thresholds = parse_thresholds(hard, soft, soft_grace_period, minimum_reclaim)
        return cls(thresholds, pressure_transition_s or 300.0, max_pod_grace_s)


@dataclass(frozen=True, slots=True)
class PressureCondition:
    """One pressure condition of the node; `status` is "True" or "False"."""

    type: str
    status: str


@dataclass(frozen=True, slots=True)
class KillRequest:
    """End this pod: `status_fn` changes the status published with the kill, `grace_s` overrides
    the pod's grace period (the pod worker raises it to at least 1)."""

    pod: Pod
    status_fn: Callable[[PodStatus], PodStatus]
    grace_s: int


@dataclass(frozen=True, slots=True)
class EvictionDeps:
    """What evictions need of their kubelet.

    `kill_pod` returns when the containers are stopped and raises when that takes too long
    (EVIC-089). `active_pods`: neither terminal nor fully terminated (EVIC-052). `reclaim_...` free
    disk that no pod needs (EVIC-071, EVIC-072). `pod_files` (`files.PodFilesReader`) measures logs
    and volumes; None counts writable layers alone.
    """

    clock: Clock
    machine: Machine
    root_dir: str
    image_fs_info: Callable[[], Awaitable[tuple[FilesystemUsage, ...]]]
    container_stats: Callable[[], Awaitable[tuple[ContainerUsage, ...]]]
    active_pods: Callable[[], tuple[Pod, ...]]
    pod_is_finished: Callable[[Pod], bool]
    kill_pod: Callable[[KillRequest], Awaitable[None]]
    events: EventRecorder
    reclaim_containers: Reclaim | None = None
    reclaim_images: Reclaim | None = None
    pod_files: ReadFiles | None = None


class EvictionManager:
    """One per kubelet; also an admission handler (EVIC-110)."""

    def __init__(self, config: EvictionConfig, deps: EvictionDeps) -> None:
        self._config = config
        self._deps = deps
        self._memory = CycleMemory()
        self._conditions: tuple[str, ...] = ()
        self._dedicated_image_fs: bool | None = None
        self._complaints = Complaints(log, deps.clock)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The pressure conditions that are True now, sorted; empty after a restart (EVIC-112)."""
        return self._conditions

    def node_conditions(self) -> tuple[PressureCondition, ...]:
        """All three pressure conditions, for the Node object (EVIC-060..062)."""
        types = dict.fromkeys(condition for _, condition in SIGNALS.values())
        return tuple(PressureCondition(t, str(t in self._conditions)) for t in types)

    def admit(self, pod: Pod) -> Rejection | None:
        """EVIC-110: None admits the pod."""
        return admit_under_pressure(pod, self._conditions)

    async def run(self) -> None:
        """Cycle until cancelled; a failing cycle is logged and tried again (EVIC-050)."""
        while True:
            evicted: tuple[Pod, ...] = ()
            try:
                evicted = await self.synchronize()
            except Exception as error:
                self._complaints.failed(BLIND, error, CriCallError)
            else:
                self._complaints.over(BLIND)
            if evicted:
                await self._wait_for_cleanup(evicted)
            else:
                await self._deps.clock.sleep(INTERVAL_S)

    async def synchronize(self) -> tuple[Pod, ...]:
        """One cycle; the pods that were evicted. Raises when the node cannot be observed."""
        observed = await self._observe()
        usage = usage_by_pod(await self._deps.container_stats())
        if self._dedicated_image_fs is None:
            self._dedicated_image_fs = observed.dedicated_image_fs  # EVIC-040
        result = evaluate(
            self._config.thresholds,
            observed.signals,
            self._memory,
            self._deps.clock.monotonic_s(),
            self._config.pressure_transition_s,
        )
        self._memory, self._conditions = result.memory, result.conditions
        pods = self._deps.active_pods()
        evicted = await self._evict_above_limits(pods, usage)
        if evicted or not result.acting:
            return evicted
        threshold = result.acting[0]
        message = reclaim_message(threshold.resource)
        self._deps.events.node_event("Warning", THRESHOLD_MET, message)
        if await self._reclaim(threshold):
            return ()
        return await self._evict_first(threshold, result, pods, usage)

    async def _observe(self) -> NodeObservations:
        image_fs = await self._deps.image_fs_info()
        return observe(self._deps.machine, self._deps.root_dir, image_fs)

    async def _evict_above_limits(
        self, pods: tuple[Pod, ...], usage: Mapping[str, PodUsage]
    ) -> tuple[Pod, ...]:
        """Section 8 of the rules: every offender, at once."""
        if not self._config.local_storage_isolation:
            return ()
        evicted: list[Pod] = []
        for pod in pods:
            found = usage.get(uid(pod))
            if found is None or not has_storage_limits(pod):
                continue
            violation = local_storage_violation(pod, self._with_files(pod, found))
            if violation is None:
                continue
            text = EvictionText(violation, {})
            if await self._evict(pod, text, HARD_GRACE_S, disruption=False):
                evicted.append(pod)
        return tuple(evicted)

    async def _reclaim(self, threshold: Threshold) -> bool:
        """EVIC-070: free what no pod needs; True when that was enough."""
        steps = reclaim_steps(threshold.signal, dedicated_image_fs=bool(self._dedicated_image_fs))
        known = {
            "containers": self._deps.reclaim_containers,
            "images": self._deps.reclaim_images,
        }
        functions = [known[step] for step in steps]
        ran = False
        for function in functions:
            if function is None:
                continue
            ran = True
            try:
                await function()
            except Exception as error:
                log.warning("eviction manager: cannot reclaim disk: %s", error)
        if not ran:
            return False
        observed = await self._observe()
        left = thresholds_met(self._config.thresholds, observed.signals, enforce_min_reclaim=True)
        return not left

    async def _evict_first(
        self,
        threshold: Threshold,
        result: CycleResult,
        pods: tuple[Pod, ...],
        usage: Mapping[str, PodUsage],
    ) -> tuple[Pod, ...]:
        """EVIC-085, EVIC-086: the first ranked pod that may be evicted, and no other."""
        observations = result.memory.observations
        if threshold.resource != MEMORY:
            usage = self._usage_on_disk(threshold.signal, pods, usage)
        for pod in rank_pods(threshold.resource, pods, usage):
            text = eviction_text(
                pod, usage.get(uid(pod)), threshold.resource, result.acting, observations
            )
            grace_s = grace_override_s(threshold, pod, self._config.max_pod_grace_s)
            if await self._evict(pod, text, grace_s, disruption=True):
                return (pod,)
        log.info("eviction manager: no pod can be evicted to reclaim %s", threshold.resource)
        return ()

    def _usage_on_disk(
        self, signal: str, pods: tuple[Pod, ...], usage: Mapping[str, PodUsage]
    ) -> Mapping[str, PodUsage]:
        dedicated = bool(self._dedicated_image_fs)
        return {
            pod_uid: usage_on_disk(
                self._with_files(pod, usage[pod_uid]), signal, dedicated_image_fs=dedicated
            )
            for pod in pods
            if (pod_uid := uid(pod)) in usage
        }

    def _with_files(self, pod: Pod, usage: PodUsage) -> PodUsage:
        read = self._deps.pod_files
        return usage if read is None else replace(usage, files=read(pod))

    async def _evict(self, pod: Pod, text: EvictionText, grace_s: int, *, disruption: bool) -> bool:
        if is_critical(pod):
            log.error("eviction manager: cannot evict a critical pod %s", full_name(pod))
            return False
        self._deps.events.pod_event(
            pod, "Warning", REASON, text.message, annotations=text.annotations
        )
        request = KillRequest(pod, evicted_status(pod, text.message, disruption), grace_s)
        try:
            await self._deps.kill_pod(request)
        except Exception as error:  # EVIC-086: the kill goes on, and counts
            log.warning("eviction manager: pod %s: %s", full_name(pod), error)
        return True

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
