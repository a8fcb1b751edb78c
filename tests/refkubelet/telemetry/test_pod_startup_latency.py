"""How long pods take to start (SRV-038.3)."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from loops import virtual_loop
from pods import make_pod

from refkubelet.model.objects import Pod
from refkubelet.telemetry.pod_metrics import StartMetrics
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency, is_stateful
from simclock import Clock

pytestmark = pytest.mark.virtual_time


class World:
    def __init__(self) -> None:
        self.clock: Clock = virtual_loop().clock
        self.metrics = StartMetrics()
        self.latency = PodStartupLatency(self.metrics, self.clock)
        self.created = self.clock.now()

    def pod(self, status: PodStatus | None = None, **spec: Any) -> Pod:
        made = make_pod(**spec)
        made.metadata.creationTimestamp = self.created
        made.status = status or PodStatus(phase="Pending")
        return made

    def running(self, **spec: Any) -> Pod:
        now = self.clock.now()
        state = ContainerState(running=ContainerStateRunning(startedAt=now))
        row = ContainerStatus(
            name="main", image="", imageID="", ready=True, restartCount=0, state=state
        )
        status = PodStatus(phase="Running", startTime=now, containerStatuses=[row])
        return self.pod(status, **spec)

    def observed(self) -> tuple[list[float], list[float]]:
        """The sums of both histograms, if there is one."""
        return (
            [d.sum_s for d in self.metrics.total.values.values()],
            [d.sum_s for d in self.metrics.sli.values.values()],
        )

    async def start(self, **spec: Any) -> None:
        """The pod is seen at once, runs after 10 s, and the API server tells it at 11 s."""
        self.latency.observed(self.pod(**spec))
        await self.clock.sleep(10)
        running = self.running(**spec)
        self.latency.written(running)
        await self.clock.sleep(1)
        self.latency.observed(running)


async def test_from_the_creation_to_what_the_api_server_tells_SRV_038() -> None:
    world = World()
    await world.start()
    assert world.observed() == ([11.0], [11.0])
    world.latency.observed(world.running())
    assert world.metrics.total.values[()].count == 1


async def test_pulls_count_once_and_init_containers_not_SRV_038() -> None:
    world = World()
    pod = world.pod()
    world.latency.observed(pod)
    uid = pod.metadata.uid or ""
    world.latency.pull_began(uid)
    await world.clock.sleep(1)
    world.latency.pull_began(uid)
    await world.clock.sleep(1)
    world.latency.pull_ended(uid)
    world.latency.pull_ended(uid)
    world.latency.init_began(uid)
    await world.clock.sleep(3)
    world.latency.init_ended(uid, world.clock.wall_ns())
    await world.start()
    assert world.observed() == ([16.0], [11.0])  # 2 s of pulls, 3 s of an init container


@pytest.mark.parametrize(
    ("volume", "stateful"),
    [
        ({"emptyDir": {}}, False),
        ({"projected": {"sources": []}}, False),
        ({"hostPath": {"path": "/x"}}, True),
        ({"persistentVolumeClaim": {"claimName": "c"}}, True),
    ],
)
async def test_stateful_pods_have_no_sli_SRV_038(volume: dict[str, Any], stateful: bool) -> None:
    pod = make_pod(volumes=[{"name": "v", **volume}])
    assert is_stateful(pod) is stateful
    world = World()
    await world.start(volumes=[{"name": "v", **volume}])
    assert world.observed() == ([11.0], [] if stateful else [11.0])


async def test_a_pod_that_was_seen_late_or_could_not_be_scheduled_does_not_count_SRV_038() -> None:
    world = World()
    world.latency.observed(world.running())  # it runs when it is first seen
    world.latency.written(world.running())
    world.latency.observed(world.running())
    assert world.observed() == ([], [])
    waiting = PodStatus(
        phase="Pending",
        conditions=[PodCondition(type="PodScheduled", status="False", reason="Unschedulable")],
    )
    world.latency.observed(world.pod(waiting))
    await world.start()
    assert world.observed() == ([], [])


async def test_what_was_not_written_by_this_kubelet_does_not_count_SRV_038() -> None:
    world = World()
    world.latency.observed(world.pod())
    world.latency.observed(world.running())
    assert world.observed() == ([], [])
    world.latency.forget(world.pod().metadata.uid or "")
    world.latency.written(world.running())
    assert world.observed() == ([], [])
