"""Workers of pods that no source knows any more: LIFE-039, clause by clause."""

import pytest
from pods import make_pod
from worker_world import World, running_workers

from refkubelet.cri.records import RuntimePod
from refkubelet.pod_workers.sync_status import StepError, SyncPodType, UpdatePodOptions
from refkubelet.pod_workers.transitions import WorkState

pytestmark = pytest.mark.virtual_time


async def syncing(w: World) -> None:
    """A pod whose worker has nothing to do, and that its source has just dropped."""
    w.create(make_pod(terminationGracePeriodSeconds=30))
    await w.until(lambda: w.syncer.kinds() == ["sync"] and not w.syncer.running)
    w.pods.clear()


async def test_a_syncing_orphan_ends_at_once_LIFE_039() -> None:
    async with running_workers() as w:
        await syncing(w)
        since_s = w.clock.monotonic_s()
        w.workers.sync_known_pods([])
        await w.until(lambda: "terminating" in w.syncer.kinds())
        assert w.clock.monotonic_s() - since_s < 2  # a relist; not the next time of its queue


async def test_a_syncing_orphan_has_the_grace_of_its_own_spec_LIFE_039() -> None:
    async with running_workers() as w:
        await syncing(w)
        w.workers.sync_known_pods([])
        record = w.workers.record("uid-web")
        assert record is not None
        assert record.grace_s == 30
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        graces = [s.grace_s for s in w.syncer.steps if s.kind == "terminating"]
        assert graces == [None]  # no wish was told: the runtime takes the pod's own


async def test_what_an_orphan_leaves_may_be_removed_LIFE_039_LIFE_057() -> None:
    async with running_workers() as w:
        await syncing(w)
        w.workers.sync_known_pods([])
        await w.until(lambda: w.workers.should_pod_be_finished("uid-web"))
        assert w.workers.should_pod_content_be_removed("uid-web")


async def test_a_terminating_orphan_is_tried_again_at_once_LIFE_039() -> None:
    async with running_workers() as w:
        await syncing(w)
        w.syncer.fail["terminating"] = [StepError("device busy")]
        w.kill(make_pod())
        w.pods.clear()
        await w.until(lambda: "terminating" in w.syncer.kinds() and not w.syncer.running)
        await w.clock.sleep(1.5)
        since_s = w.clock.monotonic_s()
        assert w.workers.sync_known_pods([]) == {"uid-web": WorkState.TERMINATING}
        await w.until(lambda: w.syncer.kinds().count("terminating") == 2)
        assert w.clock.monotonic_s() - since_s < 2  # its own wait is 10 s at least (LIFE-037)


async def test_an_orphan_that_the_runtime_knows_is_not_forgotten_LIFE_039() -> None:
    """It never started here, and yet something of it runs."""

    async with running_workers() as w:
        w.create(make_pod(uid="a", static=True))
        await w.until(lambda: w.syncer.kinds("a") == ["sync"])
        w.create(make_pod(uid="b", static=True))  # waits for its turn
        await w.clock.sleep(0.5)
        running = RuntimePod("b", "web", "default")
        w.workers.update_pod(UpdatePodOptions(SyncPodType.KILL, running_pod=running))
        assert "b" in w.workers.sync_known_pods(["a"])
