"""The status manager: keeps one versioned status per pod and writes it to the API server.

How it works. Workers set statuses in memory; each accepted change raises the pod's version and
wakes the only writing task. The task sends versions that the API server has not confirmed, as GET
and strategic-merge PATCH; every 10 s it also sends statuses that others changed at the API server,
and deletes pods that have finished. What must never happen: two writers; a worker that waits for
the API server; a status written to another pod of the same name (STAT-024).
Rules: STAT-001..031, LIFE-189..191. Upstream: pkg/kubelet/status/status_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from msgspec.structs import replace as with_fields

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.failures import Complaints
from refkubelet.model.objects import ContainerStatus, Pod, PodStatus
from refkubelet.model.pod import (
    bare_container_id,
    full_name,
    generation_of,
    is_being_deleted,
    is_mirror,
    is_static,
    is_terminal,
    name_and_namespace,
    uid,
)
from refkubelet.status.conditions import (
    with_readiness,
)
from refkubelet.status.merge import (
    illegal_transition,
    merge_pod_status,
    terminated_status,
)
from refkubelet.status.normalize import (
    newer_generation,
    normalize_status,
    stamp_times,
    statuses_equal,
)
from refkubelet.status.patch import status_patch
from simtime import Clock

log = logging.getLogger(__name__)

FULL_PASS_S: Final = 10.0


class KnownPods(Protocol):
    """The part of the pod manager that statuses need."""

    def get(self, uid: str) -> Pod | None: ...

    def mirror_of(self, pod: Pod) -> Pod | None: ...

    def translate_uid(self, pod_uid: str) -> str: ...

    def pods_and_mirrors(self) -> tuple[Pod, ...]: ...


@dataclass(frozen=True, slots=True)
class StatusDeps:
    """What the manager works with. `api` None: standalone, statuses stay in memory (SRC-052).
    `could_run`: whether containers of the pod with that UID may still run (LIFE-052)."""

    clock: Clock
    pods: KnownPods
    could_run: Callable[[str], bool]
    api: ApiClient | None = None


@dataclass(frozen=True, slots=True)
class VersionedStatus:
    """A cached status; `finished`: the pod's termination is complete (STAT-030)."""

    pod: Pod
    status: PodStatus
    version: int
    finished: bool = False


class StatusManager:
    """The cache and the writer. Statuses are kept by pod UID, not by the UID of a mirror."""

    def __init__(self, deps: StatusDeps) -> None:
        self._deps = deps
        self._statuses: dict[str, VersionedStatus] = {}
        self._confirmed: dict[str, int] = {}  # versions by the UID at the API server
        # By the UID at the API server: its status and ours, compared and found equal.
        self._equal: dict[str, tuple[PodStatus | None, PodStatus]] = {}
        self._changed = asyncio.Event()
        self._complaints = Complaints(log, deps.clock)

    # The cache

    def get(self, pod_uid: str) -> PodStatus | None:
        """The cached status; None: there is none yet. For a mirror's UID: its static pod's."""
        entry = self._statuses.get(self._deps.pods.translate_uid(pod_uid))
        return entry.status if entry is not None else None

    def with_status(self, pod: Pod) -> Pod:
        """The pod with its cached status; while there is none, with its own (MIRR-035)."""
        return with_fields(pod, status=self.get(uid(pod)) or pod.status)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Cache a newly generated status; an equal one changes nothing (STAT-007)."""
        deleted = is_being_deleted(pod)
        status = with_fields(status, observedGeneration=generation_of(pod))
        self._update(pod, status, force=deleted)

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
            del self._statuses[pod_uid]
            self._complaints.over(pod_uid)

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
        if revived is not None:
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
        status = normalize_status(pod, stamp_times(status, old, self._now()))
        entry = self._statuses.get(uid(pod))
        if entry is not None and not force and statuses_equal(entry.status, status):
            return
        was_finished = entry is not None and entry.finished and not is_static(pod)
        version = entry.version + 1 if entry is not None else 1
        self._statuses[uid(pod)] = VersionedStatus(pod, status, version, finished or was_finished)
        self._changed.set()

    def _now(self) -> datetime:
        return self._deps.clock.now()

    # The writer

    async def run(self) -> None:
        """Write statuses until cancelled: at each change, and everything every 10 s (STAT-020)."""
        clock = self._deps.clock
        full_pass_s = clock.monotonic_s() + FULL_PASS_S
        while True:
            await self._wait_for_change(full_pass_s - clock.monotonic_s())
            everything = clock.monotonic_s() >= full_pass_s
            if everything:
                full_pass_s = clock.monotonic_s() + FULL_PASS_S
            try:
                await self.sync_batch(everything=everything)
            except Exception as error:
                self._complaints.failed("writing pod statuses failed", error)

    async def _wait_for_change(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_s, 0.0)):
                await self._changed.wait()
        self._changed.clear()

    async def sync_batch(self, *, everything: bool) -> None:
        """Write the new versions; with `everything` also delete finished pods, and write statuses
        that others changed at the API server (STAT-021)."""
        if self._deps.api is None:
            return
        if everything:
            self._forget_confirmations()
        for pod_uid, entry in list(self._statuses.items()):
            try:
                if self._must_send(pod_uid, entry, everything):
                    await self._send(self._deps.api, pod_uid)
            except Exception as error:  # the other statuses are written all the same
                what = f"the status of {full_name(entry.pod)} is not written"
                self._complaints.failed(what, error, key=pod_uid)
            else:
                self._complaints.over(pod_uid)

    def _forget_confirmations(self) -> None:
        mirrors = {uid(p) for p in self._deps.pods.pods_and_mirrors() if is_mirror(p)}
        for api_uid in [u for u in self._confirmed if u not in self._statuses]:
            if api_uid not in mirrors:
                del self._confirmed[api_uid]
                self._equal.pop(api_uid, None)

    def _must_send(self, pod_uid: str, entry: VersionedStatus, everything: bool) -> bool:
        pod = self._deps.pods.get(pod_uid)
        api_pod: Pod | None = pod
        if is_static(pod or entry.pod):
            api_pod = self._deps.pods.mirror_of(entry.pod)
            if api_pod is None or self._deps.pods.translate_uid(uid(api_pod)) != pod_uid:
                return False  # STAT-025; or the mirror is that of a newer static pod
        api_uid = uid(api_pod) if api_pod is not None else pod_uid
        if self._confirmed.get(api_uid, 0) < entry.version:
            return True
        if not everything or api_pod is None:
            return False
        return _can_be_deleted(api_pod, entry.finished) or self._differs(api_pod, entry)

    def _differs(self, api_pod: Pod, entry: VersionedStatus) -> bool:
        """Whether the API server's status differs in a field that the kubelet owns. Two objects
        that were equal are not compared again: they are frozen."""
        api_uid, pair = uid(api_pod), (api_pod.status, entry.status)
        equal = self._equal.get(api_uid)
        if equal is not None and equal[0] is pair[0] and equal[1] is pair[1]:
            return False
        seen = normalize_status(api_pod, api_pod.status or PodStatus())
        if not statuses_equal(seen, entry.status):
            return True
        self._equal[api_uid] = pair
        return False

    async def _send(self, api: ApiClient, pod_uid: str) -> None:
        """Write the pod's status, and delete the pod if it has finished. An error
        of the API server is logged; the next pass tries again."""
        entry = self._statuses.get(pod_uid)
        if entry is None:
            return
        name, namespace = name_and_namespace(entry.pod)
        try:
            live = await api.get_pod(namespace, name)
            if self._deps.pods.translate_uid(uid(live)) != pod_uid:
                self._statuses.pop(pod_uid, None)  # STAT-024
                return
            live = await self._patch(api, live, entry)
            self._confirmed[uid(live)] = entry.version
            if _can_be_deleted(live, entry.finished):
                await api.delete_pod(namespace, name, grace_period_s=0, uid=uid(live))
                self._statuses.pop(pod_uid, None)
        except ApiError as error:
            if not error.not_found:
                log.warning("status of %s_%s not written: %s", name, namespace, error)

    async def _patch(self, api: ApiClient, live: Pod, entry: VersionedStatus) -> Pod:
        merged = merge_pod_status(
            live.status,
            entry.status,
            could_run=self._deps.could_run(uid(live)),
            now=self._now().replace(microsecond=0),
            generation=generation_of(live),
        )
        patch = status_patch(uid(live), live.status, merged)
        if patch is None:
            return live
        return await api.patch_pod_status(
            live.metadata.namespace or "", live.metadata.name or "", patch
        )


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


def _can_be_deleted(pod: Pod, finished: bool) -> bool:
    """Whether the pod has finished and the API server has its terminal phase (STAT-030)."""
    deleted = is_being_deleted(pod)
    return deleted and not is_mirror(pod) and is_terminal(pod.status) and finished
