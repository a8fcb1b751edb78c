"""Runs the step that belongs to a worker's state, with a status of the pod that is new enough.

What must never happen: a step on a status older than the end of the previous step (LIFE-038).
Upstream: pkg/kubelet/pod_workers.go: podWorkerLoop.
"""

from __future__ import annotations

from collections.abc import Callable

from refkubelet.cri.records import RuntimePodStatus
from refkubelet.events.recorder import EventRecorder
from refkubelet.model.objects import Pod
from refkubelet.pleg.cache import PodCache
from refkubelet.pod_workers.sync_status import (
    PodSyncer,
    PodSyncStatus,
    StepCancelled,
    StepContext,
    StepError,
    UpdatePodOptions,
)
from refkubelet.pod_workers.transitions import WorkInput, WorkState


class StepRunner:
    """`after_failure`: see `WorkerSettings`."""

    def __init__(
        self,
        syncer: PodSyncer,
        cache: PodCache,
        recorder: EventRecorder,
        after_failure: Callable[[str], float],
    ) -> None:
        self._syncer = syncer
        self._cache = cache
        self._recorder = recorder
        self._after_failure = after_failure

    async def run(self, record: PodSyncStatus, options: UpdatePodOptions) -> WorkInput:
        """Run the step of the record's state; the input for the table of `transitions.py`. Raises
        what the step raises: `StepError`, `StepCancelled` or an unexpected error."""
        state = record.state
        if options.running_pod is not None and options.pod is None:
            await self._syncer.sync_terminating_runtime_pod(options.running_pod)
            return WorkInput.RUNTIME_POD_STOPPED
        if options.pod is None:
            raise ValueError(f"worker {record.uid} has neither a pod nor a running pod")
        status = await self._newer_status(record, options.pod)
        delay_s = 0.0
        try:
            return await self._pod_step(state, record, options, status)
        except StepCancelled:
            raise
        except Exception:
            delay_s = self._after_failure(record.uid)
            raise
        finally:  # a failed step may have changed something too
            record.last_sync_s = self._cache.stamp_s() + delay_s

    async def _pod_step(
        self,
        state: WorkState,
        record: PodSyncStatus,
        options: UpdatePodOptions,
        status: RuntimePodStatus,
    ) -> WorkInput:
        """Run the step of `state` for a pod with a spec."""
        pod = options.pod
        assert pod is not None
        if state is WorkState.TERMINATED:
            await self._syncer.sync_terminated_pod(pod, status)
            return WorkInput.CLEANUP_DONE
        if state is WorkState.TERMINATING:
            grace_s = options.kill.grace_override_s if options.kill is not None else None
            status_fn = record.status_fns[-1] if record.status_fns else None  # LIFE-035
            await self._syncer.sync_terminating_pod(pod, status, grace_s, status_fn)
            return WorkInput.CONTAINERS_STOPPED
        context = StepContext(options.update_type, record.cancelled)
        terminal = await self._syncer.sync_pod(context, pod, options.mirror, status)
        return WorkInput.SYNC_SAID_TERMINAL if terminal else WorkInput.SYNC_OK

    async def _newer_status(self, record: PodSyncStatus, pod: Pod) -> RuntimePodStatus:
        try:
            return await self._cache.get_newer_than(record.uid, record.last_sync_s)
        except Exception as error:
            message = f"error determining status: {error}"
            self._recorder.pod_event(pod, "Warning", "FailedSync", message)
            raise StepError(message) from error
