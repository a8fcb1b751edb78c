"""Pod workers at work, in virtual time: one step at a time, the end of pods, housekeeping."""

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest
from pods import DELETED, make_pod
from worker_world import StepError, running_workers, version

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePod,
    RuntimePodStatus,
)
from refkubelet.model.objects import PodStatus
from refkubelet.pod_workers.killing import KillTimeout, PodKiller, longest_wait_s
from refkubelet.pod_workers.sync_status import KillPodOptions, SyncPodType, UpdatePodOptions
from refkubelet.pod_workers.transitions import WorkState

pytestmark = pytest.mark.virtual_time


async def test_updates_during_a_step_are_coalesced_LIFE_030() -> None:
    async with running_workers() as w:
        w.syncer.hold["sync"] = asyncio.Event()
        w.create(make_pod(meta=version("1")))
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.tell(SyncPodType.UPDATE, make_pod(meta=version("2")))
        w.tell(SyncPodType.UPDATE, make_pod(meta=version("3")))
        w.syncer.hold["sync"].set()
        await w.until(lambda: len(w.syncer.steps) == 2 and not w.syncer.running)
        assert [s.version for s in w.syncer.steps] == ["1", "3"]


async def test_an_error_before_a_step_holds_up_no_other_pod_LIFE_037() -> None:
    async with running_workers() as w:

        def fail(*_: object) -> bool:
            raise RuntimeError("surprise")

        take = w.workers._turns.take
        w.workers._turns.take = fail  # type: ignore[method-assign]
        w.create(make_pod(uid="a", static=True))
        w.create(make_pod(uid="b", name="other"))
        await w.until(lambda: w.syncer.kinds("b") == ["sync"])
        await w.clock.sleep(60)
        w.workers._turns.take = take  # type: ignore[method-assign]
        await w.until(lambda: w.syncer.kinds("a") == ["sync"], 30)


async def test_a_step_never_sees_a_status_older_than_the_previous_step_LIFE_038() -> None:
    async with running_workers() as w:
        w.create(make_pod())
        await w.until(lambda: len(w.syncer.steps) == 1 and not w.syncer.running)
        ended_s = w.syncer.steps[0].ended_s
        w.tell(SyncPodType.SYNC, make_pod())
        await w.until(lambda: len(w.syncer.steps) == 2)
        assert ended_s == pytest.approx(0.1)
        assert w.syncer.steps[1].began_s == pytest.approx(1.0)  # the next relist


async def test_a_failed_step_counts_as_a_previous_step_LIFE_038() -> None:
    """A step that failed may have created containers: the next must not act on the old status."""

    async with running_workers() as w:
        w.syncer.fail["sync"] = [StepError("half done")]
        w.create(make_pod())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.tell(SyncPodType.SYNC, make_pod())
        await w.until(lambda: len(w.syncer.steps) == 2)
        assert w.syncer.steps[1].began_s == pytest.approx(1.0)


async def test_cache_error_gives_an_event_and_a_retry_LIFE_038() -> None:
    async with running_workers() as w:
        w.cache.set(
            "uid-web", RuntimePodStatus("uid-web"), ValueError("no answer"), w.cache.stamp_s()
        )
        w.create(make_pod())
        await w.until(lambda: bool(w.recorder.events))
        assert w.recorder.events == [("FailedSync", "error determining status: no answer")]
        w.cache.set("uid-web", RuntimePodStatus("uid-web"), None, w.cache.stamp_s())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        assert 10.0 <= w.syncer.steps[0].began_s <= 16.1


async def test_kill_goes_through_all_states_LIFE_036() -> None:
    async with running_workers() as w:
        pod = make_pod(terminationGracePeriodSeconds=30)
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.kill(pod)
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]
        assert w.syncer.steps[1].grace_s == 30


@pytest.mark.parametrize("how", ["deleted", "terminal phase"])
async def test_the_object_itself_can_ask_for_the_end_LIFE_031(how: str) -> None:
    async with running_workers() as w:
        w.create(make_pod())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        deleted = how == "deleted"
        phase = "Pending" if deleted else "Failed"
        w.tell(SyncPodType.UPDATE, make_pod(phase=phase, meta=DELETED if deleted else {}))
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]
        record = w.workers.record("uid-web")
        assert record is not None
        assert record.deleted is deleted


async def test_sync_that_says_terminal_terminates_at_once_LIFE_036() -> None:
    async with running_workers() as w:
        w.syncer.terminal = True
        w.create(make_pod())
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]
        assert w.syncer.steps[1].grace_s is None  # the runtime takes the pod's own
        assert w.syncer.steps[2].began_s <= 2.1  # each state change costs one relist at most


async def test_a_finished_pod_ignores_updates_LIFE_031_row_5() -> None:
    async with running_workers() as w:
        pod = make_pod(phase="Succeeded")
        w.create(pod)
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        w.tell(SyncPodType.UPDATE, pod)
        w.tell(SyncPodType.SYNC, pod)
        await w.clock.sleep(120)
        assert w.syncer.kinds() == ["terminated"]


async def test_a_pod_found_over_needs_only_the_last_step_LIFE_031_row_2() -> None:
    async with running_workers() as w:
        w.create(make_pod(phase="Failed"))
        assert w.workers.is_pod_known_terminated("uid-web")
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["terminated"]


async def test_a_pod_found_over_whose_container_runs_is_stopped_LIFE_031_row_2() -> None:
    async with running_workers() as w:
        running = ContainerRecord("c1", "main", ContainerState.RUNNING)
        w.cache.set(
            "uid-web", RuntimePodStatus("uid-web", containers=(running,)), None, w.cache.stamp_s()
        )
        w.create(make_pod(phase="Failed"))
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["terminating", "terminated"]


async def test_grace_is_shortened_and_never_grows_LIFE_033() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.syncer.fail["terminating"] = [StepError("no"), StepError("no")]
        w.kill(pod, KillPodOptions(grace_override_s=20))
        w.kill(pod, KillPodOptions(grace_override_s=25))
        await w.until(lambda: w.syncer.kinds().count("terminating") == 1)
        w.kill(pod, KillPodOptions(grace_override_s=3))
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        record = w.workers.record("uid-web")
        assert record is not None
        assert record.grace_s == 3
        assert [s.grace_s for s in w.syncer.steps if s.kind == "terminating"][-1] == 3


async def test_a_running_stop_is_not_interrupted_LIFE_032() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.syncer.takes_s["terminating"] = 20.0
        w.kill(pod, KillPodOptions(grace_override_s=20))
        await w.until(lambda: "terminating" in w.syncer.kinds())
        w.kill(pod, KillPodOptions(grace_override_s=1))
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        stops = [s for s in w.syncer.steps if s.kind == "terminating"]
        assert len(stops) == 1
        assert stops[0].ended_s == pytest.approx(stops[0].began_s + 20.0)


async def test_a_kill_cancels_a_sync_that_waits_LIFE_032() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.syncer.hold["sync"] = asyncio.Event()
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.kill(pod)
        record = w.workers.record("uid-web")
        assert record is not None
        assert record.cancelled.is_set()
        w.syncer.hold["sync"].set()
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]


async def test_only_the_last_status_function_counts_LIFE_035() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.syncer.hold["sync"] = asyncio.Event()
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        for reason in ("Preempting", "Evicted"):

            def named(status: PodStatus, reason: str = reason) -> PodStatus:
                return msgspec.structs.replace(status, reason=reason)

            w.kill(pod, KillPodOptions(status_fn=named))
        w.syncer.hold["sync"].set()
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        status = w.syncer.steps[1].status
        assert status is not None
        assert status.reason == "Evicted"


async def test_static_pods_of_one_name_run_one_after_the_other_LIFE_034_MIRR_002() -> None:
    async with running_workers() as w:
        old, new = make_pod(uid="old", static=True), make_pod(uid="new", static=True)
        other = make_pod(uid="other", static=True, name="db")
        w.create(old)
        await w.until(lambda: w.syncer.kinds("old") == ["sync"])
        w.kill(old)
        w.create(new)
        w.create(other)
        await w.until(lambda: w.syncer.kinds("other") == ["sync"], 1.5)  # another name never waits
        await w.until(lambda: w.workers.should_pod_be_finished("old"))
        finished_s = w.clock.monotonic_s()
        assert w.syncer.kinds("new") == []
        await w.until(lambda: w.syncer.kinds("new") == ["sync"])
        assert w.syncer.steps[-1].began_s - finished_s <= 16.0


async def test_superseded_static_pods_end_without_a_step_MIRR_004() -> None:
    async with running_workers() as w:
        pods = [make_pod(uid=u, static=True) for u in ("v1", "v2", "v3")]
        w.create(pods[0])
        await w.until(lambda: w.syncer.kinds("v1") == ["sync"])
        w.kill(pods[0])
        w.create(pods[1])
        await w.clock.sleep(0.5)
        stopped = asyncio.Event()
        w.kill(pods[1], KillPodOptions(completed=stopped))
        w.create(pods[2])
        await w.until(lambda: w.syncer.kinds("v3") == ["sync"])
        assert w.syncer.kinds("v2") == []
        assert stopped.is_set()
        assert w.workers.should_pod_be_finished("v2")


async def test_a_waiting_static_pod_that_a_shutdown_ends_is_shown_as_ended_LIFE_034() -> None:
    async with running_workers() as w:
        old, new = make_pod(uid="old", static=True), make_pod(uid="new", static=True)
        next_one = make_pod(uid="next", static=True)
        w.create(old)
        await w.until(lambda: w.syncer.kinds("old") == ["sync"])
        w.syncer.hold["terminating"] = asyncio.Event()
        w.kill(old)
        w.create(new)
        await w.clock.sleep(0.5)
        w.kill(new, KillPodOptions(status_fn=lambda _: PodStatus(reason="Terminated")))
        w.create(next_one)
        await w.clock.sleep(20.0)
        w.syncer.hold["terminating"].set()
        await w.until(lambda: w.syncer.kinds("next") == ["sync"])
        assert w.syncer.kinds("new") == ["terminating", "terminated"]
        statuses = [step.status for step in w.syncer.steps if step.uid == "new"]
        assert [status.reason for status in statuses if status is not None] == ["Terminated"]


async def test_the_same_uid_comes_back_after_its_end_MIRR_006_LIFE_039() -> None:
    async with running_workers() as w:
        pod = make_pod(static=True)
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.kill(pod)
        w.create(pod)  # re-added while it terminates
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.workers.sync_known_pods(["uid-web"]) == {}
        w.create(pod)
        await w.until(lambda: len(w.syncer.steps) == 4)
        assert w.syncer.kinds() == ["sync", "terminating", "terminated", "sync"]


async def test_orphans_are_driven_to_their_end_and_forgotten_LIFE_039() -> None:
    async with running_workers() as w:
        w.create(make_pod())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        remaining = w.workers.sync_known_pods([])
        assert remaining == {"uid-web": WorkState.TERMINATING}
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]
        assert w.workers.sync_known_pods([]) == {}
        assert w.workers.record("uid-web") is None


async def test_an_orphan_s_running_sync_is_not_cancelled_LIFE_039() -> None:
    async with running_workers() as w:
        w.syncer.takes_s["sync"] = 5.0
        w.create(make_pod())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.workers.sync_known_pods([])
        record = w.workers.record("uid-web")
        assert record is not None
        assert not record.cancelled.is_set()
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]


async def test_an_orphan_that_never_started_is_forgotten_at_once_LIFE_039() -> None:
    async with running_workers() as w:
        w.create(make_pod(uid="a", static=True))
        await w.until(lambda: w.syncer.kinds("a") == ["sync"])
        w.create(make_pod(uid="b", static=True))
        await w.clock.sleep(0.5)
        assert list(w.workers.sync_known_pods(["a"])) == ["a"]
        await w.clock.sleep(60)
        assert w.syncer.kinds("b") == []


async def test_a_pod_known_to_the_runtime_only_is_killed_and_forgotten_LIFE_036() -> None:
    async with running_workers() as w:
        unknown = RuntimePod("ghost", "ghost", "default")
        w.workers.update_pod(UpdatePodOptions(SyncPodType.SYNC, running_pod=unknown))
        assert w.workers.record("ghost") is None  # LIFE-031 row 1
        w.workers.update_pod(
            UpdatePodOptions(
                SyncPodType.KILL, running_pod=unknown, kill=KillPodOptions(grace_override_s=1)
            )
        )
        await w.until(lambda: w.syncer.kinds() == ["runtime"] and not w.syncer.running)
        await w.until(lambda: w.workers.record("ghost") is None)


async def test_the_kill_of_a_runtime_pod_means_the_real_pod_LIFE_031_row_3() -> None:
    async with running_workers() as w:
        w.create(make_pod())
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        running = RuntimePod("uid-web", "web", "default")
        w.workers.update_pod(UpdatePodOptions(SyncPodType.KILL, running_pod=running))
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds() == ["sync", "terminating", "terminated"]
        assert w.workers.should_pod_content_be_removed("uid-web")  # it counts as deleted


async def test_the_kill_of_a_runtime_pod_waits_for_a_terminated_pod_LIFE_031_row_7() -> None:
    async with running_workers() as w:
        w.syncer.hold["terminated"] = asyncio.Event()
        w.create(make_pod())
        w.kill(make_pod())
        await w.until(lambda: w.syncer.kinds()[-1:] == ["terminated"])
        running = RuntimePod("uid-web", "web", "default")
        w.workers.update_pod(UpdatePodOptions(SyncPodType.KILL, running_pod=running))
        w.syncer.hold["terminated"].set()
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds().count("terminated") == 1


@pytest.mark.parametrize("kind", ["sync", "terminating", "terminated"])
async def test_an_exception_touches_only_its_own_pod_and_is_retried(kind: str) -> None:
    async with running_workers() as w:
        w.syncer.fail[kind] = [RuntimeError("a bug")]
        pod = make_pod()
        w.create(pod)
        w.create(make_pod(uid="u2", name="other"))
        await w.until(lambda: {"uid-web", "u2"} <= {s.uid for s in w.syncer.steps})
        w.kill(pod)
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.syncer.kinds("uid-web").count(kind) == (1 if kind == "sync" else 2)


async def test_a_healthy_pod_is_looked_at_every_60_to_90_s_LIFE_037() -> None:
    async with running_workers() as w:
        w.create(make_pod())
        await w.until(lambda: len(w.syncer.steps) == 4)
        times_s = [s.began_s for s in w.syncer.steps]
        assert all(60 <= b - a <= 92 for a, b in itertools.pairwise(times_s))


async def test_killing_waits_for_the_end_LIFE_040() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        await PodKiller(w.workers, w.recorder).kill(pod, None, 0)
        assert w.workers.is_pod_known_terminated("uid-web")
        assert w.workers.should_pod_content_be_removed("uid-web")
        assert w.recorder.events == []


async def test_killing_gives_up_waiting_but_not_killing_LIFE_040() -> None:
    async with running_workers() as w:
        pod = make_pod(terminationGracePeriodSeconds=30)
        w.create(pod)
        await w.until(lambda: w.syncer.kinds() == ["sync"])
        w.syncer.takes_s["terminating"] = 100.0
        began_s = w.clock.monotonic_s()
        with pytest.raises(KillTimeout, match="web_default"):
            await PodKiller(w.workers, w.recorder).kill(pod, None)
        assert w.clock.monotonic_s() - began_s == pytest.approx(45.0)
        assert w.recorder.events[0][0] == "ExceededGracePeriod"
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))


def test_the_longest_wait_for_a_kill_LIFE_040() -> None:
    assert longest_wait_s(make_pod(terminationGracePeriodSeconds=30), None) == 45.0
    assert longest_wait_s(make_pod(terminationGracePeriodSeconds=30), 4) == 10.0


async def test_a_kill_of_a_finished_pod_does_not_wait_LIFE_031_row_5() -> None:
    async with running_workers() as w:
        pod = make_pod()
        w.create(pod)
        w.kill(pod)
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        done = asyncio.Event()
        w.kill(pod, KillPodOptions(done))
        assert done.is_set()


async def test_stop_ends_every_task_and_no_pod() -> None:
    async with running_workers() as w:
        for number in range(3):
            w.create(make_pod(uid=f"u{number}", name=f"p{number}"))
        await w.until(lambda: len(w.syncer.steps) == 3)
        await w.workers.stop()
        assert "terminating" not in w.syncer.kinds()
        names = [t.get_name() for t in asyncio.all_tasks() if t.get_name().startswith("pod ")]
        assert names == []
