"""RestartAllContainers: an exit that makes the whole pod start over in its sandbox. Pure.

Rules: LIFE-110, LIFE-125, BACK-110. The records that triggered it go last, so a reset that was cut
short is found again and finished by the next sync. Upstream: kuberuntime_manager.go:
getContainersToReset.
"""

from __future__ import annotations

from typing import Final

from refkubelet.model.objects import Container, Pod
from refkubelet.runtime.records import ContainerRecord, ContainerState, RuntimePodStatus
from refkubelet.runtime.restart_policy import matching_action

RESTART_ALL: Final = "RestartAllContainers"


def containers_to_reset(pod: Pod, status: RuntimePodStatus) -> tuple[ContainerRecord, ...]:
    """All records of the pod, in the order in which they are killed and removed: other regular,
    other init, triggering regular, triggering init containers; spec order inside each. Empty when
    no container ended with such a rule."""
    if pod.spec is None or (pod.metadata is not None and pod.metadata.deletionTimestamp):
        return ()
    regular, init = list(pod.spec.containers), list(pod.spec.initContainers or [])
    triggers = [c for c in (*regular, *init) if _triggers(c, status.newest(c.name))]
    if not triggers:
        return ()
    ordered = (
        *(c for c in regular if c not in triggers),
        *(c for c in init if c not in triggers),
        *triggers,
    )
    return tuple(r for c in ordered for r in status.containers if r.name == c.name)


def _triggers(container: Container, record: ContainerRecord | None) -> bool:
    if record is None or record.state is not ContainerState.EXITED or not container.restartPolicy:
        return False
    return matching_action(container, record.exit_code) == RESTART_ALL
