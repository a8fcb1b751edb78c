"""The phase of a pod, from the statuses of its containers (LIFE-160..166): pure.

How it works: the statuses are counted once (`_Counts`), then the rows of the table are tried in
order. What must never happen: a pod leaves Failed or Succeeded (`settled_phase` holds that), or a
missing status is taken for a finished container.
Upstream: pkg/kubelet/kubelet_pods.go: getPhase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from refkubelet.model.objects import (
    Container,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    is_sidecar,
    is_static,
)
from refkubelet.runtime.restart_policy import container_should_restart
from refkubelet.status.restart_all import ended_to_restart

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
TERMINAL: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Counts:
    init_failed: int = 0  # plain init containers that failed for good
    init_pending: int = 0  # plain init containers that run or never ran
    sidecars_pending: int = 0  # sidecars that are not started
    running: int = 0  # sidecars and regular containers
    waiting: int = 0  # sidecars and regular containers that never ran
    unknown: int = 0  # sidecars and regular containers without a usable status
    stopped: int = 0  # regular containers
    succeeded: int = 0  # regular containers, terminated with exit 0
    restartable: int = 0  # stopped regular containers that will run again


def is_terminal(phase: str | None) -> bool:
    """Succeeded or Failed."""
    return phase in TERMINAL


def pod_phase(
    pod: Pod,
    statuses: Iterable[ContainerStatus],
    *,
    pod_is_terminal: bool = False,
    has_regular_record: bool = True,
) -> Phase:
    """The phase that `statuses` (init and regular, any order) stand for.

    `pod_is_terminal`: no container of the pod will be started any more (LIFE-163).
    `has_regular_record`: the current READY sandbox has a record of a regular container, so a
    sidecar that starts again does not send the pod back to Pending (LIFE-161).
    """
    counts = _count(pod, {status.name: status for status in statuses})
    if counts.init_failed:
        return "Failed"  # LIFE-160
    if counts.init_pending or (counts.sidecars_pending and not has_regular_record):
        return "Pending"  # LIFE-161
    if counts.waiting:
        return "Pending"  # LIFE-161
    if counts.running and not counts.unknown:
        return "Running"  # LIFE-162
    if counts.stopped and not counts.running and not counts.unknown:
        return _stopped_phase(pod, counts, pod_is_terminal)
    return "Pending"  # LIFE-165


def _stopped_phase(pod: Pod, counts: _Counts, pod_is_terminal: bool) -> Phase:
    all_succeeded = counts.succeeded == counts.stopped
    if pod_is_terminal and not is_static(pod):
        return "Succeeded" if all_succeeded else "Failed"  # LIFE-163
    if counts.restartable:
        return "Running"  # LIFE-164
    return "Succeeded" if all_succeeded else "Failed"


def settled_phase(computed: str, cached: str | None, from_api: str | None) -> str:
    """LIFE-166, STAT-029: the API's terminal phase is final; the cached one yields to a terminal
    `computed` only."""
    if from_api is not None and from_api in TERMINAL:
        return from_api
    if computed not in TERMINAL and cached is not None and cached in TERMINAL:
        return cached
    return computed


def _count(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> _Counts:
    counts = _Counts()
    if pod.spec is None:
        return counts
    for container in pod.spec.initContainers or ():
        status = statuses.get(container.name)
        if is_sidecar(container):
            _count_sidecar(counts, status)
        else:
            _count_init(counts, container, status, pod)
    for container in pod.spec.containers:
        _count_regular(counts, container, statuses.get(container.name), pod)
    return counts


def _last_exit(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How a stopped container ended: terminated now, or waiting to run again after an exit."""
    if status.state is not None and status.state.terminated is not None:
        return status.state.terminated
    if status.state is not None and status.state.waiting is not None and status.lastState:
        return status.lastState.terminated
    return None


def _runs_again(container: Container, pod: Pod, exited: ContainerStateTerminated) -> bool:
    return ended_to_restart(exited) or container_should_restart(container, pod, exited.exitCode)


def _count_init(
    counts: _Counts, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    exited = _last_exit(status) if status is not None else None
    if exited is None:
        counts.init_pending += 1
    elif exited.exitCode != 0 and not _runs_again(container, pod, exited):
        counts.init_failed += 1


def _count_sidecar(counts: _Counts, status: ContainerStatus | None) -> None:
    state = status.state if status is not None else None
    if status is None or state is None:
        counts.unknown += 1
    elif state.running is not None:
        counts.running += 1
        counts.sidecars_pending += not status.started
    elif state.waiting is not None:
        if _last_exit(status) is None:
            counts.sidecars_pending += 1
            counts.waiting += 1
    elif state.terminated is None:
        counts.sidecars_pending += 1
        counts.unknown += 1


def _count_regular(
    counts: _Counts, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    state = status.state if status is not None else None
    if status is None or state is None:
        counts.unknown += 1
        return
    exited = _last_exit(status)
    if state.running is not None:
        counts.running += 1
    elif exited is not None:
        counts.stopped += 1
        counts.succeeded += state.terminated is not None and exited.exitCode == 0
        counts.restartable += _runs_again(container, pod, exited)
    elif state.waiting is not None:
        counts.waiting += 1
    else:
        counts.unknown += 1
