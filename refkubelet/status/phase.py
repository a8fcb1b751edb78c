"""The phase of a pod, from the statuses of its containers (LIFE-160..166). Pure.

How it works: the statuses are looked through once (`_Seen`), then the rows of the table are tried
in order. What must never happen: a pod leaves Failed or Succeeded (`settled_phase` and
`generate.py` hold that), or a missing status is taken for a finished container.
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
class _Seen:
    """Whether the pod has any such container."""

    init_failed: bool = False  # plain init containers that failed for good
    init_pending: bool = False  # plain init containers that run or never ran
    sidecars_pending: bool = False  # sidecars that are not started
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
    """The phase that `statuses` (init and regular, any order) stand for.

    `pod_is_terminal`: no container of the pod will be started any more (LIFE-163).
    `has_regular_record`: the current READY sandbox has a record of a regular container, so a
    sidecar that starts again does not send the pod back to Pending (LIFE-161).
    """
    seen = _look(pod, {status.name: status for status in statuses})
    if seen.init_failed:
        return "Failed"  # LIFE-160
    if seen.init_pending or (seen.sidecars_pending and not has_regular_record):
        return "Pending"  # LIFE-161
    if seen.waiting:
        return "Pending"  # LIFE-161
    if seen.running and not seen.unknown:
        return "Running"  # LIFE-162
    if seen.stopped and not seen.running and not seen.unknown:
        return _stopped_phase(pod, seen, pod_is_terminal)
    return "Pending"  # LIFE-165


def _stopped_phase(pod: Pod, seen: _Seen, pod_is_terminal: bool) -> Phase:
    if seen.restartable and (is_static(pod) or not pod_is_terminal):
        return "Running"  # LIFE-164
    return "Failed" if seen.not_succeeded else "Succeeded"  # LIFE-163, LIFE-164


def settled_phase(computed: str, cached: str | None, from_api: str | None) -> str:
    """LIFE-166: what is computed yields to a terminal phase, the cached before the API's, unless it
    is terminal itself."""
    for phase in (computed, cached, from_api):
        if phase is not None and is_terminal_phase(phase):
            return phase
    return computed


def _look(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> _Seen:
    seen = _Seen()
    for container in pod.spec.initContainers or ():
        status = statuses.get(container.name)
        if is_sidecar(container):
            _look_at_sidecar(seen, status)
        else:
            _look_at_init(seen, container, status, pod)
    for container in pod.spec.containers:
        _look_at_regular(seen, container, statuses.get(container.name), pod)
    return seen


def _last_exit(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How a stopped container ended: terminated now, or waiting to run again after an exit."""
    if status.state is not None and status.state.terminated is not None:
        return status.state.terminated
    if status.state is not None and status.state.waiting is not None and status.lastState:
        return status.lastState.terminated
    return None


def _runs_again(container: Container, pod: Pod, exited: ContainerStateTerminated) -> bool:
    return was_removed_to_restart(exited) or restarts_after_exit(container, pod, exited.exitCode)


def _look_at_init(
    seen: _Seen, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    exited = _last_exit(status) if status is not None else None
    if exited is None:
        seen.init_pending = True
    elif exited.exitCode != 0 and not _runs_again(container, pod, exited):
        seen.init_failed = True


def _look_at_sidecar(seen: _Seen, status: ContainerStatus | None) -> None:
    if status is None or status.state is None:
        seen.unknown = True
    elif status.state.running is not None:
        seen.running = True
        seen.sidecars_pending |= not status.started
    elif status.state.waiting is not None:
        if _last_exit(status) is None:
            seen.sidecars_pending = seen.waiting = True
    elif status.state.terminated is None:
        seen.sidecars_pending = seen.unknown = True


def _look_at_regular(
    seen: _Seen, container: Container, status: ContainerStatus | None, pod: Pod
) -> None:
    if status is None or status.state is None:
        seen.unknown = True
        return
    exited = _last_exit(status)
    if status.state.running is not None:
        seen.running = True
    elif exited is not None:
        seen.stopped = True
        seen.not_succeeded |= status.state.terminated is None or exited.exitCode != 0
        seen.restartable |= _runs_again(container, pod, exited)
    elif status.state.waiting is not None:
        seen.waiting = True
    else:
        seen.unknown = True
