"""The phase of a pod, from the statuses of its containers (LIFE-160..166). Pure.

How it works: one pass over the statuses notes which kinds of containers there are (`_Kinds`), then
`pod_phase` tries its conditions in order. What must never happen: a pod leaves Failed or Succeeded
(`settled_phase` and `generate.py` prevent it), or a missing status counts as a finished container.
Upstream: pkg/kubelet/kubelet_pods.go: getPhase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from refkubelet.kuberuntime.decisions.restart_policy import restarts_after_exit
from refkubelet.model.objects import Container, ContainerStateTerminated, ContainerStatus, Pod
from refkubelet.model.pod import is_sidecar, is_static, is_terminal_phase
from refkubelet.status.restart_all import was_removed_to_restart

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


@dataclass(slots=True)
class _Kinds:
    """For each kind of container, whether the pod has one."""

    init_failed: bool = False  # plain init containers that failed for good
    init_pending: bool = False  # plain init containers that run or never ran
    sidecars_pending: bool = False  # sidecars that have not started
    running: bool = False  # sidecars and regular containers
    waiting: bool = False  # sidecars and regular containers that never ran
    unknown: bool = False  # sidecars and regular containers without a usable status
    stopped: bool = False  # regular containers
    not_succeeded: bool = False  # stopped regular containers, unless terminated with exit 0
    restartable: bool = False  # stopped regular containers that will run again


def pod_phase(
    pod: Pod,
    statuses: Iterable[ContainerStatus],
    *,
    pod_is_terminal: bool = False,
    has_regular_record: bool = True,
) -> Phase:
    """The phase that follows from `statuses` (init and regular, in any order).

    `pod_is_terminal`: the pod starts no more containers (LIFE-163). `has_regular_record`: the
    current READY sandbox has a record of a regular container; then a sidecar that starts again does
    not make the pod Pending (LIFE-161).
    """
    kinds = _look(pod, {status.name: status for status in statuses})
    if kinds.init_failed:
        return "Failed"  # LIFE-160
    if kinds.init_pending or (kinds.sidecars_pending and not has_regular_record):
        return "Pending"  # LIFE-161
    if kinds.waiting:
        return "Pending"  # LIFE-161
    if kinds.running and not kinds.unknown:
        return "Running"  # LIFE-162
    if kinds.stopped and not kinds.running and not kinds.unknown:
        return _stopped_phase(pod, kinds, pod_is_terminal)
    return "Pending"  # LIFE-165


def _stopped_phase(pod: Pod, kinds: _Kinds, pod_is_terminal: bool) -> Phase:
    if kinds.restartable and (is_static(pod) or not pod_is_terminal):
        return "Running"  # LIFE-164
    return "Failed" if kinds.not_succeeded else "Succeeded"  # LIFE-163, LIFE-164


def settled_phase(computed: str, cached: str | None, from_api: str | None) -> str:
    """The first terminal phase of `computed`, `cached` and `from_api`; else `computed`
    (LIFE-166)."""
    for phase in (computed, cached, from_api):
        if phase is not None and is_terminal_phase(phase):
            return phase
    return computed


def _look(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> _Kinds:
    kinds = _Kinds()
    for container in pod.spec.initContainers or ():
        status = statuses.get(container.name)
        if is_sidecar(container):
            _look_at_sidecar(kinds, status)
        else:
            _look_at_init(kinds, container, status, pod)
    for container in pod.spec.containers:
        _look_at_regular(kinds, container, statuses.get(container.name), pod)
    return kinds


def _last_exit(status: ContainerStatus) -> ContainerStateTerminated | None:
    """The last exit of a container that is terminated, or waits to run again; else None."""
    if status.state is not None and status.state.terminated is not None:
        return status.state.terminated
    if status.state is not None and status.state.waiting is not None and status.lastState:
        return status.lastState.terminated
    return None


def _runs_again(container: Container, pod: Pod, exited: ContainerStateTerminated) -> bool:
    return was_removed_to_restart(exited) or restarts_after_exit(container, pod, exited.exitCode)


def _look_at_init(
    kinds: _Kinds, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    exited = _last_exit(status) if status is not None else None
    if exited is None:
        kinds.init_pending = True
    elif exited.exitCode != 0 and not _runs_again(container, pod, exited):
        kinds.init_failed = True


def _look_at_sidecar(kinds: _Kinds, status: ContainerStatus | None) -> None:
    if status is None or status.state is None:
        kinds.unknown = True
    elif status.state.running is not None:
        kinds.running = True
        kinds.sidecars_pending |= not status.started
    elif status.state.waiting is not None:
        if _last_exit(status) is None:
            kinds.sidecars_pending = kinds.waiting = True
    elif status.state.terminated is None:
        kinds.sidecars_pending = kinds.unknown = True


def _look_at_regular(
    kinds: _Kinds, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    """Note the kind of a regular container; a missing status counts as unknown."""
    if status is None or status.state is None:
        kinds.unknown = True
        return
    exited = _last_exit(status)
    if status.state.running is not None:
        kinds.running = True
    elif exited is not None:
        kinds.stopped = True
        kinds.not_succeeded |= status.state.terminated is None or exited.exitCode != 0
        kinds.restartable |= _runs_again(container, pod, exited)
    elif status.state.waiting is not None:
        kinds.waiting = True
    else:
        kinds.unknown = True
