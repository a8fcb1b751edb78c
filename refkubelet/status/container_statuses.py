"""Container statuses for the API, from the runtime's records and the previous status. Pure.

How it works, for each container of the spec: the status comes from its newest two records, or
without a record from the previous status (`remembered.py`); then the reason of a failed start is
added. What must never happen: a restart count goes down, or a recorded exit is lost (LIFE-173).
Upstream: pkg/kubelet/kubelet_pods.go: convertToAPIContainerStatuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from lightkube.models.core_v1 import ContainerUser, LinuxContainerUser

from refkubelet.allocation.resources import canonical_resources
from refkubelet.cri.records import ContainerRecord, RuntimeUser
from refkubelet.cri.records import ContainerState as RecordState
from refkubelet.kuberuntime.decisions.restart_policy import restarts_after_exit, starts_at_next_sync
from refkubelet.model.objects import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from refkubelet.status.remembered import (
    LOST_TERMINATED,
    from_memory,
    is_pruned,
    lost_container,
    treated_as_completed,
    was_running,
)
from refkubelet.status.resources import container_resources_shown
from refkubelet.status.restart_all import RESTARTING
from refkubelet.status.sources import StatusSources
from simclock.clock import EPOCH


def container_statuses(
    sources: StatusSources, containers: Sequence[Container], *, init: bool = False
) -> list[ContainerStatus]:
    """One status per container: regular ones by name, init ones in spec order (LIFE-174).

    `started` and `ready` keep their previous values; `generate.py` sets them (LIFE-175).
    """
    statuses = [_container_status(sources, container, init=init) for container in containers]
    return statuses if init else sorted(statuses, key=lambda status: status.name)


def container_id(runtime_name: str, record_id: str) -> str:
    """The API's form of a container ID: `containerd://<id>`."""
    return f"{runtime_name}://{record_id}"


def instant(wall_ns: int) -> datetime | None:
    """An API time from nanoseconds since 1970; None for 0, which means never."""
    return EPOCH + timedelta(microseconds=wall_ns // 1000) if wall_ns > 0 else None


def _container_status(
    sources: StatusSources, container: Container, *, init: bool
) -> ContainerStatus:
    """The status of one container, with the reason why it waits."""
    previous = sources.previous.get(container.name)
    every = sources.runtime_status.of(container.name)
    records = [record for record in every if not _is_leftover(record, previous)]
    if records:
        status = _from_records(sources, container, records, previous)
    else:
        status = from_memory(sources, container, previous)
    if init and _has_succeeded(records):
        return status
    if init and not records and is_pruned(sources, container, status):
        return treated_as_completed(status)
    return _with_waiting_reason(sources, container, status, records)


def _has_succeeded(records: Sequence[ContainerRecord]) -> bool:
    """Whether the newest record ended with exit code 0; such an init container, sidecars included,
    shows no reason for waiting (LIFE-171)."""
    return bool(records) and records[0].state is RecordState.EXITED and not records[0].exit_code


def _from_records(
    sources: StatusSources,
    container: Container,
    records: Sequence[ContainerRecord],
    previous: ContainerStatus | None,
) -> ContainerStatus:
    """The status with `state` from the newest record, and `lastState` from the record before it
    that ran, or else from the previous status (LIFE-170)."""
    status = _convert(sources, container, records[0], previous)
    ran = next((r for r in records[1:] if r.state is not RecordState.CREATED), None)
    last = _state(sources, ran, previous) if ran is not None else _known_last(status, previous)
    return msgspec.structs.replace(status, lastState=last)


def _is_leftover(record: ContainerRecord, previous: ContainerStatus | None) -> bool:
    """Whether a kubelet created this container and died before starting it, and the previous status
    shows a later instance, whose exit must not be lost."""
    created = record.state is RecordState.CREATED
    return created and previous is not None and record.restart_count < previous.restartCount


def _known_last(status: ContainerStatus, previous: ContainerStatus | None) -> ContainerState:
    """lastState from the previous status, for an instance whose record is gone: it was removed
    before the container started again (golden s13), or pruned later."""
    if previous is None:
        return ContainerState()
    ended = previous.state.terminated if previous.state else None
    if ended is None or previous.containerID == status.containerID:
        ended = previous.lastState.terminated if previous.lastState else None
    return ContainerState(terminated=ended)


def _convert(
    sources: StatusSources,
    container: Container,
    record: ContainerRecord,
    previous: ContainerStatus | None,
) -> ContainerStatus:
    """The status that one record stands for, without lastState."""
    running = record.state is RecordState.RUNNING
    return ContainerStatus(
        name=container.name,
        image=record.image,
        imageID=record.image_id,
        containerID=container_id(sources.runtime_name, record.id),
        ready=False,
        started=previous.started if running and previous is not None else None,
        restartCount=_restart_count(record, previous),
        state=_state(sources, record, previous),
        resources=container_resources_shown(
            container,
            record,
            _running_before(sources, record, previous),
            sources.actuated(container.name),
        ),
        allocatedResources=canonical_resources(container.resources).requests,
        volumeMounts=previous.volumeMounts if previous is not None else None,
        user=_user(record.user),
    )


def _user(user: RuntimeUser | None) -> ContainerUser | None:
    if user is None:
        return None
    groups = list(user.supplemental_groups) or None
    return ContainerUser(LinuxContainerUser(uid=user.uid, gid=user.gid, supplementalGroups=groups))


def _restart_count(record: ContainerRecord, previous: ContainerStatus | None) -> int:
    """The restart count: the record's, but never below the previous status's (LIFE-173), and one
    more than that for a lost container and after an exit that the record does not count."""
    if previous is None:
        return record.restart_count
    lost = record.state is RecordState.UNKNOWN and was_running(previous)
    if lost or _runs_anew(record, previous):
        return previous.restartCount + 1
    return max(record.restart_count, previous.restartCount)


def _running_before(
    sources: StatusSources, record: ContainerRecord, previous: ContainerStatus | None
) -> ContainerStatus | None:
    """The previous status, if it shows this same instance running."""
    same = previous is not None and previous.containerID == container_id(
        sources.runtime_name, record.id
    )
    return previous if same and was_running(previous) else None


def _runs_anew(record: ContainerRecord, previous: ContainerStatus) -> bool:
    """Whether it runs after an exit that the record's restart count does not include."""
    ended = previous.state is not None and previous.state.terminated is not None
    running = record.state is RecordState.RUNNING
    return running and ended and previous.restartCount >= record.restart_count


def _state(
    sources: StatusSources, record: ContainerRecord, previous: ContainerStatus | None
) -> ContainerState:
    if record.state is RecordState.RUNNING:
        return ContainerState(running=ContainerStateRunning(instant(record.started_at_ns)))
    if record.state is RecordState.EXITED:
        return ContainerState(terminated=exit_of(sources.runtime_name, record))
    if record.state is RecordState.UNKNOWN and was_running(previous):
        lost = lost_container(LOST_TERMINATED)  # LIFE-172, second half
        if sources.restarting_all:
            lost.reason = RESTARTING
        return ContainerState(terminated=lost)
    return ContainerState(waiting=ContainerStateWaiting())  # LIFE-170: created, or unknown


def exit_of(runtime_name: str, record: ContainerRecord) -> ContainerStateTerminated:
    """How the record ended, in the API's form."""
    return ContainerStateTerminated(
        exitCode=record.exit_code,
        reason=record.reason or None,
        message=record.message or None,
        startedAt=instant(record.started_at_ns),
        finishedAt=instant(record.finished_at_ns),
        containerID=container_id(runtime_name, record.id),
    )


def _is_over(sources: StatusSources, container: Container, status: ContainerStatus) -> bool:
    """Whether a regular container without a record has run, has ended, and is not started again
    (LIFE-114.2): it keeps its exit, although a start of it has failed before."""
    ended = status.state.terminated if status.state is not None else None
    if ended is None or not status.containerID:
        return False
    if restarts_after_exit(container, sources.pod, ended.exitCode):
        return False
    return any(container is one for one in sources.pod.spec.containers)


def _with_waiting_reason(
    sources: StatusSources,
    container: Container,
    status: ContainerStatus,
    records: Sequence[ContainerRecord],
) -> ContainerStatus:
    """`status` waiting with the reason of the last failed start, if the container will be started
    again (LIFE-171)."""
    newest = records[0] if records else None
    if not starts_at_next_sync(container, sources.pod, newest):
        return status
    if newest is None and _is_over(sources, container, status):
        return status
    reason_and_message = sources.reason_of(container.name)
    if reason_and_message is None:
        return status
    reason, message = reason_and_message
    last = status.lastState
    if status.state is not None and status.state.terminated is not None:
        last = ContainerState(terminated=status.state.terminated)
    waiting = ContainerStateWaiting(reason=reason, message=message or None)
    return msgspec.structs.replace(status, state=ContainerState(waiting=waiting), lastState=last)
