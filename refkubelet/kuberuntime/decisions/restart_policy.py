"""Decides whether a container starts again: by pod policy, container policy and rules. Pure.

When it starts again is decided by the back-off (`backoff`).
Upstream: pkg/kubelet/container/helpers.go: ShouldContainerBeRestarted; pkg/api/v1/pod/util.go;
kuberuntime_manager.go: getContainersToReset.
"""

from __future__ import annotations

from typing import Final

from refkubelet.cri.records import ContainerRecord, ContainerState, RuntimePodStatus
from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import Container, Pod, PodStatus
from refkubelet.model.pod import is_being_deleted

ALWAYS: Final = "Always"
ON_FAILURE: Final = "OnFailure"
NEVER: Final = "Never"
RESTART: Final = "Restart"
RESTARTING_ACTIONS: Final = (RESTART, RESTART_ALL)


def pod_policy(pod: Pod) -> str:
    """The pod's restartPolicy; Always when unset."""
    return pod.spec.restartPolicy or ALWAYS


def effective_policy(container: Container, pod: Pod) -> str:
    """The container's own restartPolicy, else the pod's."""
    return container.restartPolicy or pod_policy(pod)


def restarts_after_probe_failure(container: Container, pod: Pod) -> bool:
    """Whether a container killed by a probe starts again; without an exit code restart rules do not
    count (BACK-103)."""
    return effective_policy(container, pod) != NEVER


def pod_can_restart(pod: Pod) -> bool:
    """Whether a container of the pod could start again after some exit code (CG-041)."""
    return pod_policy(pod) != NEVER or any(map(_own_policy_restarts, pod.spec.containers))


def _own_policy_restarts(container: Container) -> bool:
    if not container.restartPolicy:
        return False
    actions = [rule.action for rule in container.restartPolicyRules or ()]
    return container.restartPolicy != NEVER or RESTART in actions


def ended_for_good(pod: Pod, last: PodStatus | None) -> frozenset[str]:
    """The regular containers that have ended by the pod's last status and are not started again
    after that exit, whether or not the runtime still has them (LIFE-114)."""
    statuses = {s.name: s for s in (last.containerStatuses if last else None) or ()}
    exits = {
        container.name: (container, status.state.terminated)
        for container in pod.spec.containers
        if (status := statuses.get(container.name)) is not None and status.state is not None
    }
    return frozenset(
        name
        for name, (container, ended) in exits.items()
        if ended is not None and not restarts_after_exit(container, pod, ended.exitCode)
    )


def starts_at_next_sync(container: Container, pod: Pod, newest: ContainerRecord | None) -> bool:
    """Whether the next sync starts the container (LIFE-114, BACK-101). `newest`: its newest record.
    Never in a pod that is being deleted; else if it has no record, or one in state CREATED or
    UNKNOWN, or has exited and restarts (LIFE-124)."""
    if is_being_deleted(pod):
        return False
    if newest is None:
        return True
    if newest.state is ContainerState.EXITED:
        return restarts_after_exit(container, pod, newest.exit_code)
    return newest.state is not ContainerState.RUNNING


def restarts_after_exit(container: Container, pod: Pod, exit_code: int) -> bool:
    """Whether a container that exited with `exit_code` starts again (LIFE-124, BACK-102).

    If the container has a restartPolicy, its first matching rule decides, else that policy;
    otherwise the pod's policy. Upstream: pkg/api/v1/pod/util.go: ContainerShouldRestart.
    """
    if container.restartPolicy and matching_action(container, exit_code) in RESTARTING_ACTIONS:
        return True
    policy = effective_policy(container, pod)
    return policy == ALWAYS or (policy == ON_FAILURE and exit_code != 0)


def matching_action(container: Container, exit_code: int) -> str | None:
    """The action of the first rule that matches the exit code, or None."""
    for rule in container.restartPolicyRules or []:
        if rule.exitCodes is None:
            continue
        listed = exit_code in (rule.exitCodes.values or [])
        if (rule.exitCodes.operator, listed) in (("In", True), ("NotIn", False)):
            return rule.action
    return None


def containers_to_reset(pod: Pod, status: RuntimePodStatus) -> tuple[ContainerRecord, ...]:
    """All records of the pod in the order of their removal, when an exit with the action
    RestartAllContainers restarts all containers in the same sandbox (LIFE-110, LIFE-125, BACK-110).

    Regular containers come first, then init containers, both in spec order. The records of the
    exits with that action come last, again regular before init: after an interrupted reset they are
    still there, and the next sync finishes it.
    """
    containers = (*pod.spec.containers, *(pod.spec.initContainers or ()))
    records = [(c, r) for c in containers for r in status.containers if r.name == c.name]
    other_records = (r for c, r in records if not _restarts_all(c, r))
    return (*other_records, *(r for c, r in records if _restarts_all(c, r)))


def _restarts_all(container: Container, record: ContainerRecord) -> bool:
    if record.state is not ContainerState.EXITED:
        return False
    return matching_action(container, record.exit_code) == RESTART_ALL
