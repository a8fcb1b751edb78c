"""The status manager: keeps one versioned status per pod.

Workers set statuses in memory; each accepted change raises the pod's version and wakes the only
writing task (`writer`). What must never happen: a worker that waits for the API server.
Rules: STAT-001..011, LIFE-189..191. Upstream: pkg/kubelet/status/status_manager.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from msgspec.structs import replace as with_fields

from refkubelet.model.objects import ContainerStatus, Pod, PodStatus
from refkubelet.model.pod import (
    bare_container_id,
    full_name,
    generation_of,
    is_being_deleted,
    is_static,
    is_terminal,
    uid,
)
from refkubelet.status.conditions import with_readiness
from refkubelet.status.merge import illegal_transition, terminated_status
from refkubelet.status.normalize import (
    newer_generation,
    normalize_status,
    stamp_times,
    statuses_equal,
)
from refkubelet.status.writer import StatusDeps, StatusWriter, VersionedStatus

log = logging.getLogger(__name__)

KINDS: Final = (
    ("init_container", "initContainerStatuses"),
    ("container", "containerStatuses"),
    ("ephemeral_container", "ephemeralContainerStatuses"),
)
"""What metrics call kinds of containers, and where their statuses are."""


class StatusManager:
    """Statuses by pod UID, not by the UID of a mirror. `writer` sends them."""

    def __init__(self, deps: StatusDeps) -> None:
        self._deps = deps
        self._statuses: dict[str, VersionedStatus] = {}
        self.writer = StatusWriter(deps, self._statuses)

    def get(self, pod_uid: str) -> PodStatus | None:
        """The cached status; None: there is none yet. For a mirror's UID: its static pod's."""
        entry = self._statuses.get(self._deps.pods.translate_uid(pod_uid))
        return entry.status if entry is not None else None

    def any_over(self) -> bool:
        """Whether any cached status has a terminal phase."""
        return any(is_terminal(entry.status) for entry in self._statuses.values())

    def with_status(self, pod: Pod) -> Pod:
        """The pod as /pods shows it: a static one with its cached status, once there is one; any
        other as the API server has it (MIRR-035)."""
        status = self.get(uid(pod)) if is_static(pod) else None
        return pod if status is None else with_fields(pod, status=status)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Cache a newly generated status; an equal one changes nothing (STAT-007)."""
        deleted = is_being_deleted(pod)
        status = with_fields(status, observedGeneration=generation_of(pod))
        self._update(pod, status, force=deleted)

    def change_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Cache a status that was changed in the middle of a sync: it keeps the generation that
        the sync began with (STAT-012)."""
        self._update(pod, status)

    def terminate_pod(self, pod: Pod) -> None:
        """Mark the pod as finished: containers without an exit get exit code 137, an API pod gets a
        terminal phase and may be deleted (STAT-010, STAT-030)."""
        status = self._cached(uid(pod)) or pod.status or PodStatus(phase="Pending")
        self._update(pod, terminated_status(pod, status), force=True, finished=True)

    def set_container_readiness(self, pod_uid: str, container_id: str, ready: bool) -> None:
        """Set the result of a readiness probe (STAT-009). `container_id`: without its scheme."""
        pod, status = self._deps.pods.get(pod_uid), self._cached(pod_uid)
        if pod is None or status is None:
            return
        changed = _change_one(status, container_id, lambda s: with_fields(s, ready=ready))
        if changed != status:
            self._update(pod, with_readiness(pod, changed))

    def set_container_startup(self, pod_uid: str, container_id: str, started: bool) -> None:
        """Set the result of a startup probe; conditions change at the next sync (STAT-009,
        PROBE-032). `container_id`: without its scheme."""
        pod, status = self._deps.pods.get(pod_uid), self._cached(pod_uid)
        if pod is None or status is None:
            return
        changed = _change_one(status, container_id, lambda s: with_fields(s, started=started))
        if changed != status:
            self._update(pod, changed)

    def remove_orphaned(self, uids: Collection[str]) -> None:
        """Forget the statuses of all pods but `uids`; of mirrors: the UIDs of their static pods
        (STAT-011)."""
        for pod_uid in [u for u in self._statuses if u not in uids]:
            self.writer.drop(pod_uid)

    def _cached(self, pod_uid: str) -> PodStatus | None:
        entry = self._statuses.get(pod_uid)
        return entry.status if entry is not None else None

    def _old_status(self, pod: Pod) -> PodStatus | None:
        """The last status: the cached one, else the mirror's, else the object's (STAT-002)."""
        entry = self._statuses.get(uid(pod))
        if entry is not None:
            return entry.status
        mirror = self._deps.pods.mirror_of(pod)
        return mirror.status if mirror is not None else pod.status

    def _update(
        self, pod: Pod, status: PodStatus, *, force: bool = False, finished: bool = False
    ) -> None:
        """Put a status into the cache as a new version and wake the writer, unless it is equal to
        the last (and not `force`), or brings an ended container back."""
        old = self._old_status(pod)
        revived = illegal_transition(old, status, pod)
        if revived is not None and not self._came_back(pod, status, revived):
            log.error(
                "status of %s dropped: terminated container %s attempted illegal transition to "
                "non-terminated state",
                full_name(pod),
                revived,
            )
            return
        status = with_fields(
            status, observedGeneration=newer_generation(status.observedGeneration, old)
        )
        status = normalize_status(pod, stamp_times(status, old, self._deps.clock.now()))
        entry = self._statuses.get(uid(pod))
        if entry is not None and not force and statuses_equal(entry.status, status):
            return
        self._count_ends(old, status)
        was_finished = entry is not None and entry.finished and not is_static(pod)
        version = entry.version + 1 if entry is not None else 1
        since_s = self._deps.clock.monotonic_s()
        if entry is not None and not self.writer.is_written(uid(pod)):
            since_s = entry.since_s
        self._statuses[uid(pod)] = VersionedStatus(
            pod, status, version, finished or was_finished, since_s
        )
        self.writer.changed.set()

    def _came_back(self, pod: Pod, status: PodStatus, revived: str) -> bool:
        """Whether that container runs in a static pod whose last status this kubelet has made: its
        manifest was away for a moment, so that it is started anew, with its UID (STAT-008.7)."""
        if not is_static(pod) or uid(pod) not in self._statuses:
            return False
        listed = (*(status.containerStatuses or ()), *(status.initContainerStatuses or ()))
        states = [one.state for one in listed if one.name == revived]
        return any(state is not None and state.running is not None for state in states)

    def _count_ends(self, old: PodStatus | None, new: PodStatus) -> None:
        """Count the containers that the old status did not show as ended, by the reason that the
        status shows, whatever the runtime calls it, as upstream counts them."""
        for kind, field_name in KINDS:
            before = {s.name for s in getattr(old, field_name, None) or () if _has_ended(s)}
            for status in getattr(new, field_name) or ():
                ended = status.state.terminated if status.state is not None else None
                if ended is not None and status.name not in before:
                    code, reason = str(ended.exitCode), ended.reason or ""
                    self._deps.metrics.terminated.inc(kind, code, reason)


def _has_ended(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.terminated is not None


def _change_one(
    status: PodStatus, container_id: str, change: Callable[[ContainerStatus], ContainerStatus]
) -> PodStatus:
    """`status` with `change` applied to the status of a regular or init container."""

    def changed(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
        if statuses is None:
            return None
        return [
            change(s) if bare_container_id(s.containerID) == container_id else s for s in statuses
        ]

    return with_fields(
        status,
        containerStatuses=changed(status.containerStatuses),
        initContainerStatuses=changed(status.initContainerStatuses),
    )
