"""Writes the versions of statuses that the API server has not confirmed, in the background.

A status is sent as GET and strategic-merge PATCH; every 10 s the writer also sends statuses that
others changed at the API server, and deletes pods that have finished.
What must never happen here: two writers; a status written to another pod of the same name
(STAT-024).
Rules: STAT-020..031. Upstream: pkg/kubelet/status/status_manager.go: Start, syncBatch, syncPod.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct, field

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import PODS
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import (
    full_name,
    generation_of,
    is_being_deleted,
    is_mirror,
    is_static,
    is_terminal,
    name_and_namespace,
    uid,
)
from refkubelet.status.merge import merge_pod_status
from refkubelet.status.normalize import normalize_status, statuses_equal
from refkubelet.status.patch import status_patch
from refkubelet.telemetry.pod_metrics import StatusMetrics
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from simclock import Clock

log = logging.getLogger(__name__)

FULL_PASS_S: Final = 10.0


class KnownPods(Protocol):
    """The part of the pod manager that statuses need."""

    def get(self, uid: str) -> Pod | None: ...

    def mirror_of(self, pod: Pod) -> Pod | None: ...

    def translate_uid(self, pod_uid: str) -> str:
        """The UID of the static pod, if it is that of a mirror."""

    def pods_and_mirrors(self) -> tuple[Pod, ...]: ...


class StatusDeps(Struct, frozen=True):
    """What the manager works with. `api` None: standalone, statuses stay in memory (SRC-052).
    `could_run`: whether containers of the pod with that UID may still run (LIFE-052)."""

    clock: Clock
    pods: KnownPods
    could_run: Callable[[str], bool]
    api: ApiClient | None = None
    metrics: StatusMetrics = field(default_factory=StatusMetrics)
    latency: PodStartupLatency | None = None
    """Told of statuses that are written; None: nobody asks how long starts take."""


class VersionedStatus(Struct, frozen=True):
    """A cached status; `finished`: the pod's termination is complete (STAT-030); `since_s`: when
    the oldest change in it was made that is not written yet, by the monotonic clock."""

    pod: Pod
    status: PodStatus
    version: int
    finished: bool = False
    since_s: float = 0.0


class StatusWriter:
    """The only task that writes. `statuses`: by pod UID, kept by the status manager, which sets
    `changed` after each new version."""

    def __init__(self, deps: StatusDeps, statuses: dict[str, VersionedStatus]) -> None:
        self._deps = deps
        self._statuses = statuses
        self._confirmed: dict[str, int] = {}  # versions by the UID at the API server
        # Likewise: the newest that was ever confirmed, also where somebody has changed it since.
        self._counted: dict[str, int] = {}
        # By the UID at the API server: its status and ours, compared and found equal.
        self._equal: dict[str, tuple[PodStatus | None, PodStatus]] = {}
        self._settled: dict[str, VersionedStatus] = {}
        """By the UID of the pod: what the API server has, so that only a look at everything finds
        more to send. None of static pods, whose mirror may be another by now."""
        self.changed = asyncio.Event()
        self._complaints = Complaints(log, deps.clock)

    def drop(self, pod_uid: str) -> None:
        """Forget the status of the pod with that UID, and all that was kept for it."""
        self._statuses.pop(pod_uid, None)
        self._settled.pop(pod_uid, None)
        self._complaints.over(pod_uid)
        if self._deps.latency is not None:
            self._deps.latency.forget(pod_uid)

    def is_written(self, pod_uid: str) -> bool:
        """Whether the API server has the newest version of that pod's status, or had it until
        somebody changed it there."""
        entry = self._statuses.get(pod_uid)
        if entry is None:
            return True
        mirror = self._deps.pods.mirror_of(entry.pod)
        return self._counted.get(uid(mirror) if mirror else pod_uid, 0) >= entry.version

    async def run(self) -> None:
        """Write statuses until cancelled: at each change, and everything every 10 s (STAT-020)."""
        if self._deps.api is None:  # nobody to write to
            await asyncio.Event().wait()
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
                await self.changed.wait()
        self.changed.clear()

    async def sync_batch(self, *, everything: bool) -> None:
        """Write the new versions; with `everything` also delete finished pods, and write statuses
        that others changed at the API server (STAT-021)."""
        if self._deps.api is None:
            return
        if everything:
            self._forget_confirmations()
        for pod_uid, entry in list(self._statuses.items()):
            if not everything and self._settled.get(pod_uid) is entry:
                continue
            try:
                if self._must_send(pod_uid, entry, everything):
                    self._settled.pop(pod_uid, None)
                    await self._send(self._deps.api, pod_uid)
                elif not is_static(entry.pod):
                    self._settled[pod_uid] = entry
            except Exception as error:  # the other statuses are written all the same
                complaint = f"the status of {full_name(entry.pod)} is not written"
                self._complaints.failed(complaint, error, key=pod_uid)
            else:
                self._complaints.over(pod_uid)

    def _forget_confirmations(self) -> None:
        mirrors = {uid(p) for p in self._deps.pods.pods_and_mirrors() if is_mirror(p)}
        for api_uid in [u for u in self._counted if u not in self._statuses]:
            if api_uid not in mirrors:
                for records in (self._confirmed, self._counted, self._equal):
                    records.pop(api_uid, None)

    def _must_send(self, pod_uid: str, entry: VersionedStatus, everything: bool) -> bool:
        """Whether the version is not confirmed; with `everything` also whether the pod can be
        deleted, or the API server shows another status. The version is unconfirmed from then, so
        that each wake-up sends it (STAT-021)."""
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
        if _can_be_deleted(api_pod, entry.finished):
            return True
        if not self._differs(api_pod, entry):
            return False
        self._confirmed.pop(api_uid, None)
        return True

    def _differs(self, api_pod: Pod, entry: VersionedStatus) -> bool:
        """Whether the API server's status differs in a field that the kubelet owns. Two objects
        that were equal are not compared again: they are frozen."""
        api_uid, pair = uid(api_pod), (api_pod.status, entry.status)
        equal = self._equal.get(api_uid)
        if equal is not None and equal[0] is pair[0] and equal[1] is pair[1]:
            return False
        api_status = normalize_status(api_pod, api_pod.status or PodStatus())
        if not statuses_equal(api_status, entry.status):
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
            live = await api.get(PODS, name, namespace)
            if self._deps.pods.translate_uid(uid(live)) != pod_uid:
                self.drop(pod_uid)  # STAT-024
                return
            live = await self._patch(api, live, entry)
            self._count_written(live, entry)
            self._confirmed[uid(live)] = entry.version
            if _can_be_deleted(live, entry.finished):
                await api.delete(PODS, name, namespace, grace_period_s=0, uid=uid(live))
                self.drop(pod_uid)
        except ApiError as error:
            if not error.not_found:
                log.warning("status of %s_%s not written: %s", name, namespace, error)

    def _count_written(self, live: Pod, entry: VersionedStatus) -> None:
        """The API server has this version now; `live`: the pod as it has it. The time that this
        took is counted once, and not for a repair of what somebody has changed."""
        if self._counted.get(uid(live), 0) < entry.version:
            self._counted[uid(live)] = entry.version
            took_s = self._deps.clock.monotonic_s() - entry.since_s
            self._deps.metrics.sync_duration.observe(took_s)
        if self._deps.latency is not None:
            self._deps.latency.written(live)

    async def _patch(self, api: ApiClient, live: Pod, entry: VersionedStatus) -> Pod:
        merged = merge_pod_status(
            live.status,
            entry.status,
            could_run=self._deps.could_run(uid(live)),
            now=self._deps.clock.now().replace(microsecond=0),
            generation=generation_of(live),
        )
        patch = status_patch(uid(live), live.status, merged)
        if patch is None:
            return live
        name, namespace = name_and_namespace(live)
        return await api.patch(PODS, name, patch, namespace, subresource="status")


def _can_be_deleted(pod: Pod, finished: bool) -> bool:
    """Whether the pod has finished and the API server has its terminal phase (STAT-030)."""
    deleted = is_being_deleted(pod)
    return deleted and not is_mirror(pod) and is_terminal(pod.status) and finished
