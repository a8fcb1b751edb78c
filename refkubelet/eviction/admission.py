"""Decides whether a new pod is admitted under pressure conditions (EVIC-110, EVIC-111). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from refkubelet.admission.admit_handler import Rejection
from refkubelet.eviction.messages import REASON, node_condition_message
from refkubelet.model.objects import Pod, Toleration
from refkubelet.model.pod import is_critical
from refkubelet.model.qos import qos_class

MEMORY_PRESSURE: Final = "MemoryPressure"
MEMORY_TAINT: Final = "node.kubernetes.io/memory-pressure"


def admit_under_pressure(pod: Pod, conditions: Sequence[str]) -> Rejection | None:
    """The refusal of the pod; None: admitted. `conditions`: the pressure conditions that are True.

    Critical pods are always admitted. If memory pressure is the only condition, so are pods that
    are not BestEffort and pods that tolerate its taint; all other pods are refused.
    """
    if not conditions or is_critical(pod):
        return None
    if list(conditions) == [MEMORY_PRESSURE]:
        tolerations = pod.spec.tolerations or ()
        if qos_class(pod) != "BestEffort" or any(_tolerates(t) for t in tolerations):
            return None
    return Rejection(REASON, node_condition_message(conditions))


def _tolerates(toleration: Toleration) -> bool:
    """Whether it tolerates the taint memory-pressure:NoSchedule, which has no value."""
    if toleration.effect not in (None, "", "NoSchedule"):
        return False
    if toleration.operator == "Exists":
        return toleration.key in (None, "", MEMORY_TAINT)
    return toleration.key == MEMORY_TAINT and not toleration.value
