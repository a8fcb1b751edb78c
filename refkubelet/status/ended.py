"""The status of a pod that the kubelet ends for a reason of the node's (LIFE-230). Pure.

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
    """What the kill makes of the status: Failed, for this reason. `disruption`: the message of the
    condition DisruptionTarget; None: the pod does not get it. `keeps_success`: a pod that has
    Succeeded stays so."""
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
