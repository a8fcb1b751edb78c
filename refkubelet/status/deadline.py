"""The active deadline of a pod (LIFE-204). Pure. Upstream: pkg/kubelet/active_deadline.go."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from refkubelet.model.objects import Pod, PodStatus
from refkubelet.status.generate import ForcedFailure

DEADLINE_EXCEEDED: Final = ForcedFailure(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


def past_active_deadline(pod: Pod, status: PodStatus | None, now: datetime) -> bool:
    """Whether activeDeadlineSeconds have passed since startTime; `status`: the cached one, else
    the object's own counts. A pod without a start time has no deadline yet."""
    seconds = pod.spec.activeDeadlineSeconds
    known = status or pod.status
    if seconds is None or known is None or known.startTime is None:
        return False
    return (now - known.startTime).total_seconds() >= seconds
