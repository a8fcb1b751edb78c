"""What the rest of the kubelet may ask about a worker (LIFE-051..057). Pure.

Every question has two answers: for a known record, and for an unknown UID, where it depends
on whether housekeeping has compared workers and config once (`synced`).
"""

from __future__ import annotations

from refkubelet.pod_workers.start_order import StaticTurns
from refkubelet.pod_workers.sync_status import PodSyncStatus


def known_terminated(record: PodSyncStatus | None) -> bool:
    """LIFE-051: its containers are known to have stopped."""
    return record is not None and record.terminated


def could_have_running_containers(record: PodSyncStatus | None, synced: bool) -> bool:
    """LIFE-052: something of it may still run."""
    return not synced if record is None else not record.terminated


def should_be_finished(record: PodSyncStatus | None, synced: bool) -> bool:
    """LIFE-053: nothing at all is left to do for it."""
    return synced if record is None else record.finished


def termination_requested(record: PodSyncStatus | None) -> bool:
    """LIFE-054: it was asked to end."""
    return record is not None and record.termination_requested


def runtime_should_be_removed(record: PodSyncStatus | None, synced: bool) -> bool:
    """LIFE-056: volumes may be unmounted."""
    return synced if record is None else record.terminated


def content_should_be_removed(record: PodSyncStatus | None, synced: bool) -> bool:
    """LIFE-057: dead containers and sandboxes may be removed."""
    if record is None:
        return synced
    return record.evicted or (record.deleted and record.terminated)


class WorkerQuestions:
    """The records of all workers, and the questions above asked by UID."""

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

    def is_pod_known_terminated(self, pod_uid: str) -> bool:
        return known_terminated(self.record(pod_uid))

    def could_have_running_containers(self, pod_uid: str) -> bool:
        return could_have_running_containers(self.record(pod_uid), self._synced)

    def should_pod_be_finished(self, pod_uid: str) -> bool:
        return should_be_finished(self.record(pod_uid), self._synced)

    def is_pod_termination_requested(self, pod_uid: str) -> bool:
        return termination_requested(self.record(pod_uid))

    def should_pod_runtime_be_removed(self, pod_uid: str) -> bool:
        return runtime_should_be_removed(self.record(pod_uid), self._synced)

    def should_pod_content_be_removed(self, pod_uid: str) -> bool:
        return content_should_be_removed(self.record(pod_uid), self._synced)

    def is_terminating_by_full_name(self, full_name: str) -> bool:
        """Whether the static pod of that full name has started and still terminates: its mirror
        stays so long (MIRR-031)."""
        record = self.record(self._turns.started(full_name) or "")
        return record is not None and record.termination_requested and not record.terminated
