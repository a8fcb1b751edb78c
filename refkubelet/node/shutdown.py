"""Graceful shutdown of the node: which pods end when, and how long they have (NODE-060..063). Pure.

The shorter form of the configuration, a time for all and a part of it for critical pods, becomes
groups of priorities, too. Groups end from the lowest priority to the highest.
Upstream: pkg/kubelet/nodeshutdown/nodeshutdown_manager.go: migrateConfig, groupByPriority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from refkubelet.admission.admit_handler import Rejection
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import SYSTEM_CRITICAL_PRIORITY
from refkubelet.status.ended import ended_status

GATE: Final = "GracefulNodeShutdown"
PRIORITIES_GATE: Final = "GracefulNodeShutdownBasedOnPodPriority"
SHUTTING_DOWN: Final = "node is shutting down"  # why the node is not ready (NODE-022)
REASON: Final = "Terminated"
MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
REFUSAL: Final = Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of this priority and more, up to the next group's, have that many seconds."""

    priority: int
    grace_s: int


def shutdown_groups(config: KubeletConfiguration) -> tuple[Group, ...]:
    """NODE-060: by priority, lowest first; none: the kubelet does not care for shutdowns."""
    gates = config.feature_gates
    if not gates.get(GATE, True):
        return ()
    listed = config.shutdown_grace_period_by_pod_priority
    if listed and gates.get(PRIORITIES_GATE, True):
        groups = [Group(one.priority, one.shutdown_grace_period_seconds) for one in listed]
        return tuple(sorted(groups, key=lambda group: group.priority))
    total_s = config.shutdown_grace_period_s
    critical_s = config.shutdown_grace_period_critical_pods_s
    if not total_s:
        return ()
    ordinary = Group(0, int(total_s - critical_s))
    return (ordinary, Group(SYSTEM_CRITICAL_PRIORITY, int(critical_s)))


def pods_by_group(
    groups: tuple[Group, ...], pods: Iterable[Pod]
) -> tuple[tuple[Group, tuple[Pod, ...]], ...]:
    """NODE-062: each pod in the highest group not above its priority, or in the lowest. Groups
    without pods are left out."""
    members: dict[Group, list[Pod]] = {group: [] for group in groups}
    for pod in pods:
        priority = pod.spec.priority or 0
        fitting = [group for group in groups if group.priority <= priority]
        members[fitting[-1] if fitting else groups[0]].append(pod)
    return tuple((group, tuple(found)) for group, found in members.items() if found)


def grace_s(pod: Pod, group: Group) -> int:
    """NODE-062: the pod's own period, at most the group's."""
    own = pod.spec.terminationGracePeriodSeconds
    return group.grace_s if own is None else min(own, group.grace_s)


def shut_down_status(pod: Pod) -> Callable[[PodStatus], PodStatus]:
    """NODE-063: what the kill makes of the pod's status."""
    return ended_status(pod, REASON, MESSAGE, disruption=MESSAGE, keeps_success=True)
