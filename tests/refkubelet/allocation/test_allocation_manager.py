"""The queue of pending resizes: which is tried when, and what follows (CG-060..063)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from loops import virtual_loop
from pods import container, make_pod

from refkubelet.admission.admit_handler import Rejection
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.manager import AllocationDeps, AllocationManager
from refkubelet.allocation.state import ALLOCATED_FILE, ResourceState
from refkubelet.allocation.triggers import ResizeTriggers
from refkubelet.cri.records import RuntimePodStatus
from refkubelet.kuberuntime.results import PodSyncResult, SyncAction, SyncError
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.pod_workers.resize_reports import ResizeReports

pytestmark = pytest.mark.virtual_time


class World:
    """A manager, and all it is told of; a pod is admitted while it asks for at most `room` CPUs, if
    there is no other `answer`."""

    def __init__(self, root: Path) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.pods: dict[str, Pod] = {}
        self.asked: list[tuple[float, str]] = []
        self.synced: list[str] = []
        self.events: list[str] = []
        self.ready = True
        self.room = 3
        self.answer: Rejection | Exception | None = None
        self.conditions = ResizeConditions(loop.clock)
        self.manager = AllocationManager(
            ResourceState(root / ALLOCATED_FILE),
            AllocationDeps(
                clock=loop.clock,
                recorder=self,
                conditions=self.conditions,
                pod=self.pods.get,
                admit=self.admit,
                sync=lambda pod: self.synced.append(uid(pod)),
                sources_ready=lambda: self.ready,
            ),
        )
        self.triggers = ResizeTriggers(self.manager, self.conditions)

    async def admit(self, pod: Pod) -> Rejection | None:
        self.asked.append((self.clock.monotonic_s(), uid(pod)))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        if cpus(pod) > self.room:
            return Rejection("OutOfcpu", f"{cpus(pod)} of {self.room}")
        self.manager.allocate(pod)
        return None

    def pod_event(self, pod: Pod, event_type: Any, reason: str, message: str, **more: Any) -> None:
        self.events.append(f"{event_type} {reason} {uid(pod)}")

    def node_event(self, event_type: Any, reason: str, message: str) -> None:
        raise AssertionError("nothing here concerns the node")

    def have(self, pod_uid: str, amount: int, **fields: Any) -> Pod:
        """A pod with so many CPUs allocated."""
        pod = self.pods[pod_uid] = web(pod_uid, amount, **fields)
        self.manager.allocate(pod)
        return pod

    async def edit(self, pod_uid: str, amount: int, **fields: Any) -> None:
        old = self.pods[pod_uid]
        self.pods[pod_uid] = web(pod_uid, amount, generation=2, **fields)
        await self.triggers.updated(old, self.pods[pod_uid])

    def reasons(self, pod_uid: str) -> list[str | None]:
        return [c.reason for c in self.conditions.of(pod_uid)]


def web(pod_uid: str, amount: int, *, generation: int = 1, **fields: Any) -> Pod:
    """A pod that asks for so many CPUs."""
    main = container(cpu=str(amount))
    return make_pod(main, uid=pod_uid, meta={"generation": generation}, **fields)


def cpus(pod: Pod) -> int:
    resources = pod.spec.containers[0].resources
    assert resources is not None
    return int((resources.requests or {})["cpu"])


async def test_an_edited_spec_is_asked_about_at_once_and_allocated_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.have("u-1", 1)
    await world.edit("u-1", 3)
    assert world.asked == [(0.0, "u-1")]
    assert cpus(world.manager.allocated(world.pods["u-1"])) == 3
    assert world.events == ["Normal ResizeStarted u-1"]
    assert [c.type for c in world.conditions.of("u-1")] == ["PodResizeInProgress"]
    assert world.synced == ["u-1"]
    assert not world.manager.has_pending


async def test_until_it_is_admitted_workers_see_what_was_allocated_CG_060(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.have("u-1", 1)
    await world.edit("u-1", 9)
    allocated = world.manager.allocated(world.pods["u-1"])
    assert cpus(allocated) == 1
    assert world.manager.allocated(world.pods["u-1"]) is allocated  # computed once
    assert world.events == ["Warning ResizeDeferred u-1"]
    assert world.reasons("u-1") == ["Deferred"]
    stranger = web("u-9", 5)
    assert world.manager.allocated(stranger) is stranger


async def test_all_pods_are_the_same_object_until_something_is_allocated_CG_060(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    for number in range(3):
        world.have(f"u-{number}", 1)
        world.pods[f"u-{number}"] = web(f"u-{number}", 9)
    pods, manager = tuple(world.pods.values()), world.manager
    seen = manager.all_allocated(pods)
    assert [cpus(pod) for pod in seen] == [1, 1, 1]
    assert manager.all_allocated(pods) is seen
    manager.allocate(web("u-1", 2))
    assert [cpus(pod) for pod in manager.all_allocated(pods)] == [1, 2, 1]
    manager.forget("u-0")
    assert [cpus(pod) for pod in manager.all_allocated(pods)] == [9, 2, 1]
    manager.keep_only({"u-2"})
    assert [cpus(pod) for pod in manager.all_allocated(pods)] == [9, 9, 1]
    assert [cpus(pod) for pod in manager.all_allocated(pods[2:])] == [1]


async def test_a_deferred_resize_is_tried_every_three_minutes_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    task = asyncio.create_task(world.manager.run())
    await world.clock.sleep(1000)
    world.have("u-1", 1)
    await world.edit("u-1", 9)
    await world.clock.sleep(400)
    assert world.asked == [(1000.0, "u-1"), (1180.0, "u-1"), (1360.0, "u-1")]
    world.room = 9
    await world.clock.sleep(200)
    assert world.asked[-1] == (1540.0, "u-1")
    await world.clock.sleep(1000)
    assert len(world.asked) == 4
    assert world.events == ["Warning ResizeDeferred u-1", "Normal ResizeStarted u-1"]
    task.cancel()


async def test_without_pending_resizes_the_manager_sleeps_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(world.manager.run())
    await asyncio.sleep(0)
    assert not loop._scheduled  # type: ignore[attr-defined]
    task.cancel()


async def test_nothing_is_decided_before_every_source_was_seen_CG_061(tmp_path: Path) -> None:
    """What an earlier kubelet left waits 30 s then."""

    world = World(tmp_path)
    task = asyncio.create_task(world.manager.run())
    world.have("u-1", 1)
    world.pods["u-1"] = web("u-1", 2, generation=2)
    world.ready = False
    world.triggers.admitted(world.pods["u-1"])
    await world.triggers.added([world.pods["u-1"]])
    world.ready = True
    await world.clock.sleep(60)
    assert world.asked == [(30.0, "u-1")]
    task.cancel()


async def test_a_condition_of_an_earlier_kubelet_stays_only_if_it_is_true_LIFE_186(
    tmp_path: Path,
) -> None:
    told = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}

    world = World(tmp_path)
    for pod_uid, amount in (("u-1", 9), ("u-2", 1)):
        world.have(pod_uid, 1)
        world.pods[pod_uid] = web(pod_uid, amount, status={"conditions": [told]})
        world.triggers.admitted(world.pods[pod_uid])
    assert world.reasons("u-1") == ["Deferred"]
    assert world.reasons("u-2") == []
    await world.triggers.added(world.pods.values())
    assert [uid for _, uid in world.asked] == ["u-1"]
    assert world.events == ["Warning ResizeDeferred u-1"]  # of another generation


async def test_what_can_never_be_is_not_tried_again_CG_062(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.have("u-1", 1)
    world.answer = Rejection("Infeasible", "no")
    await world.edit("u-1", 2)
    assert world.events == ["Warning ResizeInfeasible u-1"]
    assert world.reasons("u-1") == ["Infeasible"]
    assert not world.manager.has_pending


async def test_room_goes_by_the_order_of_the_queue_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number, priority in ((1, 0), (2, 7), (3, 3)):
        world.have(f"u-{number}", 2, priority=priority)
    world.room = 0
    for number, priority in ((1, 0), (2, 7), (3, 3)):
        await world.edit(f"u-{number}", 4, priority=priority)
    world.asked.clear()
    await world.edit("u-1", 1)  # takes less than it has
    assert [uid for _, uid in world.asked] == ["u-2", "u-3", "u-1"]
    world.asked.clear()
    world.have("u-4", 2)
    await world.edit("u-4", 1)
    assert next(uid for _, uid in world.asked if uid in ("u-4", "u-2")) == "u-4"


async def test_a_resize_that_is_taken_back_is_no_longer_pending_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.have("u-1", 1)
    await world.edit("u-1", 9)
    await world.edit("u-1", 1)
    assert world.reasons("u-1") == []
    asked = len(world.asked)
    await world.triggers.room_was_made()
    assert len(world.asked) == asked
    assert not world.manager.has_pending


async def test_which_changes_of_other_pods_make_room_CG_061(tmp_path: Path) -> None:
    def over(pod: Pod) -> bool:
        return pod.status is not None and pod.status.phase in ("Succeeded", "Failed")

    world = World(tmp_path)
    running, ended = web("u-2", 2, status={"phase": "Running"}), web("u-2", 2)
    assert not world.triggers.makes_room(running, ended, over)
    ended = web("u-2", 2, status={"phase": "Failed"})
    assert not world.triggers.makes_room(running, ended, over)  # nothing is pending
    world.have("u-1", 1)
    await world.edit("u-1", 9)
    assert world.triggers.makes_room(running, ended, over)
    assert not world.triggers.makes_room(ended, ended, over)
    assert not world.triggers.makes_room(None, ended, over)
    smaller = web("u-2", 1, status={"phase": "Running"})
    assert world.triggers.makes_room(running, smaller, over)
    assert not world.triggers.makes_room(smaller, running, over)


async def test_an_error_of_admission_puts_the_resize_off_CG_061(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.have("u-1", 1)
    world.answer = RuntimeError("plugin died")
    await world.edit("u-1", 2)
    assert world.manager.has_pending
    assert world.events == []


async def test_pods_that_are_gone_leave_the_queue_and_the_checkpoint_CG_060(tmp_path: Path) -> None:
    world = World(tmp_path)
    one, _ = world.have("u-1", 1), world.have("u-2", 1)
    await world.edit("u-1", 9)
    del world.pods["u-1"]
    world.triggers.removed(one)
    await world.triggers.room_was_made()
    assert not world.manager.has_pending
    assert world.manager.allocated(one) is one
    world.manager.keep_only(["u-3"])
    assert world.conditions.of("u-1") == ()
    assert not world.manager.wants_resize(web("u-2", 9))


# -- what workers tell ---------------------------------------------------------------------------


class Runtime:
    in_progress = True

    def resize_in_progress(self, pod: Pod, status: RuntimePodStatus) -> bool:
        return self.in_progress

    def actuated(self, pod_uid: str, container: str) -> None:
        return None

    def note_pod_level(self, pod: Pod) -> None:
        return None


async def test_a_resize_is_told_from_its_start_to_its_end_CG_063(tmp_path: Path) -> None:
    world = World(tmp_path)
    runtime = Runtime()
    reinspected: list[str] = []
    reports = ResizeReports(
        world.conditions, world, runtime, cgroups=None, reinspect=reinspected.append
    )
    pod, status = web("u-1", 1, generation=2), RuntimePodStatus("u-1")
    reports.before_sync(pod, status)
    assert [c.type for c in reports.of(pod)] == ["PodResizeInProgress"]
    failure = SyncError(SyncAction.RESIZE_POD, "web", "ResizePodInPlaceError", "busy")
    for _ in range(2):
        reports.after_sync(pod, PodSyncResult((failure,), 1, resized=True))
    assert world.events == ["Warning ResizeError u-1"]
    assert world.reasons("u-1") == ["Error"]
    assert reinspected == ["u-1", "u-1"]
    reports.before_sync(pod, status)
    assert world.reasons("u-1") == ["Error"]
    runtime.in_progress = False
    for _ in range(2):
        reports.before_sync(pod, status)
    reports.after_sync(pod, PodSyncResult())
    assert world.events == ["Warning ResizeError u-1", "Normal ResizeCompleted u-1"]
    assert reports.of(pod) == ()
    world.conditions.set_pending("u-1", "OutOfcpu", "", 3)
    reports.at_end(pod)
    assert reports.of(pod) == ()
