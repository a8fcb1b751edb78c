"""How the sync loop handles operations on pods: store the pod, ask `new_pods`, tell its worker.

What must never happen here: a wait for a pod, except in admission; a decision about containers; an
error of one pod that stops the other pods of its batch.
A mirror pod never has a worker: a change of it wakes the worker of its static pod (MIRR-020).
Rules: LIFE-003, LIFE-010..014, LIFE-204. Upstream: pkg/kubelet/kubelet.go: HandlePodAdditions,
HandlePodUpdates, HandlePodRemoves, HandlePodReconcile, HandlePodSyncs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from msgspec import Struct

from refkubelet.allocation.triggers import ResizeTriggers
from refkubelet.cri.records import ContainerRecord, SandboxState
from refkubelet.failures import Complaints
from refkubelet.kuberuntime.gc import ContainerDeletor
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import full_name, has_terminal_phase, is_mirror, pod_ref, uid
from refkubelet.pleg.cache import PodCache, PodStatusError
from refkubelet.pleg.compute import PodLifecycleEvent, PodLifecycleEventType
from refkubelet.pod_workers.sync_status import SyncPodType, UpdatePodOptions
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.status.conditions import readiness_is_outdated
from refkubelet.status.generate import past_active_deadline
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.new_pods import NewPods
from simclock import Clock
from simclock.clock import EPOCH

log = logging.getLogger(__name__)


class HandlerDeps(Struct, frozen=True):
    """What the handlers work with."""

    clock: Clock  # for active deadlines
    pods: PodManager  # the pods there should be
    workers: PodWorkers  # get the updates
    statuses: StatusManager  # when pods started, for active deadlines
    cache: PodCache  # what the PLEG saw last of every pod
    deletor: ContainerDeletor  # removes dead containers at once
    new_pods: NewPods  # asks admission
    sources_ready: Callable[[], bool]
    """Whether all sources have been seen (SRC-070)."""
    resizes: ResizeTriggers | None = None
    """None: pods are never resized."""
    show_death: Callable[[Pod, ContainerRecord], None] = lambda pod, record: None
    """Publishes the end of a container of a pod whose sync takes its time (STAT-012)."""
    restore_mirror: Callable[[Pod], None] = lambda pod: None
    """Makes the mirror of a finished static pod again; returns at once (MIRR-030)."""


class _PodList(Struct, frozen=True, eq=False):
    """The pods of the node, with what `sync_due` needs to know about them."""

    pods: tuple[Pod, ...] = ()
    uids: tuple[str, ...] = ()
    any_deadline: bool = False


class PodHandlers:
    """One method per operation."""

    def __init__(self, deps: HandlerDeps) -> None:
        self._deps = deps
        self._pod_list = _PodList()
        self._complaints = Complaints(log, deps.clock)
        self._sooner: Callable[[], None] = lambda: None
        self.new_pods = deps.new_pods

    async def handle_pod_additions(self, pods: Sequence[Pod]) -> None:
        """Admit new pods, oldest first; a refused pod never gets a worker (LIFE-010). Waits for
        admission: making room for a critical pod delays all pods after it (PREE-008)."""
        resizes, admitted = self._deps.resizes, []
        for pod in sorted(pods, key=_created_at):
            with self._guarded("addition", pod):
                self._store(pod)
                if is_mirror(pod):
                    self._wake_static_of(pod)
                elif await self.new_pods.may_run(pod):
                    if resizes is not None and not self.new_pods.ends(pod):
                        resizes.admitted(pod)
                        admitted.append(pod)
                    self.tell_worker(SyncPodType.CREATE, pod)
        if resizes is not None:
            await resizes.added(admitted)

    async def handle_pod_updates(self, pods: Sequence[Pod]) -> None:
        """Tell the workers of changed pods, and of pods whose deletion was announced (LIFE-013,
        SRC-066)."""
        for pod in pods:
            with self._guarded("update", pod):
                old = self._deps.pods.get(uid(pod))
                self._store(pod)
                if is_mirror(pod):
                    self._wake_static_of(pod)
                    continue
                if self._deps.resizes is not None:
                    await self._deps.resizes.updated(old, pod)
                self.tell_worker(SyncPodType.UPDATE, pod)

    async def handle_pod_removes(self, pods: Sequence[Pod]) -> None:
        """Kill pods that were removed from their source, if all sources are ready (LIFE-013); if
        not, housekeeping kills them later."""
        resizes = self._deps.resizes
        for pod in pods:
            with self._guarded("removal", pod):
                self._deps.pods.remove(pod)
                if resizes is not None:
                    resizes.removed(pod)
                if is_mirror(pod):
                    self._wake_static_of(pod)
                elif self._deps.sources_ready():
                    self.tell_worker(SyncPodType.KILL, pod)
                else:
                    log.info("skipping delete of %s because sources aren't ready yet", pod_ref(pod))
        if resizes is not None:
            await resizes.room_was_made()

    async def handle_pod_reconcile(self, pods: Sequence[Pod]) -> None:
        """Take pods of which only the status changed at the source: sync a pod whose readiness is
        outdated, remove the containers of an evicted one (LIFE-014)."""
        deps = self._deps
        room = ""
        for pod in pods:
            with self._guarded("status change", pod):
                old = deps.pods.get(uid(pod))
                self._store(pod)
                target = deps.pods.static_of(pod) if is_mirror(pod) else pod
                if target is None:
                    continue
                if deps.resizes is not None and not room:
                    room = deps.resizes.makes_room(old, target, has_terminal_phase)
                if readiness_is_outdated(target):
                    self.tell_worker(SyncPodType.SYNC, target)
                if _was_evicted(target.status):
                    self._delete_containers(uid(target), "", remove_all=True)
        if deps.resizes is not None and room:
            await deps.resizes.room_was_made(room)

    def handle_pod_syncs(self, pods: Iterable[Pod]) -> None:
        """Let the workers of these pods sync them (LIFE-013)."""
        for pod in pods:
            with self._guarded("sync", pod):
                self.tell_worker(SyncPodType.SYNC, pod)

    def leads_to_resizes(self, pods: Sequence[Pod]) -> bool:
        """Whether updates or removals of these pods would make admission decide about resizes."""
        resizes = self._deps.resizes
        if resizes is None:
            return False
        return resizes.pend or any(
            resizes.asked_for(self._deps.pods.get(uid(pod)), pod) for pod in pods
        )

    @contextmanager
    def _guarded(self, what: str, pod: Pod) -> Iterator[None]:
        """Log an error of this pod, so that the next pod is handled all the same."""
        try:
            yield
        except Exception as error:
            self._complaints.failed(f"{what} of {pod_ref(pod)} failed", error)

    def tell_worker(self, update_type: SyncPodType, pod: Pod) -> None:
        """Hand the pod and its current mirror to its worker. A pod that is being admitted has no
        worker yet, and nothing is done."""
        deps = self._deps
        if uid(pod) == self.new_pods.asked_about:
            return
        kill = update_type is SyncPodType.KILL
        told_s = None if kill else deps.clock.monotonic_s()
        mirror = deps.pods.mirror_of(pod)
        deps.workers.update_pod(UpdatePodOptions(update_type, pod, mirror, told_s=told_s))

    def sync_due(self) -> None:
        """Sync pods that are due in the work queue, or past their active deadline (LIFE-004)."""
        deps = self._deps
        due = frozenset(deps.workers.work_queue.take_due())
        listed = self._look_through(deps.pods.pods())
        for pod, pod_uid in zip(listed.pods, listed.uids, strict=True):
            with self._guarded("sync", pod):  # the other due pods have left the queue, too
                if pod_uid in due or (listed.any_deadline and self._is_overdue(pod)):
                    self.tell_worker(SyncPodType.SYNC, pod)

    def next_due_s(self) -> float:
        """`sync_due` finds no pod to sync before that time of the clock; 0: it may at any time."""
        deps = self._deps
        if self._look_through(deps.pods.pods()).any_deadline:
            return 0.0
        return deps.workers.work_queue.next_s

    def watch_due(self, sooner: Callable[[], None]) -> None:
        """`sooner` is called whenever `next_due_s` may have become earlier."""
        self._sooner = self._deps.workers.work_queue.sooner = sooner

    def _store(self, pod: Pod) -> None:
        self._deps.pods.update(pod)
        if _has_deadline(pod):
            self._sooner()

    def _look_through(self, pods: tuple[Pod, ...]) -> _PodList:
        """The same tuple as last time is not processed again."""
        if pods is not self._pod_list.pods:
            self._pod_list = _PodList(pods, tuple(map(uid, pods)), any(map(_has_deadline, pods)))
        return self._pod_list

    def _is_overdue(self, pod: Pod) -> bool:
        if not _has_deadline(pod):
            return False
        deps = self._deps
        return past_active_deadline(pod, deps.statuses.get(uid(pod)), deps.clock.now())

    def pleg_event(self, event: PodLifecycleEvent) -> None:
        """Sync the pod, and remove its dead containers (LIFE-003, PLEG-012)."""
        if event.uid == self.new_pods.asked_about:
            return  # its worker will start with the status in the cache
        pod = self._deps.pods.get(event.uid)
        if event.type is not PodLifecycleEventType.CONTAINER_REMOVED and pod is not None:
            self.handle_pod_syncs([pod])
        if event.type is PodLifecycleEventType.CONTAINER_DIED:
            self._show_death(pod, event.data)
            # Only after the worker has read their exit codes, which would be lost.
            workers = self._deps.workers
            remove_all = workers.should_pod_content_be_removed(
                event.uid
            ) and not workers.could_have_running_containers(event.uid)
            self._delete_containers(event.uid, event.data, remove_all=remove_all)

    def _show_death(self, pod: Pod | None, container_id: str) -> None:
        """Publish at once that a container has ended while a sync of its pod takes its time, as a
        pull does: nobody is to take the pod for ready meanwhile. That is for a pod whose sandbox
        stands: else all of it starts again, and a death is no news (LIFE-110, LIFE-125)."""
        if pod is None or not self._deps.workers.is_stepping(uid(pod)):
            return
        with self._guarded("status", pod), suppress(PodStatusError):
            status = self._deps.cache.get(uid(pod))
            standing = {s.id for s in status.sandboxes[:1] if s.state is SandboxState.READY}
            for record in status.containers:
                if record.id == container_id and record.sandbox_id in standing:
                    self._deps.show_death(pod, record)

    def sync_by_uid(self, pod_uid: str) -> None:
        """Sync the pod with that UID, if this node has it."""
        pod = self._deps.pods.get(pod_uid)
        if pod is not None:
            self.handle_pod_syncs([pod])

    def _wake_static_of(self, mirror: Pod) -> None:
        """Tell the static pod's worker about its mirror, even one that was removed (MIRR-030)."""
        static = self._deps.pods.static_of(mirror)
        if static is None:
            log.debug("mirror %s has no static pod", full_name(mirror))
            return
        if uid(static) == self.new_pods.asked_about:
            return  # its worker will start with the newest mirror
        is_gone = self._deps.pods.mirror_of(static) is None
        if is_gone and self._deps.workers.is_finished(uid(static)):
            self._deps.restore_mirror(static)  # its worker does nothing any more
            return
        told_s = self._deps.clock.monotonic_s()
        options = UpdatePodOptions(SyncPodType.UPDATE, static, mirror, told_s=told_s)
        self._deps.workers.update_pod(options)

    def _delete_containers(self, pod_uid: str, exited_id: str, *, remove_all: bool) -> None:
        try:
            status = self._deps.cache.get(pod_uid)
        except PodStatusError:
            return  # the status cannot be read now; garbage collection removes them later
        self._deps.deletor.delete_containers_in_pod(exited_id, status, remove_all=remove_all)


def _has_deadline(pod: Pod) -> bool:
    return pod.spec.activeDeadlineSeconds is not None


def _created_at(pod: Pod) -> datetime:
    created = pod.metadata.creationTimestamp
    return created or EPOCH


def _was_evicted(status: PodStatus | None) -> bool:
    return status is not None and status.phase == "Failed" and status.reason == "Evicted"
