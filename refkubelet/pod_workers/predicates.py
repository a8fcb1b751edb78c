"""The questions that the rest of the kubelet asks about a pod's worker (LIFE-051..057). Pure.

For a UID without a worker the answer depends on whether housekeeping has compared the workers with
the desired pods at least once (`synced`).
"""

from __future__ import annotations

from refkubelet.pod_workers.start_order import StaticTurns
from refkubelet.pod_workers.sync_status import PodSyncStatus


class WorkerQuestions:
    """The records of all workers, and questions asked by UID."""

    def __init__(self) -> None:
        self._records: dict[str, PodSyncStatus] = {}
        self._turns = StaticTurns()
        self._synced = False

    def record(self, pod_uid: str) -> PodSyncStatus | None:
        """The record of a UID, for reading only."""
        return self._records.get(pod_uid)

    def records(self) -> tuple[PodSyncStatus, ...]:
        """All records, for reading only."""
        return tuple(self._records.values())

    def any_terminates(self) -> bool:
        """Whether any pod at all was asked to terminate."""
        return any(record.termination_requested for record in self._records.values())

    def is_pod_known_terminated(self, pod_uid: str) -> bool:
        """Whether the pod's containers are known to have stopped (LIFE-051)."""
        record = self.record(pod_uid)
        return record is not None and record.terminated

    def could_have_running_containers(self, pod_uid: str) -> bool:
        """Whether a container of the pod may still run (LIFE-052)."""
        record = self.record(pod_uid)
        return not self._synced if record is None else not record.terminated

    def should_pod_be_finished(self, pod_uid: str) -> bool:
        """Whether nothing is left to do for the pod, cleanup included (LIFE-053)."""
        record = self.record(pod_uid)
        return self._synced if record is None else record.finished

    def is_pod_termination_requested(self, pod_uid: str) -> bool:
        """Whether the pod was asked to terminate (LIFE-054)."""
        record = self.record(pod_uid)
        return record is not None and record.termination_requested

    def should_pod_runtime_be_removed(self, pod_uid: str) -> bool:
        """Whether the pod's volumes may be unmounted (LIFE-056)."""
        record = self.record(pod_uid)
        return self._synced if record is None else record.terminated

    def should_pod_content_be_removed(self, pod_uid: str) -> bool:
        """Whether the pod's dead containers and sandboxes may be removed (LIFE-057)."""
        record = self.record(pod_uid)
        if record is None:
            return self._synced
        return record.evicted or (record.deleted and record.terminated)

    def is_finished(self, pod_uid: str) -> bool:
        """Whether the worker of the pod has done all there is to do, cleanup included."""
        record = self.record(pod_uid)
        return record is not None and record.finished

    def is_stepping(self, pod_uid: str) -> bool:
        """Whether a sync of the pod is under way, and nothing has asked for its end."""
        record = self.record(pod_uid)
        return record is not None and record.stepping and not record.termination_requested

    def is_terminating_by_full_name(self, full_name: str) -> bool:
        """Whether the static pod of that full name has started and is still terminating; until
        then its mirror is not deleted (MIRR-031)."""
        record = self.record(self._turns.started(full_name) or "")
        return record is not None and record.termination_requested and not record.terminated
