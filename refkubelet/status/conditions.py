"""The kubelet's own pod conditions (LIFE-180..185, STAT-040..043). Pure.

Each function computes one condition from spec and statuses, without its lastTransitionTime, which
`normalize.stamp_times` sets (STAT-004).
Upstream: pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from refkubelet.cri.records import RuntimePodStatus
from refkubelet.kuberuntime.decisions.actions import sandbox_decision
from refkubelet.model.gates import has_restart_all_rule
from refkubelet.model.objects import ContainerStatus, Pod, PodCondition, PodStatus
from refkubelet.model.pod import generation_of, is_sidecar, sidecars
from refkubelet.status.restart_all import (
    ALL_RESTARTING,
    all_restarting_condition,
)

READY_TO_START: Final = "PodReadyToStartContainers"
INITIALIZED: Final = "Initialized"
READY: Final = "Ready"
CONTAINERS_READY: Final = "ContainersReady"
SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"
RESIZES: Final = ("PodResizePending", "PodResizeInProgress")
OWNED: Final = frozenset(
    {
        READY_TO_START,
        INITIALIZED,
        READY,
        CONTAINERS_READY,
        SCHEDULED,
        *RESIZES,
        ALL_RESTARTING,
    }
)
"""Conditions that only the kubelet writes (STAT-026). DisruptionTarget is written by others,
too."""


def generate_conditions(
    pod: Pod,
    status: PodStatus,
    runtime_status: RuntimePodStatus,
    previous: PodStatus | None,
    resizes: Sequence[PodCondition] = (),
) -> list[PodCondition]:
    """All conditions of a pod, in the order of the API: those of others, those of its resize
    (`resizes`, LIFE-186), DisruptionTarget, then the kubelet's own (LIFE-180..185). `previous`: the
    last status."""
    api_conditions = (pod.status.conditions if pod.status else None) or ()
    conditions = [c for c in api_conditions if c.type not in OWNED]
    conditions += [
        msgspec.structs.replace(c, observedGeneration=_resize_generation(pod, c)) for c in resizes
    ]
    disruption = find(previous, DISRUPTION_TARGET)
    if disruption is not None:
        conditions = with_condition(conditions, disruption)
    was_initialized = is_true(previous, INITIALIZED)
    conditions += [
        _of(pod, _flag(READY_TO_START, has_ready_sandbox(pod, runtime_status))),
        _of(pod, initialized_condition(pod, status, was_true=was_initialized)),
    ]
    conditions += [
        _of(pod, ready_condition(pod, status, conditions)),
        _of(pod, containers_ready_condition(pod, status)),
        _of(pod, _flag(SCHEDULED, True)),
    ]
    if has_restart_all_rule(pod):  # the only condition without observedGeneration (LIFE-185)
        conditions.append(all_restarting_condition(pod, status, runtime_status, previous))
    return conditions


def _of(pod: Pod, condition: PodCondition) -> PodCondition:
    return msgspec.structs.replace(condition, observedGeneration=generation_of(pod))


def _resize_generation(pod: Pod, resize: PodCondition) -> int | None:
    """The generation of the spec that the resize was made for."""
    return resize.observedGeneration if generation_of(pod) else None


def with_readiness(pod: Pod, status: PodStatus) -> PodStatus:
    """`status` with Ready and ContainersReady recomputed from its container statuses
    (PROBE-033, STAT-009); the other conditions keep their places."""
    conditions = list(status.conditions or ())
    for fresh in (
        ready_condition(pod, status, conditions),
        containers_ready_condition(pod, status),
    ):
        conditions = with_condition(conditions, _since(_of(pod, fresh), conditions))
    return msgspec.structs.replace(status, conditions=conditions)


def _since(fresh: PodCondition, before: Iterable[PodCondition]) -> PodCondition:
    """`fresh` with the lastTransitionTime of the old condition, if the status is the same."""
    old = next((c for c in before if c.type == fresh.type), None)
    same = old is not None and old.status == fresh.status
    when = old.lastTransitionTime if old is not None and same else None
    return msgspec.structs.replace(fresh, lastTransitionTime=when)


def with_condition(
    conditions: Iterable[PodCondition], condition: PodCondition
) -> list[PodCondition]:
    """`conditions` with `condition` in the place of the first of its type, or appended."""
    result = list(conditions)
    place = next((i for i, c in enumerate(result) if c.type == condition.type), len(result))
    result[place : place + 1] = [condition]
    return result


def find(status: PodStatus | None, condition_type: str) -> PodCondition | None:
    """The condition of that type, or None."""
    conditions = (status.conditions if status is not None else None) or ()
    return next((c for c in conditions if c.type == condition_type), None)


def is_true(status: PodStatus | None, condition_type: str) -> bool:
    condition = find(status, condition_type)
    return condition is not None and condition.status == "True"


def has_ready_sandbox(pod: Pod, runtime_status: RuntimePodStatus) -> bool:
    """Whether the pod needs no new sandbox (STAT-043, by LIFE-100..104)."""
    return not sandbox_decision(pod.spec, runtime_status.sandboxes).create


def initialized_condition(pod: Pod, status: PodStatus, *, was_true: bool) -> PodCondition:
    """Initialized: all init containers are done, or must have been, because it was True before or a
    regular container has started (LIFE-181, STAT-042)."""
    spec = pod.spec
    init = spec.initContainers or ()
    if init and status.initContainerStatuses is None and status.containerStatuses is None:
        return _false(INITIALIZED, "UnknownContainerStatuses")
    shown = _by_name(status.initContainerStatuses)
    unknown = [c.name for c in init if c.name not in shown]
    incomplete = [
        c.name
        for c in init
        if c.name in shown and not (shown[c.name].started if is_sidecar(c) else shown[c.name].ready)
    ]
    if status.phase == "Succeeded" and not unknown:
        return PodCondition(type=INITIALIZED, status="True", reason="PodCompleted")
    if was_true or _any_started(status.containerStatuses) or not (unknown or incomplete):
        return _flag(INITIALIZED, True)
    message = _listed(unknown, incomplete, "incomplete")
    return _false(INITIALIZED, "ContainersNotInitialized", message)


def containers_ready_condition(pod: Pod, status: PodStatus) -> PodCondition:
    """ContainersReady: every sidecar and regular container is ready (LIFE-183, PROBE-043,
    STAT-040)."""
    if status.initContainerStatuses is None and status.containerStatuses is None:
        return _false(CONTAINERS_READY, "UnknownContainerStatuses")
    names = [c.name for c in (*sidecars(pod), *pod.spec.containers)]
    statuses = _by_name(status.initContainerStatuses) | _by_name(status.containerStatuses)
    unknown = [name for name in names if name not in statuses]
    unready = [name for name in names if name in statuses and not statuses[name].ready]
    if status.phase == "Succeeded" and not unknown:
        return _false(CONTAINERS_READY, "PodCompleted")
    if status.phase == "Failed":
        return _false(CONTAINERS_READY, "PodFailed")
    if unknown or unready:
        message = _listed(unknown, unready, "unready")
        return _false(CONTAINERS_READY, "ContainersNotReady", message)
    return _flag(CONTAINERS_READY, True)


def ready_condition(
    pod: Pod, status: PodStatus, conditions: Sequence[PodCondition]
) -> PodCondition:
    """Ready: ContainersReady, and every readiness gate is True in `conditions` (LIFE-182,
    STAT-041)."""
    containers = containers_ready_condition(pod, status)
    if containers.status != "True":
        return msgspec.structs.replace(containers, type=READY)
    by_type = {c.type: c for c in reversed(conditions)}  # the first of each type counts
    gates = [g.conditionType for g in pod.spec.readinessGates or ()]
    messages = [text for gate in gates if (text := _gate_problem(gate, by_type.get(gate)))]
    if messages:
        return _false(READY, "ReadinessGatesNotReady", ", ".join(messages))
    return _flag(READY, True)


def readiness_is_outdated(pod: Pod) -> bool:
    """Whether the object's Ready differs from what its own status would give (LIFE-014). As in
    upstream init container statuses are ignored, so with sidecars it always differs."""
    if not pod.spec.readinessGates or pod.status is None:
        return False
    old_ready = find(pod.status, READY)
    regular = msgspec.structs.replace(pod.status, initContainerStatuses=None)
    fresh = ready_condition(pod, regular, pod.status.conditions or ())
    return old_ready is not None and (
        (old_ready.status, old_ready.message or "") != (fresh.status, fresh.message or "")
    )


def _gate_problem(gate: str, condition: PodCondition | None) -> str:
    if condition is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if condition.status != "True":
        return f'the status of pod readiness gate "{gate}" is not "True", but {condition.status}'
    return ""


def _any_started(statuses: Iterable[ContainerStatus] | None) -> bool:
    return any(s.state and (s.state.running or s.state.terminated) for s in statuses or ())


def _by_name(statuses: Iterable[ContainerStatus] | None) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses or ()}


def _listed(unknown: Sequence[str], others: Sequence[str], word: str) -> str:
    parts = (("unknown", unknown), (word, others))
    return ", ".join(
        f"containers with {kind} status: [{' '.join(names)}]" for kind, names in parts if names
    )


def _flag(condition_type: str, value: bool) -> PodCondition:
    return PodCondition(type=condition_type, status="True" if value else "False")


def _false(condition_type: str, reason: str, message: str | None = None) -> PodCondition:
    return PodCondition(type=condition_type, status="False", reason=reason, message=message)
