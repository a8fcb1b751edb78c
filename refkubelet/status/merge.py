"""Merges a pod's status with the API server's, and refuses impossible updates. Pure.

The kubelet owns the status except for the conditions of others, which stay as they are (STAT-026).
What must never happen: a terminal phase is sent while a container may still run (STAT-027), or
together with Ready (STAT-028); an exited container that may not run again is shown as running
(STAT-008).
Upstream: pkg/kubelet/status/status_manager.go: mergePodStatus, checkContainerStateTransition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from kubeobjects.structs import replace
from refkubelet.kuberuntime.decisions.restart_policy import (
    ALWAYS,
    ON_FAILURE,
    pod_policy,
    restarts_after_exit,
)
from refkubelet.model.gates import has_restart_all_rule
from refkubelet.model.objects import (
    Container,
    ContainerState,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from refkubelet.model.pod import is_sidecar, is_static, is_terminal
from refkubelet.status.conditions import DISRUPTION_TARGET, OWNED, is_true, with_condition
from refkubelet.status.remembered import LOST_TERMINATED, lost_container

READINESS: Final = ("ContainersReady", "Ready")


def merge_pod_status(
    live: PodStatus | None,
    new: PodStatus,
    *,
    could_run: bool,
    now: datetime,
    generation: int | None = None,
) -> PodStatus:
    """The status to send: `new`, with the fields that others own from `live` (STAT-026..028).

    `could_run`: containers of the pod may still run, so a terminal phase waits. `generation`: the
    live pod's.
    """
    live = live or PodStatus()
    ending = is_terminal(new) and not is_terminal(live)
    conditions = [c for c in live.conditions or () if c.type not in OWNED]
    for condition in new.conditions or ():
        if condition.type in OWNED:
            conditions.append(condition)
        elif condition.type == DISRUPTION_TARGET and ending and not could_run:
            conditions = with_condition(conditions, _since(condition, live.conditions or (), now))
    merged = replace(
        new,
        conditions=conditions,
        resourceClaimStatuses=live.resourceClaimStatuses,
        extendedResourceClaimStatus=live.extendedResourceClaimStatus,
        nodeAllocatableResourceClaimStatuses=live.nodeAllocatableResourceClaimStatuses,
    )
    if ending and could_run:
        merged = replace(merged, phase=live.phase, reason=live.reason, message=live.message)
    return _never_ready_at_the_end(merged, now, generation or None)


def _since(condition: PodCondition, live: Iterable[PodCondition], now: datetime) -> PodCondition:
    """`condition` with the time of the live one if that has the same status, else `now`."""
    old = next((c for c in live if c.type == condition.type), None)
    same = old is not None and old.status == condition.status
    return replace(condition, lastTransitionTime=old.lastTransitionTime if old and same else now)


def _never_ready_at_the_end(status: PodStatus, now: datetime, generation: int | None) -> PodStatus:
    """In a terminal status with Ready or ContainersReady True, set both to False (STAT-028)."""
    if not is_terminal(status) or not any(is_true(status, t) for t in READINESS):
        return status
    reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
    conditions = status.conditions or []
    for condition_type in READINESS:
        ended = PodCondition(
            type=condition_type, status="False", reason=reason, observedGeneration=generation
        )
        conditions = with_condition(conditions, _since(ended, conditions, now))
    return replace(status, conditions=conditions)


def illegal_transition(old: PodStatus | None, new: PodStatus, pod: Pod) -> str | None:
    """The name of a container that ended in `old`, may not run again, and has not ended in `new`;
    None: there is none (STAT-008)."""
    if old is None or pod_policy(pod) == ALWAYS or has_restart_all_rule(pod):
        return None
    plain = [c for c in pod.spec.initContainers or () if not is_sidecar(c)]
    return _revived(
        pod.spec.containers, old.containerStatuses, new.containerStatuses, pod
    ) or _revived(plain, old.initContainerStatuses, new.initContainerStatuses, pod)


def _revived(
    containers: Sequence[Container],
    old: Sequence[ContainerStatus] | None,
    new: Sequence[ContainerStatus] | None,
    pod: Pod,
) -> str | None:
    """`illegal_transition` for the regular or for the init containers."""
    specs = {c.name: c for c in containers}
    alive = {s.name for s in new or () if s.state is None or s.state.terminated is None}
    for status in old or ():
        ended = status.state.terminated if status.state is not None else None
        spec = specs.get(status.name)
        if ended is None or spec is None or status.name not in alive:
            continue
        failed_anyway = ended.exitCode != 0 and pod_policy(pod) == ON_FAILURE
        if not failed_anyway and not restarts_after_exit(spec, pod, ended.exitCode):
            return status.name
    return None


def terminated_status(pod: Pod, status: PodStatus) -> PodStatus:
    """The status of a pod that has finished: every container that started gets an exit, and a pod
    of the API server a terminal phase (STAT-010, LIFE-205). Whether the pod was initialized is read
    from the object's status."""
    containers = status.containerStatuses
    if _has_initialized(pod, pod.status or PodStatus()):
        containers = [_lost(c) for c in containers or ()] or containers
    inits = list(status.initContainerStatuses or ())
    begun = _count_begun(inits)
    inits = [*(_lost(c) for c in inits[:begun]), *inits[begun:]]
    phase = status.phase
    if not is_static(pod) and not is_terminal(status):
        phase = "Failed"
    return replace(
        status,
        phase=phase,
        containerStatuses=containers,
        initContainerStatuses=inits or status.initContainerStatuses,
    )


def _lost(status: ContainerStatus) -> ContainerStatus:
    if status.state is not None and status.state.terminated is not None:
        return status
    return replace(status, state=ContainerState(terminated=lost_container(LOST_TERMINATED)))


def _has_initialized(pod: Pod, status: PodStatus) -> bool:
    inits = pod.spec.initContainers or []
    if not inits or any(_left_waiting(c) for c in status.containerStatuses or ()):
        return True
    statuses = status.initContainerStatuses or []
    if not statuses or len(statuses) > len(inits):
        return False
    last, spec = statuses[-1], inits[len(statuses) - 1]
    if last.name != spec.name:
        return False
    if is_sidecar(spec):
        return bool(last.started and last.state is not None and last.state.running)
    ends = [s.terminated for s in (last.lastState, last.state) if s is not None]
    return any(end is not None and end.exitCode == 0 for end in ends)


def _left_waiting(status: ContainerStatus) -> bool:
    """Whether the container has run at some time."""
    last = status.lastState.terminated if status.lastState is not None else None
    return last is not None or status.state is None or status.state.waiting is None


def _count_begun(inits: Sequence[ContainerStatus]) -> int:
    """How many init containers have started, up to the last one that did; at least one."""
    for index in reversed(range(len(inits))):
        state, last = inits[index].state, inits[index].lastState
        begun = state is None or state.waiting is None
        if begun or (last is not None and last.terminated is not None):
            return index + 1
    return min(len(inits), 1)
