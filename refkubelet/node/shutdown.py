"""Graceful node shutdown: the order in which pods end, and their grace periods (NODE-060..063).
Pure.

Pods end in groups by priority, the lowest first. A configuration with one grace period for all
pods, and a part of it for critical pods, makes two groups.
Upstream: pkg/kubelet/nodeshutdown/nodeshutdown_manager.go: migrateConfig, groupByPriority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from refkubelet.admission.admit_handler import Rejection
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import SYSTEM_CRITICAL_PRIORITY, priority
from refkubelet.status.ended import ended_status

GATE: Final = "GracefulNodeShutdown"
PRIORITIES_GATE: Final = "GracefulNodeShutdownBasedOnPodPriority"
SHUTTING_DOWN: Final = "node is shutting down"  # why the node is not ready (NODE-022)
REASON: Final = "Terminated"
MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
REFUSAL: Final = Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")


class ShutdownGroup(Struct, frozen=True):
    """Pods of at least this priority, below that of the next group; they have `grace_s` seconds."""

    priority: int
    grace_s: int


def shutdown_groups(config: KubeletConfiguration) -> tuple[ShutdownGroup, ...]:
    """The groups, lowest priority first (NODE-060); empty: no graceful shutdown."""
    gates = config.feature_gates
    if not gates.get(GATE, True):
        return ()
    listed = config.shutdown_grace_period_by_pod_priority
    if listed and gates.get(PRIORITIES_GATE, True):
        groups = [ShutdownGroup(row.priority, row.shutdown_grace_period_seconds) for row in listed]
        return tuple(sorted(groups, key=lambda group: group.priority))
    total_s = config.shutdown_grace_period_s
    critical_s = config.shutdown_grace_period_critical_pods_s
    if not total_s:
        return ()
    ordinary = ShutdownGroup(0, int(total_s - critical_s))
    return (ordinary, ShutdownGroup(SYSTEM_CRITICAL_PRIORITY, int(critical_s)))


def pods_by_group(
    groups: tuple[ShutdownGroup, ...], pods: Iterable[Pod]
) -> tuple[tuple[ShutdownGroup, tuple[Pod, ...]], ...]:
    """The pods of each group. A pod belongs to the highest group whose priority is not above its
    own, else to the lowest (NODE-062). Groups without pods are left out."""
    members: dict[ShutdownGroup, list[Pod]] = {group: [] for group in groups}
    for pod in pods:
        fitting = [group for group in groups if group.priority <= priority(pod)]
        members[fitting[-1] if fitting else groups[0]].append(pod)
    return tuple((group, tuple(pods)) for group, pods in members.items() if pods)


def grace_s(pod: Pod, group: ShutdownGroup) -> int:
    """The pod's own grace period, at most the group's (NODE-062)."""
    own = pod.spec.terminationGracePeriodSeconds
    return group.grace_s if own is None else min(own, group.grace_s)


def shut_down_status(pod: Pod) -> Callable[[PodStatus], PodStatus]:
    """A function that makes the status of a pod that a shutdown ends (NODE-063)."""
    return ended_status(pod, REASON, MESSAGE, disruption=MESSAGE, keeps_success=True)
