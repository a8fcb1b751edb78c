"""Laws of pod workers under any sequence of updates, slow steps and failures (LIFE-030..040)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from pods import DELETED, make_pod
from worker_world import StepError, World, running_workers, version

from refkubelet.pod_workers.sync_status import KillPodOptions, PodSyncStatus, SyncPodType
from refkubelet.pod_workers.transitions import WorkState
from simclock import run_virtual

ORDER = list(WorkState)
STEPS = ["sync", "terminating", "terminated"]
RELIST_S = 1.0
UIDS = ["a", "b", "c"]  # b and c are two versions of one static pod


@dataclass
class Watch:
    """What was seen of the records: the states of each, and the waiters for an end."""

    states: dict[int, list[WorkState]] = field(default_factory=dict)
    records: list[PodSyncStatus] = field(default_factory=list)  # kept, so that no id comes again
    waiters: list[asyncio.Event] = field(default_factory=list)

    def look(self, w: World) -> None:
        for pod_uid in UIDS:
            record = w.workers.record(pod_uid)
            if record is None:
                continue
            if all(record is not known for known in self.records):
                self.records.append(record)
            self.states.setdefault(id(record), []).append(record.state)


OPERATIONS = st.tuples(
    st.sampled_from(
        ["create", "update", "sync", "delete", "kill", "evict", "housekeeping", "wait"]
    ),
    st.sampled_from(UIDS),
    st.integers(0, 40),
)
FAILURES = st.fixed_dictionaries({kind: st.lists(st.booleans(), max_size=3) for kind in STEPS})


async def play(w: World, watch: Watch, what: str, pod_uid: str, number: int) -> None:
    """One operation; `number` is a grace period, or tenths of seconds to wait."""
    static, name = pod_uid != "a", "web" if pod_uid == "a" else "static"
    pod = make_pod(uid=pod_uid, name=name, static=static, meta=version(str(number)))
    if what == "wait":
        await w.clock.sleep(number / 10)
    elif what == "housekeeping":
        w.workers.sync_known_pods([u for u in w.pods if u != pod_uid])
    elif what in ("kill", "evict"):
        done = asyncio.Event()
        watch.waiters.append(done)
        w.kill(pod, KillPodOptions(done, what == "evict", grace_override_s=number))
    elif what == "delete":
        pod = make_pod(
            uid=pod_uid,
            name=name,
            static=static,
            meta=DELETED | {"deletionGracePeriodSeconds": number},
        )
        w.tell(SyncPodType.UPDATE, pod)
    else:
        w.tell(SyncPodType(what), pod)


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATIONS, max_size=25), FAILURES, st.sampled_from([0.0, 0.1, 2.5]))
def test_workers_only_go_forward_and_every_waiter_is_told(
    operations: list[tuple[str, str, int]], failures: dict[str, list[bool]], takes_s: float
) -> None:
    run_virtual(lambda: each_waiter_is_told(operations, failures, takes_s))


async def each_waiter_is_told(
    operations: list[tuple[str, str, int]], failures: dict[str, list[bool]], takes_s: float
) -> None:
    async with running_workers() as w:
        watch = Watch()
        w.syncer.takes_s = dict.fromkeys(STEPS, takes_s)
        for kind, fails in failures.items():
            w.syncer.fail[kind] = [StepError("no") if f else StepError("no", 0.0) for f in fails]
        for what, pod_uid, number in operations:
            await play(w, watch, what, pod_uid, number)
            watch.look(w)
        for pod_uid in list(w.pods):
            await play(w, watch, "kill", pod_uid, 1)
        await w.until(lambda: all(w.workers.should_pod_be_finished(u) or _gone(w, u) for u in UIDS))
        watch.look(w)
        for states in watch.states.values():
            assert [ORDER.index(s) for s in states] == sorted(ORDER.index(s) for s in states)
        assert all(waiter.is_set() for waiter in watch.waiters)
        _check_graces(w)


NEIGHBOURS = st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1e6]), st.booleans()), max_size=6)


@settings(max_examples=40, deadline=None)
@given(NEIGHBOURS, st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_no_pod_waits_for_another_that_is_slow_or_fails(
    neighbours: list[tuple[float, bool]], pauses: list[int]
) -> None:
    """Whatever the others do, a pod is synced within one relist of each update."""
    run_virtual(lambda: each_update_is_synced(neighbours, pauses))


async def each_update_is_synced(neighbours: list[tuple[float, bool]], pauses: list[int]) -> None:
    async with running_workers() as w:
        for number, (takes_s, fails) in enumerate(neighbours):
            w.syncer.slow[f"n{number}"] = takes_s
            if fails:
                w.syncer.broken.add(f"n{number}")
            w.create(make_pod(uid=f"n{number}", name=f"n{number}"))
        for number, pause in enumerate(pauses):
            await w.clock.sleep(pause / 10)
            told_s = w.clock.monotonic_s()
            w.tell(SyncPodType.UPDATE, make_pod(uid="free", name="free", meta=version(str(number))))

            def synced(number: int = number) -> bool:
                mine = [s for s in w.syncer.steps if s.uid == "free"]
                return any(s.version == str(number) and s.ended_s is not None for s in mine)

            await w.until(synced, 10)
            assert w.clock.monotonic_s() - told_s <= 0.1 + RELIST_S + 0.02


def _gone(w: World, pod_uid: str) -> bool:
    return w.workers.record(pod_uid) is None


def _check_graces(w: World) -> None:
    """LIFE-033: from one try to stop a pod to the next the grace never grows."""
    for pod_uid in UIDS:
        steps = [s for s in w.syncer.steps if s.uid == pod_uid]
        for before, after in pairwise(steps):
            again = before.kind == after.kind == "terminating"
            if again and before.grace_s is not None and after.grace_s is not None:
                assert after.grace_s <= before.grace_s
