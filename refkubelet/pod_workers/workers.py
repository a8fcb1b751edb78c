"""The pod workers: one asyncio task per pod UID, driven by the table of `transitions.py`.

How it works. `update_pod` puts an update into the record of its UID, replacing a pending one
(LIFE-030), and wakes the task. The task takes the pending update, waits for a runtime status newer
than the end of its previous step (LIFE-038) and runs the step that belongs to the state. If that
changed the state, the next step follows at once; else the UID is enqueued in the work queue, and
the sync loop wakes it when it is due.

What must never happen: two steps of one UID at the same time; a step on a status older than the
previous step; an exception that ends the task, or fills the log; a task that outlives `stop`.
Upstream: pkg/kubelet/pod_workers.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct, field

from kubeobjects.structs import replace
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints, end_tasks
from refkubelet.model.objects import Pod
from refkubelet.model.pod import (
    has_terminal_phase,
    is_static,
)
from refkubelet.pleg.cache import PodCache
from refkubelet.pod_workers.predicates import WorkerQuestions
from refkubelet.pod_workers.requeue import StepOutcome, requeue_delay_s, start_retry_s
from refkubelet.pod_workers.step_runner import StepRunner
from refkubelet.pod_workers.sync_status import (
    PodSyncer,
    PodSyncStatus,
    StepCancelled,
    StepError,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.taken import take
from refkubelet.pod_workers.transitions import Action, WorkInput, WorkState
from refkubelet.pod_workers.updates import (
    apply_update,
    grace_of,
    merge_last_update,
    nothing_runs,
    requeue_last,
)
from refkubelet.pod_workers.work_queue import WorkQueue
from refkubelet.telemetry.pod_metrics import WorkerMetrics
from simclock import Clock, Rng

log = logging.getLogger(__name__)

DEFAULT_SYNC_FREQUENCY_S = 60.0
TERMINATED: Final = "terminated"


class WorkerSettings(Struct, frozen=True):
    """Settings of all workers."""

    clock: Clock
    rng: Rng
    sync_frequency_s: float = DEFAULT_SYNC_FREQUENCY_S
    """How often a healthy pod is synced (syncFrequency)."""
    allocated: Callable[[Pod], Pod] = lambda pod: pod
    """The pod with its allocated resources, which is what workers use (CG-060)."""
    metrics: WorkerMetrics = field(default_factory=WorkerMetrics)
    """Counts steps."""
    after_failure: Callable[[str], float] = lambda pod_uid: 0.0
    """Called with the UID when a step failed; returns by how many seconds the status for the next
    step must be newer than the end of the failed step."""


class PodWorkers(WorkerQuestions):
    """The workers of all pods; `work_queue` has the times of their next syncs."""

    def __init__(
        self,
        syncer: PodSyncer,
        cache: PodCache,
        recorder: EventRecorder,
        settings: WorkerSettings,
    ) -> None:
        super().__init__()
        self._steps = StepRunner(syncer, cache, recorder, settings.after_failure)
        self._cache = cache
        self._settings = settings
        self._random = settings.rng.stream("pod workers")
        self.work_queue = WorkQueue(settings.clock)
        self._complaints = Complaints(log, settings.clock)

    # Updates from outside

    def update_pod(self, options: UpdatePodOptions) -> None:
        """Hand an update to the worker of its pod; returns at once (LIFE-030, LIFE-031)."""
        if options.pod is None and not _is_kill(options):
            return  # LIFE-031 row 1
        if options.pod is not None:
            allocated = self._settings.allocated(options.pod)
            options = options if allocated is options.pod else replace(options, pod=allocated)
        record = self._records.get(options.uid())
        first_time = record is None
        if record is None:
            record = self._new_record(options)
        action = apply_update(record, options, first_time)
        if action is not Action.RUN:
            return
        if record.task is None:
            if options.pod is not None and is_static(options.pod):
                self._turns.arrive(record.full_name, record.uid)
            record.task = asyncio.create_task(self._work(record), name=f"pod {record.uid}")
        record.wake.set()

    def _new_record(self, options: UpdatePodOptions) -> PodSyncStatus:
        record = PodSyncStatus(options.uid(), options.full_name())
        over = options.pod is not None and has_terminal_phase(options.pod)
        if over and self._stopped_long_ago(record.uid):
            record.state = WorkState.TERMINATED  # LIFE-031 row 2
        self._records[record.uid] = record
        return record

    def _stopped_long_ago(self, pod_uid: str) -> bool:
        try:
            return nothing_runs(self._cache.get(pod_uid))
        except Exception:
            return False  # the cache has only an error; the worker will read the status

    def sync_known_pods(self, desired: Collection[str]) -> dict[str, WorkState]:
        """Compare the workers with the UIDs of the desired pods; returns the states of the workers
        that remain (LIFE-039).

        Finished workers of pods that are no longer desired, or were added again, are forgotten;
        unfinished workers of pods that are no longer desired are terminated.
        """
        self._synced = True
        remaining: dict[str, WorkState] = {}
        for record in list(self._records.values()):
            orphan = record.uid not in desired
            if (orphan or record.restart_requested) and self._forget_or_end(record, orphan):
                continue
            remaining[record.uid] = record.state
        return remaining

    def _forget_or_end(self, record: PodSyncStatus, orphan: bool) -> bool:
        """Erase a finished or never started record, terminate another one; True: erased."""
        if not record.finished:
            if not orphan:
                return False
            record.deleted = True
            if record.started or record.observed_runtime:
                self._end_orphan(record)
                return False
        self._erase(record)
        return True

    def _end_orphan(self, record: PodSyncStatus) -> None:
        row = take(record.state, WorkInput.ORPHANED)
        if record.state is WorkState.SYNCING:
            pod = record.active.pod if record.active is not None else None
            record.grace_s = grace_of(record, pod, None)
        record.state = row.to
        requeue_last(record)

    def _erase(self, record: PodSyncStatus) -> None:
        self._records.pop(record.uid, None)
        self.work_queue.forget(record.uid)
        self._complaints.over(record.uid)
        self._release(record)
        if record.task is not None and record.task is not asyncio.current_task():
            record.task.cancel()  # it waits for an update, and none will come

    def _release(self, record: PodSyncStatus) -> None:
        """Wake the waiters, and let the next static pod of that name start."""
        for waiter in record.waiters:
            waiter.set()
        record.waiters.clear()
        self._turns.leave(record.full_name, record.uid)

    # The task of one UID

    async def _work(self, record: PodSyncStatus) -> None:
        while not record.finished:
            await record.wake.wait()
            record.wake.clear()
            try:
                options = self._begin(record)
            except Exception as error:
                # Not retried at once: a lasting error would make a loop without a pause.
                self._requeue(record, self._failed(record, error))
                continue
            if options is not None:
                await self._step(record, options)

    def _begin(self, record: PodSyncStatus) -> UpdatePodOptions | None:
        """Take the pending update. None: there is none, or a static pod must wait for its turn, or
        was killed while it waited (LIFE-034). Where the kill has a status to show, its steps are
        run all the same: else the pod would be shown as before, as if it were still to start."""
        options = record.pending
        if options is None:
            return None
        if not record.started and options.pod is not None and is_static(options.pod):
            if record.termination_requested and not record.status_fns:
                record.pending = None
                self._count(options, TERMINATED)
                self._finish(record, WorkInput.NEVER_STARTED)
                return None
            ends = record.termination_requested
            if not ends and not self._turns.take(
                record.full_name, record.uid, self._may_still_start
            ):
                self.work_queue.enqueue(record.uid, start_retry_s(self._random.random))
                return None
        if not record.started and options.pod is not None:
            count = float(len(options.pod.spec.containers))
            self._settings.metrics.containers_per_pod.observe(count)
        record.started = True
        record.pending = None
        record.cancelled.clear()
        merge_last_update(record, options)
        return options

    def _may_still_start(self, pod_uid: str) -> bool:
        record = self._records.get(pod_uid)
        return record is not None and not record.termination_requested

    async def _step(self, record: PodSyncStatus, options: UpdatePodOptions) -> None:
        """Run one step, take its state change, and enqueue or wake the worker for the next. No
        error leaves this method, only the cancellation of the task itself."""
        outcome, of_state = StepOutcome(), record.state
        record.stepping = True
        try:
            step_result = await self._steps.run(record, options)
            outcome = self._settle(record, step_result)
            self._complaints.over(record.uid)
        except StepCancelled:
            self._settle(record, WorkInput.STEP_FAILED)  # the update that cancelled it is pending
            outcome = StepOutcome(error="cancelled")
        except StepError as error:
            self._settle(record, WorkInput.STEP_FAILED)
            outcome = StepOutcome(error=str(error), backoff_expiry_s=error.backoff_expiry_s)
            log.info("pod %s: step %s failed: %s", record.log_name, record.state.value, error)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            outcome = self._failed(record, RuntimeError(f"cancelled from inside: {error}"))
        except Exception as error:
            outcome = self._failed(record, error)
        finally:
            record.stepping = False
            over = of_state is WorkState.TERMINATED and record.finished
            self._count(options, TERMINATED if over else options.update_type.value)
        if record.finished:
            return
        self._requeue(record, outcome)
        if record.pending is not None:
            record.wake.set()

    def _count(self, options: UpdatePodOptions, operation: str) -> None:
        """Count a step that is over, from when the sync loop learned of its update."""
        if options.told_s is not None:
            took_s = self._settings.clock.monotonic_s() - options.told_s
            self._settings.metrics.duration.observe(took_s, operation)

    def _failed(self, record: PodSyncStatus, error: Exception) -> StepOutcome:
        """Log an unexpected error, once and then once a minute while it lasts, and settle the step
        as failed."""
        complaint = f"pod {record.log_name}: step {record.state.value} failed"
        self._complaints.failed(complaint, error, key=record.uid)
        self._settle(record, WorkInput.STEP_FAILED)
        return StepOutcome(error=repr(error))

    def _settle(self, record: PodSyncStatus, done: WorkInput) -> StepOutcome:
        """Take the state change that follows from the end of a step."""
        row = take(record.state, done)
        if row.action in (Action.STOP, Action.ERASE):
            self._finish(record, done)
            return StepOutcome()
        record.state = row.to
        if done is WorkInput.CONTAINERS_STOPPED:
            for waiter in record.waiters:
                waiter.set()
            record.waiters.clear()
        if row.action is Action.REQUEUE_LAST:
            requeue_last(record)
            return StepOutcome(phase_changed=True)
        return StepOutcome()

    def _finish(self, record: PodSyncStatus, done: WorkInput) -> None:
        row = take(record.state, done)
        record.state = row.to
        self._release(record)
        self.work_queue.forget(record.uid)
        self._complaints.over(record.uid)
        if row.action is Action.ERASE:
            self._records.pop(record.uid, None)

    def _requeue(self, record: PodSyncStatus, outcome: StepOutcome) -> None:
        delay_s = requeue_delay_s(
            outcome,
            self._settings.clock.monotonic_s(),
            self._settings.sync_frequency_s,
            self._random.random,
        )
        self.work_queue.enqueue(record.uid, delay_s)

    async def stop(self) -> None:
        """Cancel all tasks and wait for them; no container is touched."""
        await end_tasks(r.task for r in self._records.values() if r.task is not None)


def _is_cancelled() -> bool:
    """Whether the current task itself was cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_kill(options: UpdatePodOptions) -> bool:
    return options.update_type is SyncPodType.KILL
