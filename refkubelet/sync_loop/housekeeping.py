"""Housekeeping, every 2 s: compare the desired pods, the pod workers and the running pods; create
missing workers, and kill and clean up what nothing asks for.

The order matters (LIFE-015): first the workers forget finished pods, then desired pods without a
worker get one, and only then are running pods without a worker killed. What must never happen: a
round before every source has delivered its pods (SRC-071); a failed list of running pods taken for
an empty one; an error in one part that stops the other parts.
Upstream: pkg/kubelet/kubelet_pods.go: HandlePodCleanups.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from refkubelet.api.client import ApiError
from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.cri.records import RuntimePod
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints, Guard
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.model.objects import Pod
from refkubelet.model.pod import (
    full_name,
    has_terminal_phase,
    is_being_deleted,
    is_static,
    pod_ref,
    uid,
)
from refkubelet.pod_workers.steps import RUNTIME_POD_GRACE_S
from refkubelet.pod_workers.sync_status import (
    KillPodOptions,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.pods.mirror import NO_ANSWER, PATIENCE_S, MirrorClient
from refkubelet.probes.manager import ProbeManager
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.orphan_directories import OrphanDirectories
from refkubelet.sync_loop.pod_handlers import PodHandlers
from refkubelet.telemetry.metrics import HousekeepingMetrics
from refkubelet.telemetry.volume_metrics import VolumeMetrics
from refkubelet.volumes.manager import PodVolumes
from refkubelet.volumes.mounting import Mounts, NoMounts
from simclock import Clock

log = logging.getLogger(__name__)

PUT_OFF = "housekeeping is put off"
PARTS: Final = (
    "probes",
    "statuses",
    "allocations",
    "user namespaces",
    "directories of pods",
    "mirrors",
    "cgroups",
    "back-offs",
)
"""Of a round, by their names in complaints: the error of one does not stop the others."""
AT_WORK = (WorkState.SYNCING, WorkState.TERMINATING)


class KeptByPod(Protocol):
    """Remembers something of each pod."""

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Forget what belongs to other pods."""


class CleanupDeps(Struct, frozen=True):
    """What housekeeping works with."""

    clock: Clock  # for complaints that last
    pods: PodManager  # the pods there should be
    workers: PodWorkers  # which pods they know; end those that are gone
    handlers: PodHandlers  # tell workers of pods; know which are active
    statuses: StatusManager  # forgets pods that are gone
    probes: ProbeManager  # end with their pods
    runtime: RuntimeManager  # lists what runs
    mirrors: MirrorClient  # deletes orphaned mirror pods
    root_dir: Path
    """Directories of pods are `root_dir/pods/<uid>`."""
    cgroups: ContainerManager | None = None
    """None: pods have no cgroups (cgroupsPerQOS false)."""
    allocations: KeptByPod | None = None
    """None: pods are never resized."""
    users: KeptByPod | None = None
    """None: pods have no user IDs of their own."""
    mounts: Mounts = field(default_factory=NoMounts)
    """Unmounts the volumes of removed pods."""
    volume_metrics: VolumeMetrics = field(default_factory=VolumeMetrics)
    """Counts directories of pods that are gone."""
    volumes: PodVolumes | None = None
    """None: no volume is of a driver."""


class _Wanted(Struct, frozen=True, eq=False):
    """The desired pods and their UIDs. `over`: those that are being deleted and terminal."""

    pods: tuple[Pod, ...] = ()
    uids: frozenset[str] = frozenset()
    over: tuple[Pod, ...] = ()

    @classmethod
    def of(cls, pods: tuple[Pod, ...]) -> _Wanted:
        over = tuple(pod for pod in pods if is_being_deleted(pod) and has_terminal_phase(pod))
        return cls(pods, frozenset(map(uid, pods)), over)


class _Running(Struct, frozen=True, eq=False):
    """The running pods and their UIDs."""

    pods: tuple[RuntimePod, ...] = ()
    uids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pods: tuple[RuntimePod, ...]) -> _Running:
        return cls(pods, frozenset(pod.uid for pod in pods))


class Housekeeping:
    """Runs one round of housekeeping per call. A list that is the same object as in the last round
    is not processed again."""

    def __init__(self, deps: CleanupDeps) -> None:
        self._deps = deps
        self._directories = OrphanDirectories(
            deps.root_dir,
            deps.mounts,
            volumes=deps.volumes,
            clock=deps.clock,
            metrics=deps.volume_metrics,
        )
        self._wanted = _Wanted()
        self._running = _Running()
        self._statuses: tuple[tuple[Pod, ...], frozenset[str]] = ((), frozenset())
        self._complaints = Complaints(log, deps.clock)
        self._guards = {part: self._complaints.guarded(f"housekeeping: {part}") for part in PARTS}
        self.metrics = HousekeepingMetrics()

    async def handle_pod_cleanups(self) -> None:
        """Run one round (LIFE-015). If the runtime cannot list its pods, the rest is skipped."""
        deps, guards = self._deps, self._guards
        desired = self._look_through_wanted(deps.pods.pods())
        working = deps.workers.sync_known_pods(desired.uids)
        try:
            listed = await deps.runtime.get_pods(all_states=False)
        except CriCallError as error:
            self._complaints.failed(PUT_OFF, error, CriCallError)
            return
        self._complaints.over(PUT_OFF)
        running = self._look_through_running(listed)
        at_work = frozenset([pod_uid for pod_uid, state in working.items() if state in AT_WORK])
        with guards["probes"]:
            deps.probes.cleanup_pods(at_work)
        with guards["statuses"]:
            deps.statuses.remove_orphaned(self._uids_of_statuses(deps.pods.pods_and_mirrors()))
        with guards["allocations"]:
            if deps.allocations is not None:
                deps.allocations.keep_only(desired.uids)
        with guards["user namespaces"]:
            if deps.users is not None:  # what still starts or ends is in no list
                deps.users.keep_only(desired.uids | running.uids | working.keys())
        with guards["directories of pods"]:
            self._remove_directories(desired, running)
        with guards["mirrors"]:
            await self._delete_orphan_mirrors()
        created = self._create_missing(desired, working)
        self._end_deleted(desired, running, working)
        self._kill_unknown(running, working, created)
        with guards["cgroups"]:
            if deps.cgroups is not None:
                deps.cgroups.remove_orphans(at_work | created, self._directories.has_volumes)
        with guards["back-offs"]:
            deps.runtime.forget_old_backoffs()

    async def stop(self) -> None:
        """Give up what goes on beside the loop."""
        await self._directories.stop()

    def _remove_directories(self, wanted: _Wanted, running: _Running) -> None:
        """Those of pods that are not desired, not running and without a worker."""
        finished = self._deps.workers.should_pod_be_finished
        self._directories.remove(wanted.uids | running.uids, finished, wanted, running)

    def _guarded(self, what: str) -> Guard:
        """Log an error of one pod, so that the next one has its turn all the same."""
        return self._complaints.guarded(f"housekeeping: {what}")

    def _look_through_wanted(self, pods: tuple[Pod, ...]) -> _Wanted:
        if pods is not self._wanted.pods:
            self._wanted = _Wanted.of(pods)
        return self._wanted

    def _look_through_running(self, pods: tuple[RuntimePod, ...]) -> _Running:
        if pods is not self._running.pods:
            self._running = _Running.of(pods)
        return self._running

    def _uids_of_statuses(self, pods: tuple[Pod, ...]) -> frozenset[str]:
        """The UIDs under which statuses of these pods and mirrors are kept."""
        if pods is not self._statuses[0]:
            translate = self._deps.pods.translate_uid
            self._statuses = (pods, frozenset(translate(uid(pod)) for pod in pods))
        return self._statuses[1]

    async def _delete_orphan_mirrors(self) -> None:
        """Delete mirrors without a static pod (MIRR-031, MIRR-033). The sync loop waits for this,
        so after `PATIENCE_S` without an answer the rest is left to the next round."""
        orphans = self._deps.pods.orphan_mirrors()
        if not orphans:
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._delete_mirrors(orphans)
        except TimeoutError:
            log.warning("orphan mirrors not deleted: %s", NO_ANSWER)

    async def _delete_mirrors(self, mirrors: Iterable[Pod]) -> None:
        deps = self._deps
        for mirror in mirrors:
            name = full_name(mirror)
            if deps.workers.is_terminating_by_full_name(name):
                continue
            try:
                await deps.mirrors.delete_mirror(name, None)
            except Exception as error:
                self._complaints.failed(f"orphan mirror {name} not deleted", error, ApiError)

    def _create_missing(self, wanted: _Wanted, working: Mapping[str, WorkState]) -> frozenset[str]:
        """Make workers for active pods without one, whose UID came back (MIRR-006); their UIDs."""
        if wanted.uids <= working.keys():
            return frozenset()
        missing = [p for p in self._deps.handlers.new_pods.active_pods() if uid(p) not in working]
        for pod in missing:
            with self._guarded(f"worker of {pod_ref(pod)}"):
                self._deps.handlers.tell_worker(SyncPodType.CREATE, pod)
                self.metrics.restarted.inc("true" if is_static(pod) else "")
        return frozenset(uid(p) for p in missing)

    def _end_deleted(
        self, wanted: _Wanted, running: _Running, working: Mapping[str, WorkState]
    ) -> None:
        """Make workers for deleted pods that ended before this kubelet started: the cleanup, their
        last step, is still to be done."""
        for pod in wanted.over:
            if uid(pod) not in running.uids and uid(pod) not in working:
                with self._guarded(f"end of {pod_ref(pod)}"):
                    self._deps.handlers.tell_worker(SyncPodType.KILL, pod)

    def _kill_unknown(
        self, running: _Running, working: Mapping[str, WorkState], created: frozenset[str]
    ) -> None:
        """Kill running pods without a worker: no source has them, or they were not admitted again
        after a restart (LIFE-072, LIFE-202, MIRR-009)."""
        if running.uids <= working.keys():
            return
        for pod in running.pods:
            if pod.uid in working or pod.uid in created:
                continue
            log.warning("pod %s/%s (%s) is orphaned; killing it", pod.namespace, pod.name, pod.uid)
            self.metrics.orphaned.inc()
            kill = KillPodOptions(grace_override_s=RUNTIME_POD_GRACE_S)
            with self._guarded(f"end of {pod.name}_{pod.namespace}({pod.uid})"):
                self._deps.workers.update_pod(
                    UpdatePodOptions(SyncPodType.KILL, running_pod=pod, kill=kill)
                )
