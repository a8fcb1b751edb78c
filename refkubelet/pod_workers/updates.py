"""How an update changes the record of its pod (LIFE-031, rows 3 to 10, in that order). No I/O.

`apply_update` changes only the record; `workers.py` carries out the action that it returns. What
must never happen: a terminating pod comes back, or its grace period grows.
Upstream: pkg/kubelet/pod_workers.go: UpdatePod, calculateEffectiveGracePeriod.
"""

from __future__ import annotations

from typing import Final

from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerState, RuntimePodStatus, SandboxState
from refkubelet.model.objects import Pod
from refkubelet.model.pod import has_terminal_phase, is_being_deleted
from refkubelet.pod_workers.sync_status import (
    KillPodOptions,
    PodSyncStatus,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.taken import take
from refkubelet.pod_workers.transitions import Action, WorkInput, WorkState

MINIMUM_GRACE_S: Final = 1


def nothing_runs(status: RuntimePodStatus) -> bool:
    """No running container and no READY sandbox (LIFE-031 row 2)."""
    containers = any(c.state is ContainerState.RUNNING for c in status.containers)
    return not containers and all(s.state is not SandboxState.READY for s in status.sandboxes)


def asks_for_end(options: UpdatePodOptions) -> bool:
    """Whether the update ends the pod: a kill, a pod that only the runtime knows, a
    deletionTimestamp, or a terminal phase (LIFE-031 row 6)."""
    pod = options.pod
    if pod is None or options.update_type is SyncPodType.KILL:
        return True
    return is_being_deleted(pod) or has_terminal_phase(pod)


def with_real_pod(record: PodSyncStatus, options: UpdatePodOptions) -> UpdatePodOptions:
    """`options` with the record's pod instead of the running pod, if the record has one: then the
    kill of a running pod ends that pod (LIFE-031 row 3)."""
    if options.pod is not None:
        return options
    record.observed_runtime = True
    for pod_options in (record.pending, record.active):
        if pod_options is not None and pod_options.pod is not None:
            return replace(options, pod=pod_options.pod, running_pod=None)
    return options


def input_of(
    record: PodSyncStatus, options: UpdatePodOptions, *, first_time: bool, from_runtime: bool
) -> WorkInput:
    """The update as an input of the table. `from_runtime`: it kills a pod of the runtime only."""
    again = options.update_type is SyncPodType.CREATE and not first_time
    if again and record.termination_requested:
        # Not the first time: a pod that ended before this kubelet started still needs its cleanup.
        return WorkInput.CREATE
    if from_runtime:
        return WorkInput.RUNTIME_END
    if asks_for_end(options):
        return WorkInput.END
    return WorkInput.CREATE if options.update_type is SyncPodType.CREATE else WorkInput.CHANGE


def apply_update(record: PodSyncStatus, options: UpdatePodOptions, first_time: bool) -> Action:
    """Make `options` the pending update of `record`, if the table says so; returns the row's
    action.

    Sets `record.cancelled` when the running step should give way (LIFE-031 row 10).
    """
    from_runtime = options.pod is None
    options = with_real_pod(record, options)
    before = record.state
    work_input = input_of(record, options, first_time=first_time, from_runtime=from_runtime)
    row = take(before, work_input)
    if row.action is Action.RESTART_LATER:
        record.restart_requested = True
    if row.action is not Action.RUN:
        if options.kill is not None and options.kill.completed is not None:
            options.kill.completed.set()  # the containers have stopped already
        return row.action
    record.state = row.to
    became_terminating = before is WorkState.SYNCING and record.state is WorkState.TERMINATING
    if became_terminating:
        note_why(record, options, from_runtime=from_runtime)
    grace_before_s = record.grace_s
    kill = _kill_options(record, options)
    told_s = _oldest(record, options)
    if kill is not options.kill or told_s is not options.told_s:
        options = replace(options, kill=kill, told_s=told_s)
    record.pending = options
    shortened = grace_before_s != 0 and record.grace_s != grace_before_s
    if became_terminating or shortened:
        record.cancelled.set()
    return row.action


def _oldest(record: PodSyncStatus, options: UpdatePodOptions) -> float | None:
    """When the sync loop learned of the oldest update that `options` replace or are."""
    before = record.pending.told_s if record.pending is not None else None
    if before is None or options.told_s is None:
        return options.told_s
    return min(before, options.told_s)


def note_why(record: PodSyncStatus, options: UpdatePodOptions, *, from_runtime: bool) -> None:
    """Record why the pod ends: the containers of deleted and of evicted pods may be removed
    (LIFE-057)."""
    if from_runtime or options.pod is None or is_being_deleted(options.pod):
        record.deleted = True
    elif not has_terminal_phase(options.pod):
        record.evicted = options.kill is not None and options.kill.evict


def _kill_options(record: PodSyncStatus, options: UpdatePodOptions) -> KillPodOptions | None:
    """The kill options of the pending update, with the effective grace period; None unless the pod
    is terminating (rows 7 to 9)."""
    kill = options.kill or KillPodOptions()
    if record.state is not WorkState.TERMINATING:
        if kill.completed is not None:
            kill.completed.set()
        return None
    if kill.completed is not None:
        record.waiters.append(kill.completed)
    if kill.status_fn is not None:
        record.status_fns.append(kill.status_fn)
    record.grace_s = grace_of(record, options.pod, kill.grace_override_s)
    return KillPodOptions(evict=kill.evict, grace_override_s=record.grace_s)


def grace_of(record: PodSyncStatus, pod: Pod | None, override_s: int | None) -> int:
    """The effective grace period of a record, in seconds (LIFE-033). `pod` is None for a pod that
    only the runtime knows."""
    deletion_s = pod.metadata.deletionGracePeriodSeconds if pod and pod.metadata else None
    spec_s = pod.spec.terminationGracePeriodSeconds if pod and pod.spec else None
    return effective_grace_period(record.grace_s, deletion_s, override_s, spec_s)


def effective_grace_period(
    stored_s: int, deletion_s: int | None, override_s: int | None, spec_s: int | None
) -> int:
    """The grace period of a terminating pod, in whole seconds; it only ever decreases (LIFE-033).

    `stored_s` is the grace period so far (0: none yet), `deletion_s` the object's
    deletionGracePeriodSeconds, `override_s` what the caller of the kill asks for, `spec_s` the
    pod's terminationGracePeriodSeconds.

    >>> effective_grace_period(0, 5, None, 30)
    5
    >>> effective_grace_period(5, 10, None, 30)
    5
    >>> effective_grace_period(0, 0, None, 30)
    1
    """
    grace_s, is_asked = stored_s, False
    for wish_s in (deletion_s, override_s):
        if wish_s is not None and (grace_s == 0 or wish_s < grace_s):
            grace_s, is_asked = wish_s, True
    if grace_s == 0 and not is_asked and spec_s is not None:
        grace_s = spec_s
    if stored_s:  # an override of 0 followed by a longer one must not lengthen it
        grace_s = min(grace_s, stored_s)
    return max(grace_s, MINIMUM_GRACE_S)


def merge_last_update(record: PodSyncStatus, options: UpdatePodOptions) -> None:
    """Make `options` the update that a retry takes: a sync with the newest pod, the last mirror,
    and all kill options so far."""
    last = record.active or UpdatePodOptions(SyncPodType.SYNC)
    pod = options.pod if last.pod is None or options.running_pod is None else last.pod
    kill = last.kill
    if options.kill is not None:
        evict = options.kill.evict or (kill is not None and kill.evict)
        kill = KillPodOptions(evict=evict, grace_override_s=options.kill.grace_override_s)
    record.active = UpdatePodOptions(
        update_type=SyncPodType.SYNC,
        pod=pod,
        mirror=options.mirror or last.mirror,
        running_pod=options.running_pod,
        kill=kill,
    )


def requeue_last(record: PodSyncStatus) -> None:
    """Make the last update pending again, unless a newer one is pending or there was none."""
    if record.pending is None:
        record.pending = record.active
    if record.pending is not None:
        record.wake.set()
