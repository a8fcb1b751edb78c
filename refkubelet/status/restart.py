"""Whether an exited container is meant to run again (LIFE-114, LIFE-124): pure.

The container's own rules and policy come first, the pod's policy last. Nothing here looks at
back-off: *when* is another question than *whether*.
Upstream: pkg/api/v1/pod/util.go: ContainerShouldRestart; pkg/kubelet/container/helpers.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lightkube.models.core_v1 import ContainerRestartRule

from refkubelet.model.objects import Container, Pod
from refkubelet.runtime.records import ContainerRecord, ContainerState

RESTARTING_ACTIONS: Final = ("Restart", "RestartAllContainers")


def pod_restart_policy(pod: Pod) -> str:
    """spec.restartPolicy; Always when it is not set."""
    return (pod.spec.restartPolicy if pod.spec else None) or "Always"


def exit_restarts(container: Container, pod_policy: str, exit_code: int) -> bool:
    """LIFE-124: first matching rule of the container, its own policy, then the pod's."""
    if container.restartPolicy is None:
        return _policy_restarts(pod_policy, exit_code)
    if _rule_restarts(container.restartPolicyRules or (), exit_code):
        return True
    return _policy_restarts(container.restartPolicy, exit_code)


def _rule_restarts(rules: Sequence[ContainerRestartRule], exit_code: int) -> bool:
    for rule in rules:
        codes = rule.exitCodes
        if codes is None:
            continue
        listed = exit_code in (codes.values or [])
        if listed == (codes.operator == "In"):
            return rule.action in RESTARTING_ACTIONS
    return False


def _policy_restarts(policy: str, exit_code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def container_should_be_restarted(
    container: Container, pod: Pod, newest: ContainerRecord | None
) -> bool:
    """LIFE-114: whether the next sync starts this container, seen from its newest record."""
    if pod.metadata is not None and pod.metadata.deletionTimestamp is not None:
        return False
    if newest is None:
        return True
    if newest.state is ContainerState.RUNNING:
        return False
    if newest.state in (ContainerState.CREATED, ContainerState.UNKNOWN):
        return True
    return exit_restarts(container, pod_restart_policy(pod), newest.exit_code)
