"""Makes room for a critical pod by ending others, one after the other (PREE-001, PREE-007..009).

What must never happen here: a pod ends for one that is refused anyway; a kill that takes too long
keeps the critical pod from starting.
Upstream: pkg/kubelet/preemption/preemption.go: HandleAdmissionFailure, evictPodsToFreeRequests.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from refkubelet.admission.predicates import Failures, RecoveryError
from refkubelet.admission.resource_fit import Shortage
from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.preemption_choice import NoVictims, Requirement, listed, pods_to_preempt
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import is_critical, pod_ref
from refkubelet.status.ended import ended_status

log = logging.getLogger(__name__)

REASON: Final = "Preempting"
MESSAGE: Final = "Preempted in order to admit critical pod"
DISRUPTION: Final = "Pod was preempted by Kubelet to accommodate a critical pod."
KillPod = Callable[[Pod, Callable[[PodStatus], PodStatus]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PreemptionDeps:
    """`allocated_pods`: the active pods with what they were allocated. `kill_pod` returns when the
    pod's containers have stopped, and raises when that takes too long (EVIC-089)."""

    allocated_pods: Callable[[], tuple[Pod, ...]]
    kill_pod: KillPod
    events: EventRecorder


class Preemptor:
    """`preempted`: how many pods ended, by the resource that was short first."""

    def __init__(self, deps: PreemptionDeps) -> None:
        self._deps = deps
        self.preempted: Counter[str] = Counter()

    async def make_room(self, pod: Pod, failures: Failures) -> Failures:
        """The failures that remain; none: there is room for `pod` now, which may take the whole
        grace period of other pods.

        Raises `RecoveryError`: not all victims together would be enough.
        """
        if not is_critical(pod):
            return failures
        others = tuple(one for one in failures if not isinstance(one, Shortage))
        if others:
            return others
        short = [one for one in failures if isinstance(one, Shortage)]
        missing = tuple(Requirement(one.resource, one.missing) for one in short)
        try:
            victims = pods_to_preempt(pod, self._deps.allocated_pods(), missing)
        except NoVictims as error:
            text = f"preemption: error finding a set of pods to preempt: {error}"
            raise RecoveryError(text) from None
        for victim in victims:
            log.info("preempting %s for %s: %s", pod_ref(victim), pod_ref(pod), listed(missing))
            await self._end(victim, missing[0].resource)
        return ()

    async def _end(self, pod: Pod, signal: str) -> None:
        self._deps.events.pod_event(pod, "Warning", REASON, MESSAGE)
        try:
            status = ended_status(pod, REASON, MESSAGE, disruption=DISRUPTION)
            await self._deps.kill_pod(pod, status)
        except Exception as error:  # the kill goes on; the next victim follows
            log.warning("preemption of %s: %s", pod_ref(pod), error)
        else:
            self.preempted[signal] += 1
