"""The life of a pod worker as a table: syncing, terminating, terminated, finished; never back.

Pure. Only this table decides about states; `workers.py` looks rows up and carries out their
actions.
What must never happen: a row that leads back to an earlier state.
Rules: LIFE-031, LIFE-034, LIFE-036, LIFE-039. Upstream: pkg/kubelet/pod_workers.go.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct


class WorkState(Enum):
    """The state of a worker (upstream: PodWorkerState, and finished)."""

    SYNCING = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FINISHED = "finished"


class WorkInput(Enum):
    """What can happen to a worker: updates from outside, results of its own steps."""

    CREATE = "create"  # an update that adds the pod and does not end it
    CHANGE = "change"  # an update or sync that does not end the pod
    END = "end"  # any update that ends the pod: see `asks_for_end`
    RUNTIME_END = "runtime end"  # the kill of a pod that only the runtime knows
    ORPHANED = "orphaned"  # housekeeping found the UID in no source any more
    SYNC_OK = "sync ok"
    SYNC_SAID_TERMINAL = "sync said terminal"
    STEP_FAILED = "step failed"
    CONTAINERS_STOPPED = "containers stopped"
    CLEANUP_DONE = "cleanup done"
    RUNTIME_POD_STOPPED = "runtime pod stopped"
    NEVER_STARTED = "never started"  # a static pod that was killed while it waited for its turn


class Action(Enum):
    """What `workers.py` does beside changing the state."""

    RUN = "make it the pending update and wake the worker"
    IGNORE = "drop the update"
    RESTART_LATER = "remember that the UID was wanted again"
    REQUEUE_LAST = "run the last update again, as a step of the new state"
    WAIT = "wait for the work queue or the next update"
    STOP = "end the worker's task"
    ERASE = "end the worker's task and forget the UID"


class Transition(Struct, frozen=True):
    """One row of the table: the next state, what to do, and the rule."""

    to: WorkState
    action: Action
    rule: str


class IllegalTransition(RuntimeError):
    """A pair of state and input that is not in the table: a bug in this program."""


S, T, D, F = (
    WorkState.SYNCING,
    WorkState.TERMINATING,
    WorkState.TERMINATED,
    WorkState.FINISHED,
)

TRANSITIONS: Final[dict[tuple[WorkState, WorkInput], Transition]] = {
    (S, WorkInput.CREATE): Transition(S, Action.RUN, "LIFE-031 row 10"),
    (S, WorkInput.CHANGE): Transition(S, Action.RUN, "LIFE-031 row 10"),
    (S, WorkInput.END): Transition(T, Action.RUN, "LIFE-031 row 6"),
    (S, WorkInput.RUNTIME_END): Transition(T, Action.RUN, "LIFE-031 row 6"),
    (S, WorkInput.ORPHANED): Transition(T, Action.REQUEUE_LAST, "LIFE-039"),
    (S, WorkInput.SYNC_OK): Transition(S, Action.WAIT, "LIFE-037"),
    (S, WorkInput.SYNC_SAID_TERMINAL): Transition(T, Action.REQUEUE_LAST, "LIFE-036"),
    (S, WorkInput.STEP_FAILED): Transition(S, Action.WAIT, "LIFE-037"),
    (T, WorkInput.CREATE): Transition(T, Action.RESTART_LATER, "LIFE-031 row 4"),
    (T, WorkInput.CHANGE): Transition(T, Action.RUN, "LIFE-031 row 8"),
    (T, WorkInput.END): Transition(T, Action.RUN, "LIFE-031 row 8"),
    (T, WorkInput.RUNTIME_END): Transition(T, Action.RUN, "LIFE-031 row 8"),
    (T, WorkInput.ORPHANED): Transition(T, Action.REQUEUE_LAST, "LIFE-039"),
    # A termination may begin while a SyncPod runs; how that SyncPod ends changes nothing then.
    (T, WorkInput.SYNC_OK): Transition(T, Action.WAIT, "LIFE-031 row 10"),
    (T, WorkInput.SYNC_SAID_TERMINAL): Transition(T, Action.REQUEUE_LAST, "LIFE-036"),
    (T, WorkInput.STEP_FAILED): Transition(T, Action.WAIT, "LIFE-037"),
    (T, WorkInput.CONTAINERS_STOPPED): Transition(D, Action.REQUEUE_LAST, "LIFE-036"),
    (T, WorkInput.RUNTIME_POD_STOPPED): Transition(F, Action.ERASE, "LIFE-036"),
    (T, WorkInput.NEVER_STARTED): Transition(F, Action.STOP, "LIFE-034"),
    (D, WorkInput.CREATE): Transition(D, Action.RESTART_LATER, "LIFE-031 row 4"),
    (D, WorkInput.CHANGE): Transition(D, Action.RUN, "LIFE-031 row 7"),
    (D, WorkInput.END): Transition(D, Action.RUN, "LIFE-031 row 7"),
    (D, WorkInput.RUNTIME_END): Transition(D, Action.IGNORE, "LIFE-031 row 7"),
    (D, WorkInput.ORPHANED): Transition(D, Action.REQUEUE_LAST, "LIFE-039"),
    (D, WorkInput.STEP_FAILED): Transition(D, Action.WAIT, "LIFE-037"),
    (D, WorkInput.CLEANUP_DONE): Transition(F, Action.STOP, "LIFE-036"),
    (D, WorkInput.NEVER_STARTED): Transition(F, Action.STOP, "LIFE-034"),
    (F, WorkInput.CREATE): Transition(F, Action.RESTART_LATER, "LIFE-031 row 4"),
    (F, WorkInput.CHANGE): Transition(F, Action.IGNORE, "LIFE-031 row 5"),
    (F, WorkInput.END): Transition(F, Action.IGNORE, "LIFE-031 row 5"),
    (F, WorkInput.RUNTIME_END): Transition(F, Action.IGNORE, "LIFE-031 row 5"),
}


def transition(state: WorkState, work_input: WorkInput) -> Transition:
    """The row of a state and an input. Raises `IllegalTransition` if there is none."""
    try:
        return TRANSITIONS[state, work_input]
    except KeyError:
        raise IllegalTransition(
            f"a pod worker that is {state.value} cannot take the input {work_input.value!r}"
        ) from None
