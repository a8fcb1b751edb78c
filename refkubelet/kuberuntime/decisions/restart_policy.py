"""Whether a container starts again: pod policy, container policy, container rules. Pure.

Nothing here looks at back-off: *when* is another question than *whether*.
Upstream: pkg/kubelet/container/helpers.go: ShouldContainerBeRestarted; pkg/api/v1/pod/util.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.cri.records import ContainerRecord, ContainerState
from refkubelet.model.gates import RESTART_ALL
from refkubelet.model.objects import Container, Pod
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
    """Whether a container killed by a probe starts again: there is no exit code to look at, so
    rules do not count (BACK-103)."""
    return effective_policy(container, pod) != NEVER


def pod_can_restart(pod: Pod) -> bool:
    """Whether a container of the pod could start again, given a fitting exit code (CG-041)."""
    return pod_policy(pod) != NEVER or any(map(_own_policy_restarts, pod.spec.containers))


def _own_policy_restarts(container: Container) -> bool:
    if not container.restartPolicy:
        return False
    actions = [rule.action for rule in container.restartPolicyRules or ()]
    return container.restartPolicy != NEVER or RESTART in actions


def starts_at_next_sync(container: Container, pod: Pod, newest: ContainerRecord | None) -> bool:
    """Whether the next sync starts it, seen from its newest record (LIFE-114, BACK-101): never in
    a deleted pod; otherwise whatever has no record or has come to nothing, and exited containers
    as LIFE-124 says."""
    if is_being_deleted(pod):
        return False
    if newest is None:
        return True
    if newest.state is ContainerState.EXITED:
        return restarts_after_exit(container, pod, newest.exit_code)
    return newest.state is not ContainerState.RUNNING


def restarts_after_exit(container: Container, pod: Pod, exit_code: int) -> bool:
    """Whether a container that exited with `exit_code` starts again (LIFE-124, BACK-102).

    With an own restartPolicy the first matching rule decides, else that policy; without one the
    pod's policy. Upstream: pkg/api/v1/pod/util.go: ContainerShouldRestart.
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
