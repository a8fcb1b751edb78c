"""Which pods count at admission, however it is found out (LIFE-012)."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from pods import make_pod

from refkubelet.model.objects import PodStatus
from refkubelet.model.pod import uid
from refkubelet.pod_workers.predicates import WorkerQuestions
from refkubelet.pod_workers.sync_status import PodSyncStatus
from refkubelet.pod_workers.transitions import WorkState
from refkubelet.pods.manager import PodManager
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.new_pods import NewPods

PHASES = st.sampled_from(["", "Running", "Succeeded", "Failed"])
PODS = st.tuples(st.sampled_from([None, *WorkState]), PHASES, PHASES, st.booleans())


@given(st.lists(st.lists(PODS, max_size=4), max_size=3))
def test_a_pod_that_ends_counts_until_its_containers_have_stopped_LIFE_012(
    rounds: list[list[tuple[WorkState | None, str, str, bool]]],
) -> None:
    """Of a state of its worker, a phase of its object, a phase of its cached status, and whether it
    is wanted again under its UID: then it keeps its place when its containers have stopped."""
    manager, workers, cached = PodManager(), WorkerQuestions(), cast(Any, {})
    statuses = StatusManager.__new__(StatusManager)
    statuses._deps, statuses._statuses = cast(Any, Pods(manager)), cached
    new_pods = NewPods(
        handlers=(),
        allocations=cast(Any, None),
        pods=manager,
        workers=cast(Any, workers),
        statuses=statuses,
        recorder=cast(Any, None),
    )
    for rows in rounds:
        wanted = []
        for number, (state, phase, shown, again) in enumerate(rows):
            pod = make_pod(name=f"p{number}", phase=phase)
            manager.update(pod)
            workers._records.pop(uid(pod), None)
            if state is not None:
                made = PodSyncStatus(uid(pod), "", state, restart_requested=again)
                workers._records[uid(pod)] = made
            cached[uid(pod)] = Entry(PodStatus(phase=shown or None))
            over = bool({phase, shown} & {"Succeeded", "Failed"})
            stopped = state in (WorkState.TERMINATED, WorkState.FINISHED)
            by_phase = state in (None, WorkState.SYNCING) or (stopped and again)
            if not (over if by_phase else stopped):
                wanted.append(pod)
        listed = {uid(pod) for pod in manager.pods()}
        known = {uid(pod) for pod in new_pods.active_pods()}
        assert known & {f"uid-p{n}" for n in range(len(rows))} == {uid(pod) for pod in wanted}
        assert known <= listed


class Pods:
    """What a status manager asks of pods."""

    def __init__(self, pods: PodManager) -> None:
        self.pods = pods


class Entry:
    """The entry of a pod in the cache of statuses."""

    def __init__(self, status: PodStatus) -> None:
        self.status = status
