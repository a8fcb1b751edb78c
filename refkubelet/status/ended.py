"""The status of a pod that is evicted, preempted, or ended by the node's shutdown (LIFE-230). Pure.

Upstream: pkg/kubelet/eviction, preemption and nodeshutdown, which all make the same change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from refkubelet.model.objects import Pod, PodCondition, PodStatus
from refkubelet.model.pod import (
    generation_of,
)
from refkubelet.status.conditions import (
    DISRUPTION_TARGET,
    with_condition,
)

BY_KUBELET: Final = "TerminationByKubelet"


def ended_status(
    pod: Pod, reason: str, message: str, *, disruption: str | None, keeps_success: bool = False
) -> Callable[[PodStatus], PodStatus]:
    """A function that changes the status to Failed with `reason` and `message`, for the kill of the
    pod. `disruption`: the message of the condition DisruptionTarget; None: the pod does not get it.
    `keeps_success`: the phase Succeeded is kept."""
    target = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=BY_KUBELET,
        message=disruption,
        observedGeneration=generation_of(pod),
    )

    def change(status: PodStatus) -> PodStatus:
        conditions = status.conditions
        if disruption is not None:
            conditions = with_condition(conditions or (), target)
        phase = status.phase if keeps_success and status.phase == "Succeeded" else "Failed"
        return msgspec.structs.replace(
            status, phase=phase, reason=reason, message=message, conditions=conditions
        )

    return change
