"""Container statuses of the API, from the runtime's records and the previous status: pure.

How it works, per container of the spec: a default (waiting, or what was known before), then what
the newest two records say, then the reason why the last start failed. A record can vanish (removed
from outside, lost by the runtime): the previous status is then the only witness, and a container
that was running is reported as lost, exit 137 `ContainerStatusUnknown`.
What must never happen: a restart count goes down, or a known exit is forgotten (LIFE-173).
Upstream: pkg/kubelet/kubelet_pods.go: convertToAPIContainerStatuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec
from lightkube.models.core_v1 import ResourceRequirements, VolumeMount, VolumeMountStatus

from refkubelet.model.objects import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    is_sidecar,
)
from refkubelet.runtime.decisions.mount_modes import recursive_read_only
from refkubelet.runtime.records import ContainerRecord, RuntimePodStatus
from refkubelet.runtime.records import ContainerState as RecordState
from refkubelet.status.resources import Actuated, container_resources_shown
from refkubelet.status.restart import container_should_be_restarted
from refkubelet.status.restart_all import RESTARTING, removed_exit, removed_state

ReasonLookup = Callable[[str], tuple[str, str] | None]
"""Container name -> (reason, message) of its last failed start, if any (LIFE-171)."""

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
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def nothing_actuated(container_name: str) -> ResourceRequirements | None:
    """Nobody has noted what containers were given."""
    return None


@dataclass(frozen=True, slots=True)
class StatusSources:
    """What the statuses of one pod are made of."""

    pod: Pod
    runtime_status: RuntimePodStatus
    runtime_name: str
    reason_of: ReasonLookup
    previous: Mapping[str, ContainerStatus] = field(default_factory=lambda: MappingProxyType({}))
    restarting_all: bool = False  # LIFE-125
    actuated: Actuated = nothing_actuated
    recursive_read_only: bool = False  # what the pod's runtime handler can do


def container_statuses(
    sources: StatusSources, containers: Sequence[Container], *, init: bool = False
) -> list[ContainerStatus]:
    """One status per container: regular ones by name, init ones in spec order (LIFE-174).

    `started` and `ready` are left as they were known; `generate.py` sets them (LIFE-175).
    """
    statuses = [_container_status(sources, container, init=init) for container in containers]
    return statuses if init else sorted(statuses, key=lambda status: status.name)


def container_id(runtime_name: str, record_id: str) -> str:
    """The API's form of a container ID: `containerd://<id>`."""
    return f"{runtime_name}://{record_id}"


def bare_id(api_id: str | None) -> str:
    """The runtime's ID inside an API container ID; "" when there is none."""
    return (api_id or "").rpartition("://")[2]


def instant(wall_ns: int) -> datetime | None:
    """An API time from nanoseconds; 0 means never."""
    return _EPOCH + timedelta(microseconds=wall_ns // 1000) if wall_ns > 0 else None


def lost_container(message: str) -> ContainerStateTerminated:
    """The exit of a container nobody saw ending (LIFE-172, STAT-010)."""
    return ContainerStateTerminated(exitCode=LOST_EXIT_CODE, reason=LOST_REASON, message=message)


def _container_status(
    sources: StatusSources, container: Container, *, init: bool
) -> ContainerStatus:
    previous = sources.previous.get(container.name)
    records = [
        c
        for c in sources.runtime_status.containers
        if c.name == container.name and not _is_leftover(c, previous)
    ]
    if records:
        status = _from_records(sources, container, records, previous)
    else:
        status = _from_memory(sources, container, previous, init=init)
    if previous is not None and previous.restartCount > status.restartCount:
        status = msgspec.structs.replace(status, restartCount=previous.restartCount)  # LIFE-173
    return _with_waiting_reason(sources, container, status, records, init=init)


def _default_status(sources: StatusSources, container: Container) -> ContainerStatus:
    has_init = bool(sources.pod.spec and sources.pod.spec.initContainers)
    reason = "PodInitializing" if has_init else "ContainerCreating"  # LIFE-170
    return ContainerStatus(
        name=container.name,
        image=container.image or "",
        imageID="",
        ready=False,
        restartCount=0,
        started=False,
        state=ContainerState(waiting=ContainerStateWaiting(reason=reason)),
        lastState=ContainerState(),
        volumeMounts=_mounts(sources, container),
    )


def _mounts(sources: StatusSources, container: Container) -> list[VolumeMountStatus] | None:
    """The mounts as the spec asks for them, and whether read-only ones are so all the way down."""
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
    except ValueError:  # the container does not start with that
        return "Disabled"


def _from_memory(
    sources: StatusSources, container: Container, previous: ContainerStatus | None, *, init: bool
) -> ContainerStatus:
    """No record in the runtime: what was known, or the wait that is usual before a start."""
    if sources.restarting_all and previous is not None and not _is_waiting(previous):
        return msgspec.structs.replace(
            _default_status(sources, container),
            state=removed_state(),
            lastState=removed_exit(),
            restartCount=previous.restartCount + 1,
        )
    if previous is not None and previous.state and previous.state.terminated:
        return previous  # LIFE-173
    status = _default_status(sources, container)
    if previous is not None:
        last = previous.lastState or ContainerState()
        status = msgspec.structs.replace(status, restartCount=previous.restartCount, lastState=last)
    if init and not is_sidecar(container) and _regular_was_created(sources):
        pruned = ContainerStateTerminated(exitCode=0, reason="Completed", message=INIT_PRUNED)
        return msgspec.structs.replace(status, state=ContainerState(terminated=pruned))
    was_running = previous is not None and previous.state and previous.state.running is not None
    if was_running and not (status.lastState and status.lastState.terminated):
        return _lost(sources, status)
    return status


def _lost(sources: StatusSources, status: ContainerStatus) -> ContainerStatus:
    """LIFE-172, first half: it ran, nobody knows how it ended; unless deleted it starts again."""
    metadata = sources.pod.metadata
    deleting = metadata is not None and metadata.deletionTimestamp is not None
    return msgspec.structs.replace(
        status,
        lastState=ContainerState(terminated=lost_container(LOST_DELETED)),
        restartCount=status.restartCount + (0 if deleting else 1),
    )


def _regular_was_created(sources: StatusSources) -> bool:
    """Whether any regular container has a record: then every plain init container succeeded."""
    spec = sources.pod.spec
    regular = {container.name for container in spec.containers} if spec else set()
    return any(record.name in regular for record in sources.runtime_status.containers)


def _from_records(
    sources: StatusSources,
    container: Container,
    records: Sequence[ContainerRecord],
    previous: ContainerStatus | None,
) -> ContainerStatus:
    """state from the newest record, lastState from the one before that ran, else what was known
    (LIFE-170)."""
    status = _convert(sources, container, records[0], previous)
    ran = next((r for r in records[1:] if r.state is not RecordState.CREATED), None)
    last = _state(sources, ran, None) if ran is not None else _known_last(status, previous)
    return msgspec.structs.replace(status, lastState=last)


def _is_leftover(record: ContainerRecord, previous: ContainerStatus | None) -> bool:
    """Created by a kubelet that died before it could start it, and older than what was shown: it
    must not take the place of an exit that is known."""
    created = record.state is RecordState.CREATED
    return created and previous is not None and record.restart_count < previous.restartCount


def _known_last(status: ContainerStatus, previous: ContainerStatus | None) -> ContainerState:
    """How the instance before ended, when its record is gone: removed before the container started
    anew (golden s13), or pruned later."""
    if previous is None:
        return ContainerState()
    ended = previous.state.terminated if previous.state else None
    if ended is not None and previous.containerID != status.containerID:
        return ContainerState(terminated=ended)
    return previous.lastState or ContainerState()


def _convert(
    sources: StatusSources,
    container: Container,
    record: ContainerRecord,
    previous: ContainerStatus | None,
) -> ContainerStatus:
    lost = record.state is RecordState.UNKNOWN and _was_running(previous)
    restarts = record.restart_count
    if previous is not None and (lost or _runs_anew(record, previous)):
        restarts = previous.restartCount + 1
    return ContainerStatus(
        name=container.name,
        image=record.image,
        imageID=record.image_id,
        containerID=container_id(sources.runtime_name, record.id),
        ready=False,
        started=False,
        restartCount=restarts,
        state=_state(sources, record, previous),
        resources=container_resources_shown(
            container,
            record,
            _running_before(sources, record, previous),
            sources.actuated(container.name),
        ),
        allocatedResources=container.resources.requests if container.resources else None,
        volumeMounts=_mounts(sources, container),
    )


def _running_before(
    sources: StatusSources, record: ContainerRecord, previous: ContainerStatus | None
) -> ContainerStatus | None:
    """The last status, if it showed this very instance running."""
    same = previous is not None and previous.containerID == container_id(
        sources.runtime_name, record.id
    )
    return previous if same and _was_running(previous) else None


def _runs_anew(record: ContainerRecord, previous: ContainerStatus) -> bool:
    """It runs after an exit that its own count does not know of."""
    ended = previous.state is not None and previous.state.terminated is not None
    running = record.state is RecordState.RUNNING
    return running and ended and previous.restartCount >= record.restart_count


def _is_waiting(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.waiting is not None


def _was_running(previous: ContainerStatus | None) -> bool:
    return previous is not None and previous.state is not None and bool(previous.state.running)


def _state(
    sources: StatusSources, record: ContainerRecord, previous: ContainerStatus | None
) -> ContainerState:
    if record.state is RecordState.RUNNING:
        return ContainerState(running=ContainerStateRunning(instant(record.started_at_ns)))
    if record.state is RecordState.EXITED:
        return ContainerState(terminated=_exit(sources, record))
    if record.state is RecordState.UNKNOWN and _was_running(previous):
        lost = lost_container(LOST_TERMINATED)  # LIFE-172, second half
        lost.containerID = container_id(sources.runtime_name, record.id)
        if sources.restarting_all:
            lost.reason = RESTARTING
        return ContainerState(terminated=lost)
    return ContainerState(waiting=ContainerStateWaiting())  # LIFE-170: created, or unknown


def _exit(sources: StatusSources, record: ContainerRecord) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        exitCode=record.exit_code,
        reason=record.reason or None,
        message=record.message or None,
        startedAt=instant(record.started_at_ns),
        finishedAt=instant(record.finished_at_ns),
        containerID=container_id(sources.runtime_name, record.id),
    )


def _with_waiting_reason(
    sources: StatusSources,
    container: Container,
    status: ContainerStatus,
    records: Sequence[ContainerRecord],
    *,
    init: bool,
) -> ContainerStatus:
    """LIFE-171: a container that will start again says why it has not started yet."""
    newest = records[0] if records else None
    succeeded = newest is not None and newest.state is RecordState.EXITED and not newest.exit_code
    if succeeded and init and not is_sidecar(container):
        return status
    if not container_should_be_restarted(container, sources.pod, newest):
        return status
    found = sources.reason_of(container.name)
    if found is None:
        return status
    reason, message = found
    last = status.lastState
    if status.state is not None and status.state.terminated is not None:
        last = ContainerState(terminated=status.state.terminated)
    waiting = ContainerStateWaiting(reason=reason, message=message or None)
    return msgspec.structs.replace(status, state=ContainerState(waiting=waiting), lastState=last)
