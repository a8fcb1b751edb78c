"""RestartAllContainers: an exit that makes the whole pod start over in its sandbox. Pure.

Rules: LIFE-110, LIFE-125, BACK-110. The records that triggered it go last, so a reset that was cut
short is found again and finished by the next sync. Upstream: kuberuntime_manager.go:
getContainersToReset.
"""

from __future__ import annotations

from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimePodStatus
from refkubelet.kuberuntime.decisions.restart_policy import matching_action
from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import Container, Pod


def containers_to_reset(pod: Pod, status: RuntimePodStatus) -> tuple[ContainerRecord, ...]:
    """All records of the pod, in the order in which they are killed and removed: of regular, then
    of init containers, then those that ended with such a rule, regular before init; in each part
    in spec order."""
    everyone = (*pod.spec.containers, *(pod.spec.initContainers or ()))
    records = [(c, r) for c in everyone for r in status.containers if r.name == c.name]
    others = (r for c, r in records if not _triggers(c, r))
    return (*others, *(r for c, r in records if _triggers(c, r)))


def _triggers(container: Container, record: ContainerRecord) -> bool:
    if record.state is not ContainerState.EXITED:
        return False
    return matching_action(container, record.exit_code) == RESTART_ALL
