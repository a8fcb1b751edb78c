"""Ends one pod: who is spared, the event, the kill.

What must never happen: a critical pod is ended (EVIC-085), or a kill that takes too long stops the
manager (EVIC-086). Upstream: pkg/kubelet/eviction/eviction_manager.go: evictPod.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.messages import REASON, EvictionText, evicted_status
from refkubelet.metrics import Durations
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import is_critical, log_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KillRequest:
    """End this pod: `status_fn` changes the status published with the kill, `grace_s` overrides
    the pod's grace period (the pod worker raises it to at least 1)."""

    pod: Pod
    status_fn: Callable[[PodStatus], PodStatus]
    grace_s: int


@dataclass(slots=True)
class EvictionMetrics:
    """`evictions` by signal; `stats_age`: how old the measurements were that led to them."""

    evictions: Counter[str] = field(default_factory=Counter)
    stats_age: dict[str, Durations] = field(default_factory=dict)

    def acted_on(self, times_ns: Mapping[str, int], now_ns: int) -> None:
        """Pods are ranked because of these signals, measured then; 0 is an unknown time."""
        for signal, time_ns in times_ns.items():
            if time_ns:
                age_s = (now_ns - time_ns) / 10**9
                self.stats_age.setdefault(signal, Durations()).add(age_s)


class Evictor:
    """What both reasons for evictions share."""

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
        """EVIC-085: whether the pod is never evicted; that is told in the log."""
        if not is_critical(pod):
            return False
        log.error("eviction manager: cannot evict a critical pod %s (EVIC-085)", log_name(pod))
        return True

    async def evict(
        self, pod: Pod, text: EvictionText, grace_s: int, signal: str, *, disruption: bool
    ) -> None:
        """EVIC-090, EVIC-094. A kill that fails counts (EVIC-086): it goes on in the
        background."""
        self._events.pod_event(pod, "Warning", REASON, text.message, annotations=text.annotations)
        request = KillRequest(pod, evicted_status(pod, text.message, disruption), grace_s)
        try:
            await self._kill_pod(request)
        except Exception as error:
            log.warning("eviction manager: pod %s: %s", log_name(pod), error)
        self._metrics.evictions[signal] += 1
