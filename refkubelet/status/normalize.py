"""Brings statuses into one form before they are cached and compared (STAT-003..007). Pure.

The kubelet compares its status with the API server's every 10 s. Whatever the API server would
store differently (fractions of a second, long messages, another order) must be changed here, or the
status would be patched every time.
Upstream: pkg/kubelet/status/status_manager.go: normalizeStatus, isPodStatusByKubeletEqual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from kubeobjects.quantity import QuantityError, parse_nano
from refkubelet.model.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from refkubelet.model.pod import all_containers
from refkubelet.status.conditions import DISRUPTION_TARGET, OWNED, RESIZES

TERMINATION_MESSAGE_BYTES: Final = 12288  # shared by all containers of the pod (STAT-006)
STAMPED: Final = OWNED | {DISRUPTION_TARGET}
_NOT_COMPARED: Final = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)
_Status = TypeVar("_Status", PodStatus, ContainerStatus)
CONTAINER_LISTS: Final = (
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
)


def stamp_times(status: PodStatus, previous: PodStatus | None, now: datetime) -> PodStatus:
    """`status` with startTime, which never changes (STAT-003), and with lastTransitionTime, which
    is `now` where a condition's status has changed (STAT-004); conditions of resizes keep
    theirs."""
    start = (previous.startTime if previous is not None else None) or status.startTime or now
    before = {old.type: old for old in reversed((previous and previous.conditions) or ())}
    stamped = [_stamped(c, before.get(c.type), now) for c in status.conditions or ()]
    return msgspec.structs.replace(
        status, startTime=start, conditions=stamped if status.conditions is not None else None
    )


def _stamped(condition: PodCondition, old: PodCondition | None, now: datetime) -> PodCondition:
    if condition.type not in STAMPED or condition.type in RESIZES:
        return condition
    same = old is not None and old.status == condition.status
    when = old.lastTransitionTime if same and old is not None else None
    return msgspec.structs.replace(condition, lastTransitionTime=when or now)


def newer_generation(generation: int | None, previous: PodStatus | None) -> int | None:
    """observedGeneration: the pod's, never lowered (STAT-005); None without any (MIRR-037)."""
    old = (previous.observedGeneration if previous is not None else None) or 0
    return max(generation or 0, old) or None


def normalize_status(pod: Pod, status: PodStatus) -> PodStatus:
    """`status` with whole seconds, container statuses sorted by name, init ones in spec order, and
    termination messages cut to their share of 12288 bytes (STAT-006)."""
    init_order = [container.name for container in pod.spec.initContainers or ()]
    limit = TERMINATION_MESSAGE_BYTES // max(1, len(all_containers(pod)))
    return msgspec.structs.replace(
        status,
        startTime=_whole(status.startTime),
        conditions=None
        if status.conditions is None
        else [_normal_condition(condition) for condition in status.conditions],
        containerStatuses=_normal_statuses(status.containerStatuses, limit, None),
        initContainerStatuses=_normal_statuses(status.initContainerStatuses, limit, init_order),
        ephemeralContainerStatuses=_normal_statuses(status.ephemeralContainerStatuses, limit, None),
    )


def statuses_equal(old: PodStatus | None, new: PodStatus) -> bool:
    """Whether two statuses are equal in what the kubelet owns; of conditions only type, status,
    reason and message are compared (STAT-007), and amounts by what they are: `1000m` is `1`
    (STAT-021)."""
    return old is not None and (old == new or _comparable(old) == _comparable(new))


def _comparable(status: PodStatus) -> PodStatus:
    owned = sorted(
        (
            PodCondition(type=x.type, status=x.status, reason=x.reason, message=x.message)
            for x in status.conditions or ()
            if x.type in STAMPED
        ),
        key=lambda condition: condition.type,
    )
    changes: dict[str, object] = dict.fromkeys(_NOT_COMPARED)
    for name in CONTAINER_LISTS:
        statuses = getattr(status, name)
        changes[name] = statuses and [_with_values(each) for each in statuses]
    return msgspec.structs.replace(_with_values(status), conditions=owned, **changes)


def _with_values(status: _Status) -> _Status:
    """The status of a pod or container with one text for equal amounts, whatever was written."""
    resources, allocated = status.resources, status.allocatedResources
    if resources is None and not allocated:
        return status
    if resources is not None:
        resources = msgspec.structs.replace(
            resources, limits=_values(resources.limits), requests=_values(resources.requests)
        )
    return msgspec.structs.replace(
        status, resources=resources, allocatedResources=_values(allocated)
    )


def _values(amounts: Mapping[str, str] | None) -> dict[str, str] | None:
    return {name: _value(text) for name, text in amounts.items()} if amounts else None


def _value(text: str) -> str:
    """The amount in nano units; a text that is none stays, and equals itself alone."""
    try:
        return str(parse_nano(text))
    except QuantityError:
        return text


def _whole(when: datetime | None) -> datetime | None:
    return when.replace(microsecond=0) if when is not None else None


def _normal_condition(condition: PodCondition) -> PodCondition:
    return msgspec.structs.replace(
        condition,
        lastProbeTime=_whole(condition.lastProbeTime),
        lastTransitionTime=_whole(condition.lastTransitionTime),
    )


def _normal_statuses(
    statuses: Sequence[ContainerStatus] | None, limit: int, order: Sequence[str] | None
) -> list[ContainerStatus] | None:
    if statuses is None:
        return None
    places = {name: place for place, name in enumerate(order or ())}
    fresh = [
        msgspec.structs.replace(
            s, state=_normal_state(s.state, limit), lastState=_normal_state(s.lastState, limit)
        )
        for s in statuses
    ]
    return sorted(fresh, key=lambda s: (places.get(s.name, len(places)), s.name))


def _normal_state(state: ContainerState | None, limit: int) -> ContainerState | None:
    if state is None:
        return None
    running, terminated = state.running, state.terminated
    if running is not None:
        running = ContainerStateRunning(startedAt=_whole(running.startedAt))
    if terminated is not None:
        terminated = _normal_exit(terminated, limit)
    return msgspec.structs.replace(state, running=running, terminated=terminated)


def _normal_exit(terminated: ContainerStateTerminated, limit: int) -> ContainerStateTerminated:
    message = terminated.message
    if message is not None:
        message = message.encode()[:limit].decode(errors="ignore")
    return msgspec.structs.replace(
        terminated,
        message=message,
        startedAt=_whole(terminated.startedAt),
        finishedAt=_whole(terminated.finishedAt),
    )
