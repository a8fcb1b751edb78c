"""Every 2 s: compare what is wanted, what the workers know and what runs, and end the rest.

The order of the parts is the point (LIFE-015): the workers forget what is finished before the
pods without a worker are created again, and only then may what runs without a worker be killed.
What must never happen: it runs before every source was seen (SRC-071); a list that failed is taken
for an empty one. Upstream: pkg/kubelet/kubelet_pods.go: HandlePodCleanups.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from refkubelet.apiclient import ApiError
from refkubelet.failures import Complaints
from refkubelet.handlers import PodHandlers
from refkubelet.metrics import HousekeepingMetrics
from refkubelet.model.objects import Pod, full_name, is_static, uid
from refkubelet.mounts import anything_mounted_below
from refkubelet.pod_workers.records import (
    KillPodOptions,
    PodWorkerSync,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pod_workers.updates import has_terminal_phase, is_being_deleted
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.pods.manager import PodManager
from refkubelet.pods.mirror import NO_ANSWER, PATIENCE_S, MirrorClient
from refkubelet.runtime.client import CriCallError
from refkubelet.runtime.records import RuntimePod
from refkubelet.status.manager import StatusManager
from refkubelet.worker_steps import RUNTIME_POD_GRACE_S
from simtime import Clock

log = logging.getLogger(__name__)

PUT_OFF = "housekeeping is put off"
AT_WORK = (WorkState.SYNCING, WorkState.TERMINATING)


class CleanableRuntime(Protocol):
    """What housekeeping asks of the runtime manager."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...

    def forget_old_backoffs(self) -> None: ...


class CleanableAllocations(Protocol):
    def keep_only(self, pod_uids: Collection[str]) -> None: ...


class CleanableProbes(Protocol):
    def cleanup_pods(self, desired_uids: Collection[str]) -> None: ...


class CleanableCgroups(Protocol):
    def remove_orphans(
        self, keep: Collection[str], volumes_exist: Callable[[str], bool]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class CleanupDeps:
    """What housekeeping works with; pod directories are `root_dir/pods/<uid>`. `cgroups` None:
    pods have none."""

    clock: Clock
    pods: PodManager
    workers: PodWorkers
    handlers: PodHandlers
    statuses: StatusManager
    probes: CleanableProbes
    runtime: CleanableRuntime
    mirrors: MirrorClient
    root_dir: Path
    cgroups: CleanableCgroups | None = None
    allocations: CleanableAllocations | None = None


class Housekeeping:
    """`run` does one round."""

    def __init__(self, deps: CleanupDeps) -> None:
        self._deps = deps
        self._pods_dir = str(deps.root_dir / "pods")
        self._looked_at: tuple[int, set[str]] | None = None
        self._complaints = Complaints(log, deps.clock)
        self.metrics = HousekeepingMetrics()

    async def run(self) -> None:
        """One round of LIFE-015; an error of the runtime's list ends it early."""
        deps = self._deps
        wanted = deps.pods.pods()
        working = deps.workers.sync_known_pods(wanted)
        try:
            running = await deps.runtime.get_pods(all_states=False)
        except CriCallError as error:
            self._complaints.failed(PUT_OFF, error, CriCallError)
            return
        self._complaints.over(PUT_OFF)
        at_work = [u for u, w in working.items() if w.state in AT_WORK]
        deps.probes.cleanup_pods(at_work)
        deps.statuses.remove_orphaned(uid(p) for p in deps.pods.pods_and_mirrors())
        if deps.allocations is not None:
            deps.allocations.keep_only([uid(pod) for pod in wanted])
        self._remove_orphan_directories(wanted, running)
        await self._delete_orphan_mirrors()
        created = self._create_missing(wanted, working)
        self._end_deleted(wanted, running, working)
        self._kill_unknown(running, working, created)
        if deps.cgroups is not None:
            deps.cgroups.remove_orphans([*at_work, *created], self._has_volumes)
        deps.runtime.forget_old_backoffs()

    async def _delete_orphan_mirrors(self) -> None:
        """MIRR-031, MIRR-033. The sync loop waits for this, so a server that does not answer is
        soon left alone until the next round."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._delete_mirrors_of_nobody()
        except TimeoutError:
            log.warning("orphan mirrors not deleted: %s", NO_ANSWER)

    async def _delete_mirrors_of_nobody(self) -> None:
        deps = self._deps
        for mirror in deps.pods.orphan_mirrors():
            name = full_name(mirror)
            if deps.workers.is_terminating_by_full_name(name):
                continue
            try:
                await deps.mirrors.delete_mirror(name, None)
            except ApiError as error:
                log.warning("orphan mirror %s not deleted: %s", name, error)

    def _create_missing(
        self, wanted: tuple[Pod, ...], working: Mapping[str, PodWorkerSync]
    ) -> frozenset[str]:
        """Pods that are wanted and have no worker: their UID came back (MIRR-006)."""
        if all(uid(pod) in working for pod in wanted):
            return frozenset()
        missing = [p for p in self._deps.handlers.active_pods() if uid(p) not in working]
        for pod in missing:
            self._deps.handlers.tell_worker(SyncPodType.CREATE, pod)
            self.metrics.restarted["true" if is_static(pod) else ""] += 1
        return frozenset(uid(p) for p in missing)

    def _end_deleted(
        self,
        wanted: tuple[Pod, ...],
        running: tuple[RuntimePod, ...],
        working: Mapping[str, PodWorkerSync],
    ) -> None:
        """Deleted and over before this kubelet started: only the last step is missing."""
        runs = {pod.uid for pod in running}
        for pod in wanted:
            over = is_being_deleted(pod) and has_terminal_phase(pod)
            if over and uid(pod) not in runs and uid(pod) not in working:
                self._deps.handlers.tell_worker(SyncPodType.KILL, pod)

    def _kill_unknown(
        self,
        running: tuple[RuntimePod, ...],
        working: Mapping[str, PodWorkerSync],
        created: frozenset[str],
    ) -> None:
        """What runs without a worker: no source knows it, or it was not admitted again after a
        restart (LIFE-072, LIFE-202, MIRR-009)."""
        for pod in running:
            if pod.uid in working or pod.uid in created:
                continue
            log.warning("pod %s_%s(%s) is orphaned; killing it", pod.name, pod.namespace, pod.uid)
            self.metrics.orphaned += 1
            kill = KillPodOptions(grace_override_s=RUNTIME_POD_GRACE_S)
            self._deps.workers.update_pod(
                UpdatePodOptions(SyncPodType.KILL, running_pod=pod, kill=kill)
            )

    def _has_volumes(self, pod_uid: str) -> bool:
        """Whether something is mounted below the pod's directory still (CG-043): a volume, one of
        CSI a level deeper, or a part of one (volume-subpaths). Who cannot know that leaves it."""
        try:
            return anything_mounted_below(os.path.join(self._pods_dir, pod_uid))
        except OSError as error:
            log.warning("what is mounted below %s is not known: %s", self._pods_dir, error)
            return True

    def _remove_orphan_directories(
        self, wanted: tuple[Pod, ...], running: tuple[RuntimePod, ...]
    ) -> None:
        """Directories of pods that are neither wanted, nor running, nor at work. Nothing is read
        while the directory and the pods are those of a look that found nothing else."""
        keep = {uid(pod) for pod in wanted} | {pod.uid for pod in running}
        try:
            look = (os.stat(self._pods_dir).st_mtime_ns, keep)
            if look == self._looked_at:
                return
            names = sorted(os.listdir(self._pods_dir))
        except (FileNotFoundError, NotADirectoryError):
            return
        self._looked_at = look if keep.issuperset(names) else None
        for name in names:
            if name in keep or not self._deps.workers.should_pod_be_finished(name):
                continue
            if self._has_volumes(name):  # what is mounted there is not the kubelet's to delete
                continue
            path = os.path.join(self._pods_dir, name)
            try:
                shutil.rmtree(path)
            except OSError as error:
                log.warning("orphaned pod directory %s not removed: %s", path, error)
