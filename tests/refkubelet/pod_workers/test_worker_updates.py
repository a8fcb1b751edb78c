"""What one update does to a pod's record, value by value (LIFE-031, LIFE-033, LIFE-057)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pods import DELETED, make_pod

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePod,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import (
    has_terminal_phase,
)
from refkubelet.pod_workers.sync_status import (
    KillPodOptions,
    PodSyncStatus,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.transitions import TRANSITIONS, Action, WorkInput, WorkState
from refkubelet.pod_workers.updates import (
    apply_update,
    asks_for_end,
    grace_of,
    input_of,
    merge_last_update,
    nothing_runs,
    requeue_last,
    with_real_pod,
)

CREATE, UPDATE = SyncPodType.CREATE, SyncPodType.UPDATE
SYNC, KILL = SyncPodType.SYNC, SyncPodType.KILL
GHOST = RuntimePod("uid-web", "web", "default")


def pod(phase: str = "", *, meta: Mapping[str, Any] | None = None) -> Pod:
    return make_pod(phase=phase, meta=meta, terminationGracePeriodSeconds=30)


def record(state: WorkState = WorkState.SYNCING, **fields: Any) -> PodSyncStatus:
    return PodSyncStatus("uid-web", "web_default", state, **fields)


def shown(status: PodStatus) -> PodStatus:
    return status


# The table, said another way: per state the inputs, the state they lead to, and what is done

MATRIX = """
sync         create change                   -> sync         RUN
sync         end runtime end                 -> terminating  RUN
sync         orphaned sync said terminal     -> terminating  REQUEUE_LAST
sync         sync ok step failed             -> sync         WAIT
terminating  create                          -> terminating  RESTART_LATER
terminating  change end runtime end          -> terminating  RUN
terminating  orphaned sync said terminal     -> terminating  REQUEUE_LAST
terminating  sync ok step failed             -> terminating  WAIT
terminating  containers stopped              -> terminated   REQUEUE_LAST
terminating  runtime pod stopped             -> finished     ERASE
terminating  never started                   -> finished     STOP
terminated   create                          -> terminated   RESTART_LATER
terminated   change end                      -> terminated   RUN
terminated   runtime end                     -> terminated   IGNORE
terminated   orphaned                        -> terminated   REQUEUE_LAST
terminated   step failed                     -> terminated   WAIT
terminated   cleanup done never started      -> finished     STOP
finished     create                          -> finished     RESTART_LATER
finished     change end runtime end          -> finished     IGNORE
"""


def rows() -> list[tuple[str, str, str, str]]:
    """State, input, next state and action, by their names in lower case with spaces."""
    found = []
    for line in MATRIX.strip().splitlines():
        left, _, right = line.partition("->")
        state, _, asked = left.strip().partition(" ")
        to, action = right.split()
        names = sorted((name_of(i) for i in WorkInput), key=len, reverse=True)
        while asked := asked.strip():
            name = next(n for n in names if asked == n or asked.startswith(f"{n} "))
            found.append((state, name, to, action))
            asked = asked[len(name) :]
    return found


def name_of(item: WorkInput | WorkState) -> str:
    return item.name.lower().replace("_", " ").replace("syncing", "sync")


def test_the_whole_table_LIFE_031_LIFE_036_LIFE_039() -> None:
    table = {
        (name_of(state), name_of(asked), name_of(row.to), row.action.name)
        for (state, asked), row in TRANSITIONS.items()
    }
    assert table == set(rows())
    assert len(rows()) == len(TRANSITIONS)


# What is asked


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_terminal_phases_LIFE_031(phase: str) -> None:
    assert has_terminal_phase(pod(phase))
    assert not has_terminal_phase(pod("Running"))
    assert not has_terminal_phase(pod())


@pytest.mark.parametrize(
    ("container", "sandbox", "nothing"),
    [
        (None, None, True),
        (ContainerState.RUNNING, None, False),
        (ContainerState.EXITED, None, True),
        (None, SandboxState.READY, False),
        (None, SandboxState.NOTREADY, True),
        (ContainerState.RUNNING, SandboxState.NOTREADY, False),
        (ContainerState.EXITED, SandboxState.READY, False),
    ],
)
def test_nothing_runs_LIFE_031_row_2(
    container: ContainerState | None, sandbox: SandboxState | None, nothing: bool
) -> None:
    containers = (ContainerRecord("c", "main", container),) if container else ()
    sandboxes = (SandboxRecord("s", sandbox),) if sandbox else ()
    status = RuntimePodStatus("uid-web", containers=containers, sandboxes=sandboxes)
    assert nothing_runs(status) is nothing


@pytest.mark.parametrize(
    ("options", "end"),
    [
        (UpdatePodOptions(SYNC, pod()), False),
        (UpdatePodOptions(CREATE, pod("Running")), False),
        (UpdatePodOptions(KILL, pod()), True),
        (UpdatePodOptions(SYNC, pod(meta=DELETED)), True),
        (UpdatePodOptions(SYNC, pod("Failed")), True),
        (UpdatePodOptions(SYNC, running_pod=GHOST), True),
    ],
)
def test_who_asks_for_the_end_LIFE_031_row_6(options: UpdatePodOptions, end: bool) -> None:
    assert asks_for_end(options) is end


@pytest.mark.parametrize(
    ("state", "options", "first", "ghost", "wanted"),
    [
        (WorkState.SYNCING, UpdatePodOptions(CREATE, pod()), True, False, WorkInput.CREATE),
        (WorkState.SYNCING, UpdatePodOptions(CREATE, pod()), False, False, WorkInput.CREATE),
        (WorkState.SYNCING, UpdatePodOptions(UPDATE, pod()), False, False, WorkInput.CHANGE),
        (WorkState.SYNCING, UpdatePodOptions(SYNC, pod()), False, False, WorkInput.CHANGE),
        (
            WorkState.SYNCING,
            UpdatePodOptions(CREATE, pod(meta=DELETED)),
            False,
            False,
            WorkInput.END,
        ),
        (
            WorkState.TERMINATING,
            UpdatePodOptions(CREATE, pod(meta=DELETED)),
            False,
            False,
            WorkInput.CREATE,
        ),
        (WorkState.TERMINATED, UpdatePodOptions(CREATE, pod("Failed")), True, False, WorkInput.END),
        (WorkState.TERMINATED, UpdatePodOptions(SYNC, pod()), False, False, WorkInput.CHANGE),
        (WorkState.SYNCING, UpdatePodOptions(KILL, pod()), False, True, WorkInput.RUNTIME_END),
    ],
)
def test_the_input_of_an_update_LIFE_031(
    state: WorkState, options: UpdatePodOptions, first: bool, ghost: bool, wanted: WorkInput
) -> None:
    assert input_of(record(state), options, first_time=first, from_runtime=ghost) is wanted


@pytest.mark.parametrize("where", ["pending", "active"])
def test_the_kill_of_a_runtime_pod_means_the_known_pod_LIFE_031_row_3(where: str) -> None:
    known = pod()
    kept = record(**{where: UpdatePodOptions(SYNC, known)})
    kill = KillPodOptions(grace_override_s=1)
    asked = UpdatePodOptions(KILL, running_pod=GHOST, kill=kill)
    assert with_real_pod(kept, asked) == UpdatePodOptions(KILL, known, kill=kill)
    assert kept.observed_runtime is True


def test_a_runtime_pod_that_nobody_knows_stays_one_LIFE_031_row_3() -> None:
    kept = record(pending=UpdatePodOptions(KILL, running_pod=GHOST))
    asked = UpdatePodOptions(KILL, running_pod=GHOST)
    assert with_real_pod(kept, asked) is asked
    assert kept.observed_runtime is True
    plain = record()
    named = UpdatePodOptions(KILL, pod())
    assert with_real_pod(plain, named) is named
    assert plain.observed_runtime is False


# What becomes of the record


@pytest.mark.parametrize(
    ("options", "gone", "evicted"),
    [
        (UpdatePodOptions(SYNC, pod(meta=DELETED)), True, False),
        (UpdatePodOptions(KILL, running_pod=GHOST), True, False),
        (UpdatePodOptions(KILL, pod(), kill=KillPodOptions(evict=True)), False, True),
        (UpdatePodOptions(KILL, pod(), kill=KillPodOptions()), False, False),
        (UpdatePodOptions(KILL, pod()), False, False),
        (UpdatePodOptions(KILL, pod(meta=DELETED), kill=KillPodOptions(evict=True)), True, False),
        (UpdatePodOptions(SYNC, pod("Failed")), False, False),
        (UpdatePodOptions(KILL, pod("Failed"), kill=KillPodOptions(evict=True)), False, False),
    ],
)
def test_why_a_pod_ends_LIFE_031_row_6_LIFE_057(
    options: UpdatePodOptions, gone: bool, evicted: bool
) -> None:
    kept = record()
    assert apply_update(kept, options, False) is Action.RUN
    assert (kept.state, kept.deleted, kept.evicted) == (WorkState.TERMINATING, gone, evicted)
    assert kept.cancelled.is_set()


def test_the_kill_of_a_runtime_pod_ends_the_pod_it_turns_out_to_be_LIFE_031_row_3() -> None:
    known = UpdatePodOptions(SYNC, pod())
    ghost = UpdatePodOptions(KILL, running_pod=GHOST)
    kept = record(active=known)
    assert apply_update(kept, ghost, False) is Action.RUN
    assert (kept.state, kept.deleted, kept.evicted) == (WorkState.TERMINATING, True, False)
    assert kept.pending == UpdatePodOptions(
        KILL, known.pod, kill=KillPodOptions(grace_override_s=30)
    )
    over = record(WorkState.TERMINATED, active=known)
    assert apply_update(over, ghost, False) is Action.IGNORE  # row 7
    assert over.pending is None


@pytest.mark.parametrize(("first", "action"), [(True, Action.RUN), (False, Action.RESTART_LATER)])
def test_a_pod_found_over_takes_its_last_step_LIFE_031_row_2(first: bool, action: Action) -> None:
    kept = record(WorkState.TERMINATED)
    assert apply_update(kept, UpdatePodOptions(CREATE, pod("Failed")), first) is action


def test_a_healthy_pods_update_replaces_the_pending_one_LIFE_030() -> None:
    kept, waiter = record(), asyncio.Event()
    newer = UpdatePodOptions(UPDATE, pod(), kill=KillPodOptions(waiter, grace_override_s=1))
    assert apply_update(kept, UpdatePodOptions(SYNC, pod()), False) is Action.RUN
    assert apply_update(kept, newer, False) is Action.RUN
    assert kept.pending == UpdatePodOptions(UPDATE, newer.pod)  # row 9: no kill options
    assert waiter.is_set()
    assert (kept.state, kept.grace_s, kept.cancelled.is_set()) == (WorkState.SYNCING, 0, False)
    assert (kept.deleted, kept.evicted, kept.waiters, kept.status_fns) == (False, False, [], [])


def test_a_terminating_pod_collects_waiters_and_status_functions_LIFE_031_row_8() -> None:
    kept, waiter = record(), asyncio.Event()
    kill = KillPodOptions(waiter, evict=True, status_fn=shown, grace_override_s=9)
    asked = UpdatePodOptions(KILL, pod(), kill=kill)
    apply_update(kept, asked, False)
    assert (kept.waiters, kept.status_fns, kept.grace_s) == ([waiter], [shown], 9)
    assert not waiter.is_set()
    worked_out = KillPodOptions(evict=True, grace_override_s=9)
    assert kept.pending == UpdatePodOptions(KILL, asked.pod, kill=worked_out)


@pytest.mark.parametrize(
    ("override_s", "grace_s", "cancelled"), [(3, 3, True), (9, 9, False), (20, 9, False)]
)
def test_a_shorter_grace_cancels_what_runs_LIFE_031_row_10_LIFE_033(
    override_s: int, grace_s: int, cancelled: bool
) -> None:
    kept = record(WorkState.TERMINATING, grace_s=9)
    kill = KillPodOptions(grace_override_s=override_s)
    apply_update(kept, UpdatePodOptions(KILL, pod(), kill=kill), False)
    assert (kept.grace_s, kept.cancelled.is_set()) == (grace_s, cancelled)
    assert (kept.deleted, kept.evicted) == (False, False)


def test_the_first_grace_of_a_pod_found_terminating_cancels_nothing_LIFE_031_row_10() -> None:
    kept = record(WorkState.TERMINATING)
    apply_update(
        kept, UpdatePodOptions(SYNC, pod(meta=DELETED | {"deletionGracePeriodSeconds": 4})), False
    )
    assert (kept.grace_s, kept.cancelled.is_set()) == (4, False)


@pytest.mark.parametrize("state", [WorkState.TERMINATING, WorkState.TERMINATED])
def test_a_create_of_an_ending_pod_asks_for_a_restart_LIFE_031_row_4(state: WorkState) -> None:
    kept, waiter = record(state), asyncio.Event()
    asked = UpdatePodOptions(CREATE, pod(), kill=KillPodOptions(waiter))
    assert apply_update(kept, asked, False) is Action.RESTART_LATER
    assert (kept.restart_requested, kept.pending, kept.state) == (True, None, state)
    assert waiter.is_set()


def test_a_finished_pod_ignores_updates_LIFE_031_row_5() -> None:
    kept, waiter = record(WorkState.FINISHED), asyncio.Event()
    asked = UpdatePodOptions(KILL, pod(), kill=KillPodOptions(waiter))
    assert apply_update(kept, asked, False) is Action.IGNORE
    assert (kept.restart_requested, kept.pending) == (False, None)
    assert waiter.is_set()
    assert apply_update(kept, UpdatePodOptions(SYNC, pod()), False) is Action.IGNORE
    without_waiter = UpdatePodOptions(KILL, pod(), kill=KillPodOptions())
    assert apply_update(kept, without_waiter, False) is Action.IGNORE


def test_a_terminated_pod_drops_kill_options_and_releases_LIFE_031_row_7() -> None:
    kept, waiter = record(WorkState.TERMINATED), asyncio.Event()
    asked = UpdatePodOptions(KILL, pod(), kill=KillPodOptions(waiter))
    assert apply_update(kept, asked, False) is Action.RUN
    assert kept.pending == UpdatePodOptions(KILL, asked.pod)
    assert (waiter.is_set(), kept.waiters, kept.cancelled.is_set()) == (True, [], False)


@pytest.mark.parametrize(
    ("of", "override_s", "wanted"),
    [
        (pod(), None, 30),
        (make_pod(), None, 1),
        (pod(meta=DELETED), None, 5),
        (pod(meta=DELETED), 3, 3),
        (pod(), 7, 7),
        (None, None, 1),
        (None, 4, 4),
    ],
)
def test_the_grace_of_a_pod_LIFE_033(of: Pod | None, override_s: int | None, wanted: int) -> None:
    assert grace_of(record(), of, override_s) == wanted
    assert grace_of(record(grace_s=1), of, override_s) == 1


# What a retry replays


def test_a_retry_replays_the_newest_of_everything_LIFE_037() -> None:
    first, second, mirror = pod(), pod("Running"), make_pod(uid="m")
    kept = record()
    merge_last_update(kept, UpdatePodOptions(CREATE, first, mirror))
    assert kept.active == UpdatePodOptions(SYNC, first, mirror)
    kill = KillPodOptions(asyncio.Event(), evict=True, status_fn=shown, grace_override_s=3)
    merge_last_update(kept, UpdatePodOptions(KILL, second, kill=kill))
    evicting = KillPodOptions(evict=True, grace_override_s=3)
    assert kept.active == UpdatePodOptions(SYNC, second, mirror, kill=evicting)
    shorter = KillPodOptions(grace_override_s=2)
    merge_last_update(kept, UpdatePodOptions(UPDATE, first, kill=shorter))
    still = KillPodOptions(evict=True, grace_override_s=2)
    assert kept.active == UpdatePodOptions(SYNC, first, mirror, kill=still)
    merge_last_update(kept, UpdatePodOptions(UPDATE, second))
    assert kept.active == UpdatePodOptions(SYNC, second, mirror, kill=still)


def test_a_kill_that_evicts_nobody_stays_one() -> None:
    kept = record()
    for grace_s in (5, 3):
        kill = KillPodOptions(grace_override_s=grace_s)
        merge_last_update(kept, UpdatePodOptions(KILL, pod(), kill=kill))
        assert kept.active is not None
        assert kept.active.kill == KillPodOptions(evict=False, grace_override_s=grace_s)


def test_a_retry_keeps_the_pod_when_only_the_runtime_tells_of_it() -> None:
    known, kept = pod(), record()
    merge_last_update(kept, UpdatePodOptions(KILL, running_pod=GHOST))
    assert kept.active == UpdatePodOptions(SYNC, running_pod=GHOST)
    kept = record(active=UpdatePodOptions(SYNC, known))
    merge_last_update(kept, UpdatePodOptions(KILL, running_pod=GHOST))
    assert kept.active == UpdatePodOptions(SYNC, known, running_pod=GHOST)


def test_nothing_is_replayed_over_what_waits_or_before_anything_ran() -> None:
    active, newer = UpdatePodOptions(SYNC, pod()), UpdatePodOptions(UPDATE, pod())
    idle, busy, new = record(active=active), record(active=active, pending=newer), record()
    for kept in (idle, busy, new):
        requeue_last(kept)
    assert (idle.pending, busy.pending, new.pending) == (active, newer, None)
    assert [kept.wake.is_set() for kept in (idle, busy, new)] == [True, True, False]
