"""The status of a container that has no record in the runtime. Pure.

If a record vanishes (removed from outside, lost by the runtime, pruned), the status comes from the
previous one. A container that was running is reported as lost, with exit code 137 and reason
`ContainerStatusUnknown`; an init container before one that has started counts as completed.
Upstream: pkg/kubelet/kubelet_pods.go: convertToAPIContainerStatuses.
"""

from __future__ import annotations

from typing import Final

import msgspec
from lightkube.models.core_v1 import VolumeMount, VolumeMountStatus

from refkubelet.cri.records import ContainerState as RecordState
from refkubelet.model.objects import (
    Container,
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from refkubelet.model.pod import is_being_deleted, is_sidecar
from refkubelet.status.restart_all import removed_exit, removed_state
from refkubelet.status.sources import StatusSources
from refkubelet.volumes.plan import recursive_read_only

LOST_EXIT_CODE: Final = 137
LOST_REASON: Final = "ContainerStatusUnknown"
LOST_DELETED: Final = (
    "The container could not be located when the pod was deleted.  "
    "The container used to be Running"
)  # LIFE-172
LOST_TERMINATED: Final = "The container could not be located when the pod was terminated"
INIT_PRUNED: Final = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)  # LIFE-173


def from_memory(
    sources: StatusSources, container: Container, previous: ContainerStatus | None
) -> ContainerStatus:
    """The status of a container without a record: from `previous`, or waiting for its start."""
    if previous is None:
        return _default_status(sources, container)
    ended = previous.state is not None and previous.state.terminated is not None
    status = previous if ended else _waiting_anew(sources, container, previous)
    if sources.restarting_all and not is_waiting(previous):
        return _removed_to_restart(status)
    last = status.lastState.terminated if status.lastState is not None else None
    if not ended and was_running(previous) and last is None:
        return _lost(sources, status)
    return status  # LIFE-173


def _waiting_anew(
    sources: StatusSources, container: Container, previous: ContainerStatus
) -> ContainerStatus:
    return msgspec.structs.replace(
        _default_status(sources, container),
        restartCount=previous.restartCount,
        lastState=previous.lastState or ContainerState(),
    )


def _removed_to_restart(status: ContainerStatus) -> ContainerStatus:
    """`status` of a container that was removed because all containers restart (LIFE-125)."""
    return msgspec.structs.replace(
        status,
        state=removed_state(),
        lastState=removed_exit(),
        restartCount=status.restartCount + 1,
    )


def _lost(sources: StatusSources, status: ContainerStatus) -> ContainerStatus:
    """`status` of a container that ran and whose exit is unknown; it counts as restarted, unless
    the pod is being deleted (LIFE-172, first half)."""
    return msgspec.structs.replace(
        status,
        lastState=ContainerState(terminated=lost_container(LOST_DELETED)),
        restartCount=status.restartCount + (0 if is_being_deleted(sources.pod) else 1),
    )


def is_pruned(sources: StatusSources, container: Container, status: ContainerStatus) -> bool:
    """Whether a waiting init container without a record has run, because a regular one was
    created after it."""
    return not is_sidecar(container) and is_waiting(status) and _regular_was_created(sources)


def treated_as_completed(status: ContainerStatus) -> ContainerStatus:
    """`status` terminated with exit code 0; lastState stays."""
    pruned = ContainerStateTerminated(exitCode=0, reason="Completed", message=INIT_PRUNED)
    return msgspec.structs.replace(status, state=ContainerState(terminated=pruned))


def _regular_was_created(sources: StatusSources) -> bool:
    """Whether a regular container was created, which means that every plain init container has
    succeeded."""
    regular = sources.pod.spec.containers
    newest = (sources.runtime_status.newest(container.name) for container in regular)
    return any(r is not None and r.state is not RecordState.UNKNOWN for r in newest)


def _default_status(sources: StatusSources, container: Container) -> ContainerStatus:
    has_init = bool(sources.pod.spec.initContainers)
    reason = "PodInitializing" if has_init else "ContainerCreating"  # LIFE-170
    return ContainerStatus(
        name=container.name,
        image=container.image or "",
        imageID="",
        ready=False,
        restartCount=0,
        state=ContainerState(waiting=ContainerStateWaiting(reason=reason)),
        lastState=ContainerState(),
        volumeMounts=_mounts(sources, container),
    )


def _mounts(sources: StatusSources, container: Container) -> list[VolumeMountStatus] | None:
    """The mounts of the spec, and whether read-only ones are read-only recursively."""
    return [
        VolumeMountStatus(
            name=mount.name,
            mountPath=mount.mountPath,
            readOnly=mount.readOnly or None,
            recursiveReadOnly=_recursively(sources, mount) if mount.readOnly else None,
        )
        for mount in container.volumeMounts or ()
    ] or None


def _recursively(sources: StatusSources, mount: VolumeMount) -> str:
    try:
        return "Enabled" if recursive_read_only(mount, sources.recursive_read_only) else "Disabled"
    except ValueError:  # the container cannot be started with this mount
        return "Disabled"


def is_waiting(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.waiting is not None


def was_running(previous: ContainerStatus | None) -> bool:
    return previous is not None and previous.state is not None and bool(previous.state.running)


def lost_container(message: str) -> ContainerStateTerminated:
    """The exit of a container that vanished while it was running (LIFE-172, STAT-010)."""
    return ContainerStateTerminated(exitCode=LOST_EXIT_CODE, reason=LOST_REASON, message=message)
