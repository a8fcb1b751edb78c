"""Makes room for a critical pod by killing other pods, one after the other (PREE-001,
PREE-007..009).

What must never happen here: a pod is killed for a critical pod that is refused all the same, or a
kill that takes too long keeps the critical pod from starting.
Upstream: pkg/kubelet/preemption/preemption.go: HandleAdmissionFailure, evictPodsToFreeRequests.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

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


class PreemptionDeps(Struct, frozen=True):
    """What preemption works with."""

    allocated_pods: Callable[[], tuple[Pod, ...]]
    """The active pods, with their allocated resources."""
    kill_pod: KillPod
    """Returns when the containers have stopped; raises if that takes too long (EVIC-089)."""
    events: EventRecorder


class Preemptor:
    """Kills pods to make room for critical ones. `preempted`: how many, by the first resource that
    was short."""

    def __init__(self, deps: PreemptionDeps) -> None:
        self._deps = deps
        self.preempted: Counter[str] = Counter()

    async def make_room(self, pod: Pod, failures: Failures) -> Failures:
        """Kill other pods if `pod` is critical and was refused only for lack of resources. Returns
        the failures that remain; none: it can be admitted now. Takes as long as the grace periods
        of the killed pods. Raises `RecoveryError` if killing all preemptable pods would not make
        enough room."""
        if not is_critical(pod):
            return failures
        other_failures = tuple(f for f in failures if not isinstance(f, Shortage))
        if other_failures:
            return other_failures
        short = [f for f in failures if isinstance(f, Shortage)]
        missing = tuple(Requirement(f.resource, f.missing) for f in short)
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
