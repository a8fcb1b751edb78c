"""How the status shows the action RestartAllContainers (LIFE-125, LIFE-185). Pure.

The condition AllContainersRestarting is True from the exit that asks for the restart until the last
container is removed; removed containers wait with the reason RestartingAllContainers.
Upstream: container/helpers.go: ShouldAllContainersRestart; status/generate.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.cri.records import ContainerState as RecordState
from refkubelet.cri.records import RuntimePodStatus
from refkubelet.kuberuntime.decisions.restart_policy import matching_action
from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from refkubelet.model.pod import containers

ALL_RESTARTING: Final = "AllContainersRestarting"
STARTED: Final = "RestartAllContainersStarted"
STARTED_MESSAGE: Final = "container exited with restart policy rule"
RESTARTING: Final = "RestartingAllContainers"
REMOVED: Final = "The container is removed because RestartAllContainers in place"
REMOVED_EXIT_CODE: Final = 137


def is_restarting_all(pod: Pod, runtime_status: RuntimePodStatus, known: PodStatus | None) -> bool:
    """Whether all containers restart: the condition was True, or the last exit of a container
    matches a rule with that action."""
    if any(c.type == ALL_RESTARTING and c.status == "True" for c in _conditions(known)):
        return True
    exits = {
        s.name: s.state.terminated.exitCode
        for s in _statuses(known)
        if s.state and s.state.terminated
    }
    for container in containers(pod):
        record = runtime_status.newest(container.name)
        if record is None or record.state is not RecordState.EXITED:
            continue
        codes = [record.exit_code, exits.get(container.name, record.exit_code)]
        if any(matching_action(container, code) == RESTART_ALL for code in codes):
            return True
    return False


def all_restarting_condition(
    pod: Pod, status: PodStatus, runtime_status: RuntimePodStatus, known: PodStatus | None
) -> PodCondition:
    """The condition AllContainersRestarting: True from the exit until no container has a record
    (LIFE-185)."""
    if status.phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
        return PodCondition(type=ALL_RESTARTING, status="False", reason=reason)
    records = any(runtime_status.newest(c.name) for c in containers(pod))
    if not records or not is_restarting_all(pod, runtime_status, known):
        return PodCondition(type=ALL_RESTARTING, status="False")
    return PodCondition(type=ALL_RESTARTING, status="True", reason=STARTED, message=STARTED_MESSAGE)


def removed_state() -> ContainerState:
    """The state of a container that was removed to start again."""
    return ContainerState(waiting=ContainerStateWaiting(reason=RESTARTING, message=REMOVED))


def removed_exit() -> ContainerState:
    """The lastState of a container that was removed to start again."""
    ended = ContainerStateTerminated(exitCode=REMOVED_EXIT_CODE, reason=RESTARTING, message=REMOVED)
    return ContainerState(terminated=ended)


def was_removed_to_restart(exit_state: ContainerStateTerminated) -> bool:
    """Whether a container ended because all containers restart; it runs again whatever its
    policy."""
    return exit_state.reason == RESTARTING


def _conditions(status: PodStatus | None) -> list[PodCondition]:
    return list((status.conditions if status is not None else None) or ())


def _statuses(status: PodStatus | None) -> list[ContainerStatus]:
    if status is None:
        return []
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]
