"""The status manager against a fake API server, in virtual time (STAT-001..031)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from loops import virtual_loop
from pods import make_pod, manifest

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from kubeobjects.structs import replace
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.model.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
    decode_pod,
)
from refkubelet.model.pod import CONFIG_HASH, CONFIG_MIRROR, CONFIG_SOURCE, uid
from refkubelet.pods.manager import PodManager
from refkubelet.status.manager import StatusManager
from refkubelet.status.writer import StatusDeps, StatusWriter
from refkubelet.telemetry.pod_metrics import StartMetrics, StatusMetrics
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time

PODS = "/api/v1/namespaces/default/pods"


class World:
    """A status manager, its pods, and the API server it writes to."""

    def __init__(self) -> None:
        self.clock = virtual_loop().clock
        self.api = FakeApi(self.clock, Ids(Rng(1)))
        self.pods = PodManager()
        self.could_run = True
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self.metrics = StatusMetrics()
        self.latency = PodStartupLatency(StartMetrics(), self.clock)
        self.manager = StatusManager(
            StatusDeps(
                clock=self.clock,
                pods=self.pods,
                could_run=lambda uid: self.could_run,
                api=self.client,
                metrics=self.metrics,
                latency=self.latency,
            )
        )

    async def post(self, name: str = "web", **metadata: Any) -> Pod:
        """Create a pod at the API and know it as the API knows it."""
        body = manifest(name=name, meta=metadata, nodeName="node")
        answer = await self.api.request("POST", PODS, body=body)
        assert answer.status == 201, answer.body
        return await self.refresh(name)

    async def refresh(self, name: str = "web") -> Pod:
        """What a watch would bring: the pod manager knows the API's object."""
        pod = await self.live(name)
        self.pods.update(pod)
        return pod

    async def live(self, name: str = "web") -> Pod:
        answer = await self.api.request("GET", f"{PODS}/{name}")
        assert answer.status == 200, answer.body
        return decode_pod(answer.body)

    def verbs(self) -> list[str]:
        return [f"{r.method} {r.path.removeprefix(PODS)}" for r in self.api.requests()]

    def patches(self) -> list[Any]:
        return [r.body for r in self.api.requests("PATCH")]

    async def settle(self, seconds: float = 0.001) -> None:
        """Let the writer write; virtual time makes this exact."""
        await self.clock.sleep(seconds)


@asynccontextmanager
async def running_manager() -> AsyncIterator[World]:
    """A world whose status manager writes; on a virtual loop."""
    world = World()
    writer = asyncio.create_task(world.manager.writer.run())
    try:
        yield world
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        await world.client.aclose()


def running(phase: str = "Running", ready: str = "True", **fields: Any) -> PodStatus:
    return PodStatus(
        phase=phase,
        qosClass="BestEffort",
        conditions=[
            PodCondition(type="Ready", status=ready),
            PodCondition(type="ContainersReady", status=ready),
        ],
        containerStatuses=[
            ContainerStatus(
                name="main",
                image="localhost/busybox:1",
                imageID="sha256:1",
                ready=ready == "True",
                restartCount=0,
                started=True,
                containerID="containerd://c1",
                state=ContainerState(running=ContainerStateRunning()),
                lastState=ContainerState(),
            )
        ],
        **fields,
    )


async def test_the_full_pass_comes_however_often_statuses_change_STAT_020() -> None:
    async with running_manager() as w:
        pod = await w.post()
        busy = await w.post("busy")
        w.manager.set_pod_status(pod, running())
        await w.settle()
        await w.refresh()
        foreign = {"status": {"phase": "Pending"}}
        merge = "application/merge-patch+json"
        await w.api.request("PATCH", f"{PODS}/web/status", body=foreign, content_type=merge)
        await w.refresh()

        w.api.delays("GET", "pods/busy", delay_s=3.0)
        for _ in range(30):  # so a change waits whenever the writer comes back
            w.manager.set_pod_status(busy, running(message=str(w.clock.monotonic_s())))
            await w.clock.sleep(1.0)
        live = await w.live()
        assert live.status is not None
        assert live.status.phase == "Running"


async def test_a_change_is_written_at_once_with_get_and_patch_STAT_020_STAT_022() -> None:
    async with running_manager() as w:
        pod = await w.post()
        before = len(w.verbs())
        w.manager.set_pod_status(pod, running())
        await w.settle()
        assert w.verbs()[before:] == ["GET /web", "PATCH /web/status"]
        request = w.api.requests("PATCH")[0]
        assert request.content_type == "application/strategic-merge-patch+json"
        assert w.patches()[0]["metadata"] == {"uid": uid(pod)}
        live = await w.live()
        assert live.status is not None
        assert live.status.phase == "Running"
        assert live.status.startTime is not None


async def test_an_equal_status_is_ignored_and_the_start_time_stays_STAT_003_STAT_007() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle(5)
        w.manager.set_pod_status(pod, running())
        await w.settle()
        assert len(w.patches()) == 1
        w.manager.set_pod_status(pod, running(ready="False"))
        await w.settle()
        status = w.manager.get(uid(pod))
        assert status is not None
        assert status.startTime is not None
        assert status.startTime < w.clock.now()
        assert len(w.patches()) == 2
        assert "startTime" not in w.patches()[1]["status"]


async def test_nothing_changes_so_the_full_pass_patches_nothing_STAT_021() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle()
        await w.refresh()
        await w.settle(65)
        assert len(w.patches()) == 1


async def test_a_foreign_edit_is_corrected_within_10_s_STAT_021() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle()
        edit = {"status": {"phase": "Failed", "conditions": [{"type": "Mine", "status": "True"}]}}
        await w.api.request(
            "PATCH",
            f"{PODS}/web/status",
            body=edit,
            content_type="application/strategic-merge-patch+json",
        )
        await w.refresh()
        await w.settle(10)
        live = (await w.live()).status
        assert live is not None
        assert live.phase == "Running"
        assert [c.type for c in live.conditions or ()] == ["Mine", "Ready", "ContainersReady"]


async def test_a_failed_write_is_tried_again_with_the_newest_status_STAT_023() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.api.fails("PATCH", "/web/status", status=500, times=1)
        w.manager.set_pod_status(pod, running(ready="False"))
        await w.settle()
        w.manager.set_pod_status(pod, running())
        await w.settle(10.1)
        live = (await w.live()).status
        assert live is not None
        assert live.phase == "Running"


async def test_a_vanished_pod_is_silent_STAT_023() -> None:
    async with running_manager() as w:
        pod = await w.post()
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 0})
        w.manager.set_pod_status(pod, running())
        await w.settle(11)
        assert w.patches() == []


async def test_another_pod_of_that_name_never_gets_the_status_STAT_024() -> None:
    async with running_manager() as w:
        pod = await w.post()
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 0})
        again = await w.post()
        assert uid(again) != uid(pod)
        w.manager.set_pod_status(pod, running())
        await w.settle()
        assert w.patches() == []
        assert w.manager.get(uid(pod)) is None


async def test_a_terminal_phase_is_withheld_while_containers_may_run_LIFE_190() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle()
        w.manager.set_pod_status(pod, running("Failed", "False", reason="Evicted"))
        await w.settle()
        live = (await w.live()).status
        assert live is not None
        assert live.phase == "Running"
        w.could_run = False
        await w.refresh()
        await w.settle(10)
        live = (await w.live()).status
        assert live is not None
        assert (live.phase, live.reason) == ("Failed", "Evicted")


async def test_a_deleted_pod_is_patched_then_deleted_STAT_030_LIFE_200() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle()
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 30})
        pod = await w.refresh()
        w.could_run = False
        w.manager.set_pod_status(pod, running("Succeeded", "False"))
        await w.settle()
        assert not w.api.requests("DELETE", "/web$")[1:]  # termination is not complete yet
        before = len(w.verbs())
        w.manager.terminate_pod(pod)
        await w.settle()
        assert w.verbs()[before:][-1] == "DELETE /web"
        options = w.api.requests("DELETE")[-1].body
        assert options["gracePeriodSeconds"] == 0
        assert options["preconditions"] == {"uid": uid(pod)}
        answer = await w.api.request("GET", f"{PODS}/web")
        assert answer.status == 404


async def test_a_failed_delete_is_tried_again_by_the_full_pass_STAT_030() -> None:
    async with running_manager() as w:
        pod = await w.post()
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 30})
        pod = await w.refresh()
        w.could_run = False
        w.api.fails("DELETE", "/web", status=500, times=1)
        w.manager.terminate_pod(pod)
        await w.settle()
        await w.refresh()
        await w.settle(10)
        assert (await w.api.request("GET", f"{PODS}/web")).status == 404


async def test_a_static_pod_writes_to_its_mirror_once_there_is_one_STAT_025() -> None:
    async with running_manager() as w:
        static = make_pod(uid="static", static=True, meta={"annotations": {CONFIG_HASH: "static"}})
        w.pods.update(static)
        w.manager.set_pod_status(static, running())
        await w.settle(11)
        assert w.verbs() == []
        mirror = await w.post(annotations={CONFIG_MIRROR: "static", CONFIG_SOURCE: "file"})
        await w.settle(10)
        assert w.patches()[0]["metadata"] == {"uid": uid(mirror)}
        assert w.manager.get(uid(mirror)) == w.manager.get("static")


@pytest.mark.parametrize(("static", "shown"), [(True, "running"), (False, "terminated")])
async def test_what_runs_of_a_static_pod_that_came_back_is_shown_STAT_008(
    static: bool, shown: str
) -> None:
    world = World()
    pod = make_pod(uid="u", static=static, restartPolicy="OnFailure")
    ended = ContainerState(terminated=ContainerStateTerminated(exitCode=0))
    (main,) = running().containerStatuses or ()
    for state in (ended, ContainerState(waiting=ContainerStateWaiting(reason="x"))):
        status = replace(running(), containerStatuses=[replace(main, state=state)])
        world.manager.set_pod_status(pod, status)
        assert _only_state(world) == ended
    world.manager.set_pod_status(pod, running())
    state = _only_state(world)
    assert getattr(state, shown) is not None


def _only_state(world: World) -> ContainerState:
    status = world.manager.get("u")
    assert status is not None
    (only,) = status.containerStatuses or ()
    assert only.state is not None
    return only.state


async def test_probe_results_change_one_container_and_the_conditions_STAT_009() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        w.manager.set_container_readiness(uid(pod), "other", False)
        status = w.manager.get(uid(pod))
        assert status is not None
        assert (status.containerStatuses or [])[0].ready is True
        w.manager.set_container_readiness(uid(pod), "c1", False)
        w.manager.set_container_startup(uid(pod), "c1", False)
        w.manager.set_container_readiness("unknown", "c1", False)
        status = w.manager.get(uid(pod))
        assert status is not None
        only = (status.containerStatuses or [])[0]
        assert (only.ready, only.started) == (False, False)
        assert {c.type: c.status for c in status.conditions or ()} == {
            "Ready": "False",
            "ContainersReady": "False",
        }


async def test_a_startup_result_leaves_the_conditions_to_the_next_sync_STAT_009_PROBE_032() -> None:
    async with running_manager() as w:
        pod = await w.post()
        known = running(ready="False")  # which is not what its containers say
        known.containerStatuses = running().containerStatuses
        w.manager.set_pod_status(pod, known)
        before = w.manager.get(uid(pod))
        w.manager.set_container_startup(uid(pod), "c1", False)
        after = w.manager.get(uid(pod))
        assert before is not None
        assert after is not None
        assert (after.containerStatuses or [])[0].started is False
        assert after.conditions == before.conditions


async def test_the_generation_of_a_status_is_the_pods_and_never_falls_STAT_005() -> None:
    async with running_manager() as w:
        pod = await w.post()
        for generation, shown in ((3, 3), (2, 3), (4, 4)):
            pod.metadata.generation = generation
            w.manager.set_pod_status(pod, running())
            assert (w.manager.get(uid(pod)) or PodStatus()).observedGeneration == shown


async def test_orphaned_statuses_are_forgotten_STAT_011() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        w.manager.remove_orphaned([uid(pod)])
        assert w.manager.get(uid(pod)) is not None
        w.pods.remove(pod)
        w.manager.remove_orphaned([])
        assert w.manager.get(uid(pod)) is None


async def test_generation_is_passed_on_and_never_lowered_STAT_005() -> None:
    async with running_manager() as w:
        pod = await w.post()
        newer = replace(pod, metadata=replace(pod.metadata, generation=3))
        w.manager.set_pod_status(newer, running())
        status = w.manager.get(uid(pod))
        assert status is not None
        assert status.observedGeneration == 3


async def test_a_change_in_the_middle_of_a_sync_keeps_its_generation_STAT_012() -> None:
    """STAT-012.4: the newer spec has not been synced yet."""
    world = World()
    pod = await world.post()
    world.manager.set_pod_status(pod, PodStatus(phase="Running"))
    before = world.manager.get(uid(pod))
    assert before is not None
    newer = replace(pod, metadata=replace(pod.metadata, generation=7))
    world.manager.change_pod_status(newer, replace(before, message="changed"))
    after = world.manager.get(uid(pod))
    assert after is not None
    assert (after.message, after.observedGeneration) == ("changed", before.observedGeneration)


async def foreign_edit(w: World) -> None:
    """Somebody else sets the pod's phase."""
    await w.api.request(
        "PATCH",
        f"{PODS}/web/status",
        body={"status": {"phase": "Failed"}},
        content_type="application/strategic-merge-patch+json",
    )
    await w.refresh()


async def test_a_repair_is_no_slow_write_STAT_021() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle(3600)
        await foreign_edit(w)
        before = len(w.patches())
        await w.settle(10)
        assert len(w.patches()) == before + 1
        times = w.metrics.sync_duration.values[()]
        assert times.count == 1
        await foreign_edit(w)
        w.manager.set_pod_status(pod, running(ready="False"))
        await w.settle(10)
        assert times.count == 2
        assert times.sum_s < 1


async def test_nothing_is_kept_of_a_pod_that_was_deleted_STAT_030() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.latency.observed(pod)
        w.manager.set_pod_status(pod, running())
        await w.settle()
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 30})
        pod = await w.refresh()
        w.could_run = False
        assert w.latency._starts
        w.manager.terminate_pod(pod)
        await w.settle()
        assert w.verbs()[-1] == "DELETE /web"
        assert not w.latency._starts


async def test_nothing_is_kept_of_a_pod_whose_name_another_one_has_STAT_024() -> None:
    async with running_manager() as w:
        pod = await w.post()
        w.latency.observed(pod)
        assert w.latency._starts
        await w.api.request("DELETE", f"{PODS}/web", body={"gracePeriodSeconds": 0})
        await w.post()
        w.manager.set_pod_status(pod, running())
        await w.settle()
        assert w.manager.get(uid(pod)) is None
        assert not w.latency._starts


async def test_a_status_that_is_written_is_not_looked_at_when_another_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def must_send(*about: Any) -> bool:
        nonlocal looks
        looks += 1
        return real(*about)

    real = StatusWriter._must_send
    monkeypatch.setattr(StatusWriter, "_must_send", must_send)
    async with running_manager() as w:
        pods = [await w.post(f"p{number}") for number in range(50)]
        for pod in pods:
            w.manager.set_pod_status(pod, running())
            await w.settle()
        assert len(w.patches()) == 50
        assert looks <= 3 * 50
