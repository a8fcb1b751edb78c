"""How a pod is ended: grace and status. Pure.

Rules: EVIC-087, EVIC-094.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from refkubelet.config.eviction_thresholds import Threshold
from refkubelet.eviction.messages import REASON
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.status.ended import ended_status

HARD_GRACE_S: Final = 1  # EVIC-087


def grace_override_s(threshold: Threshold, pod: Pod, max_pod_grace_s: int) -> int:
    """EVIC-087: 1 for hard thresholds, for soft ones the smaller of the maximum and the pod's."""
    if threshold.hard:
        return HARD_GRACE_S
    own = pod.spec.terminationGracePeriodSeconds
    return max_pod_grace_s if own is None else min(max_pod_grace_s, own)


def evicted_status(pod: Pod, message: str, disruption: bool) -> Callable[[PodStatus], PodStatus]:
    """EVIC-094: what the kill makes of the pod's status."""
    return ended_status(pod, REASON, message, disruption=message if disruption else None)
