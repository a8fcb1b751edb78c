"""Evicts a single pod: sends the event, has the pod killed, and counts the eviction.

What must never happen: a critical pod is evicted (EVIC-085), or a kill that takes too long stops
the manager (EVIC-086). Upstream: pkg/kubelet/eviction/eviction_manager.go: evictPod.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from refkubelet.admission.node_fit import EVICTED
from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.messages import EvictionText, evicted_status
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import is_critical, log_name
from refkubelet.telemetry.metrics import Durations

log = logging.getLogger(__name__)


class KillRequest(Struct, frozen=True):
    """A pod to kill. `status_fn` changes the status that is published with the kill; `grace_s`
    overrides the pod's grace period (the pod worker raises it to at least 1)."""

    pod: Pod
    status_fn: Callable[[PodStatus], PodStatus]
    grace_s: int


@dataclass(slots=True)
class EvictionMetrics:
    """The number of evictions, and the ages of the measurements that led to them, by signal."""

    evictions: Counter[str] = field(default_factory=Counter)
    stats_age: dict[str, Durations] = field(default_factory=dict)

    def acted_on(self, times_ns: Mapping[str, int], now_ns: int) -> None:
        """Add the ages of the measurements for which pods are ranked now. `times_ns`: by signal; 0:
        unknown."""
        for signal, time_ns in times_ns.items():
            if time_ns:
                age_s = (now_ns - time_ns) / 10**9
                self.stats_age.setdefault(signal, Durations()).add(age_s)


class Evictor:
    """Evicts pods, for starved resources and for storage limits of pods."""

    def __init__(
        self,
        kill_pod: Callable[[KillRequest], Awaitable[None]],
        events: EventRecorder,
        metrics: EvictionMetrics,
    ) -> None:
        self._kill_pod = kill_pod
        self._events = events
        self._metrics = metrics

    def spares(self, pod: Pod) -> bool:
        """Whether the pod is critical, and so is never evicted, which is logged (EVIC-085)."""
        if not is_critical(pod):
            return False
        log.error("eviction manager: cannot evict a critical pod %s (EVIC-085)", log_name(pod))
        return True

    async def evict(
        self, pod: Pod, text: EvictionText, grace_s: int, signal: str, *, disruption: bool
    ) -> None:
        """Send the event and kill the pod (EVIC-090, EVIC-094). A kill that fails or takes too long
        counts, too, and goes on in the background (EVIC-086). `disruption`: the pod gets the
        condition DisruptionTarget."""
        self._events.pod_event(pod, "Warning", EVICTED, text.message, annotations=text.annotations)
        request = KillRequest(pod, evicted_status(pod, text.message, disruption), grace_s)
        try:
            await self._kill_pod(request)
        except Exception as error:
            log.warning("eviction manager: pod %s: %s", log_name(pod), error)
        self._metrics.evictions[signal] += 1
