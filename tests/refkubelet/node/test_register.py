"""The registration of the Node, and how its status is kept current."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from loops import virtual_loop

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.kinds import NODES
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.api.node_informer import NodeInformer
from refkubelet.cri.records import RuntimeConditions
from refkubelet.events.queued_recorder import QueuedEventRecorder
from refkubelet.eviction.manager import PressureCondition
from refkubelet.model.objects import Node, ObjectMeta
from refkubelet.node.register import NodeRegistrar, _Latest
from refkubelet.node.settings import NodeHealth, NodeRuntime, NodeSettings
from refkubelet.node.status import (
    NodeFacts,
    default_labels,
)
from refkubelet.sync_loop.runtime_state import RuntimeState
from simclock import Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time
NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)


FACTS = NodeFacts(
    name="n1",
    internal_ips=("10.0.0.1",),
    labels=default_labels("n1", "amd64"),
    info={"bootID": "now"},
)


class World:
    """A registrar on a fake API server; `not_ready`, `pressures` and `told` may be
    changed."""

    def __init__(self, loop: VirtualLoop, *, register: bool) -> None:
        self.api = FakeApi(clock=loop.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self.recorder = QueuedEventRecorder(None, loop.clock, "n1")
        self.not_ready: list[str] = []
        self.pressures: list[PressureCondition] = []
        self.told: dict[str, Any] = {}
        self.drawn = 0.5
        self.looks = 0
        self.informer = NodeInformer(self.client, "n1", loop.clock, Rng(1))
        self.ranges: tuple[str, ...] = ()
        settings = NodeSettings(
            FACTS,
            register=register,
            health=NodeHealth(lambda: self.pressures, lambda: self.not_ready),
            runtime=NodeRuntime(lambda: self.told, self.told_ranges, self.look),
            random=lambda: self.drawn,
            seen=self.informer.node,
        )
        self.registrar = NodeRegistrar(self.client, settings, self.recorder, loop.clock)
        self._runs: list[asyncio.Task[None]] = []

    def start(self) -> None:
        parts = (self.informer.run, self.registrar.run)
        self._runs = [asyncio.create_task(run()) for run in parts]

    async def stop(self) -> None:
        for run in self._runs:
            run.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)

    async def told_ranges(self, cidrs: Sequence[str]) -> bool:
        before, self.ranges = self.ranges, tuple(cidrs)
        return before != self.ranges

    async def look(self) -> None:
        self.looks += 1

    async def node(self) -> dict[str, Any]:
        body: dict[str, Any] = (await self.api.request("GET", "/api/v1/nodes/n1")).body
        return body

    def reasons(self) -> list[str]:
        return [e.reason for e in self.recorder.events]

    def patches(self) -> list[float]:
        return [r.started_s for r in self.api.requests("PATCH")]


@asynccontextmanager
async def registered(*, register: bool = True, started: bool = True) -> AsyncIterator[World]:
    """A registrar on a fake API server. Not `started`, it waits for `World.start`."""
    loop = virtual_loop()
    world = World(loop, register=register)
    if started:
        world.start()
    yield world
    await world.stop()
    await world.client.aclose()


async def test_the_node_is_made_after_a_tenth_of_a_second_NODE_002_NODE_003() -> None:
    async with registered() as world:
        await asyncio.sleep(1)
        assert world.api.requests("POST")[0].started_s == pytest.approx(0.1)
        node = await world.node()
        assert node["metadata"]["uid"]
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        assert node["metadata"]["annotations"] == {
            "volumes.kubernetes.io/controller-managed-attach-detach": "true"
        }
        types = [c["type"] for c in node["status"]["conditions"]]
        assert types == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
        assert world.reasons() == [  # NODE-021; a first Ready tells nothing (NODE-024)
            "NodeHasSufficientMemory",
            "NodeHasNoDiskPressure",
            "NodeHasSufficientPID",
        ]


async def test_registration_is_tried_again_ever_slower_NODE_002() -> None:
    async with registered() as world:
        with world.api.fails("POST", "/nodes", status=500):
            await asyncio.sleep(40)
        gaps = [r.started_s for r in world.api.requests("POST")]
        steps = [round(b - a, 3) for a, b in pairwise(gaps)]
        assert steps[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0]
        await asyncio.sleep(8)
        assert (await world.node())["metadata"]["name"] == "n1"


async def test_an_existing_node_is_adopted_NODE_004() -> None:
    metadata = {"name": "n1", "labels": {"mine": "yes", "kubernetes.io/os": "plan9"}}
    spec = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
    async with registered(started=False) as world:
        await world.api.request("POST", "/api/v1/nodes", body={"metadata": metadata, "spec": spec})
        world.start()
        await asyncio.sleep(1)
        node = await world.node()
        assert node["metadata"]["labels"]["mine"] == "yes"
        assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
        assert {"key": "t", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert node["status"]["conditions"][-1]["reason"] == "KubeletReady"


async def test_status_is_written_on_change_and_every_five_minutes_NODE_010() -> None:
    async with registered() as world:
        await asyncio.sleep(100)
        assert len(world.patches()) == 1  # at the start
        world.pressures.append(PressureCondition("MemoryPressure", "True"))
        await asyncio.sleep(15)
        assert len(world.patches()) == 2
        assert world.reasons()[-1] == "NodeHasInsufficientMemory"
        assert world.recorder.events[-1].message == (
            "Node n1 status is now: NodeHasInsufficientMemory"
        )
        await asyncio.sleep(310)
        assert len(world.patches()) == 3


@pytest.mark.parametrize(("drawn", "first_s"), [(0.0, 150), (0.5, 300), (0.99, 447)])
async def test_after_a_change_the_next_report_has_a_time_of_its_own_NODE_010(
    drawn: float, first_s: float
) -> None:
    """Then every 300 s; looks are 10 to 10.4 s apart."""

    async with registered() as world:
        world.drawn = drawn
        await asyncio.sleep(1600)
        first, second, third, *_ = world.patches()
        assert first_s <= second - first < first_s + 10.4
        assert 300 <= third - second < 310.4


async def test_looks_are_a_little_more_than_a_period_apart_NODE_010() -> None:
    async with registered() as world:
        world.drawn = 0.999
        await asyncio.sleep(1)
        world.told["images"] = [{"sizeBytes": 1}]
        await asyncio.sleep(20)
        first, second = world.patches()
        assert second - first == pytest.approx(10.4, abs=0.01)


async def test_an_update_is_tried_five_times_at_once_then_a_period_later_NODE_011() -> None:
    """The first with the Node as it was seen, the others with the Node as it is."""

    async with registered() as world:
        await asyncio.sleep(5)
        began = len(world.api.requests())
        world.pressures.append(PressureCondition("MemoryPressure", "True"))
        with world.api.fails("PATCH", "/status"):
            await asyncio.sleep(10)
            asked = [r.method for r in world.api.requests()[began:]]
        assert asked == ["PATCH", *4 * ["GET", "PATCH"]]
        await asyncio.sleep(10)
        assert (await world.node())["status"]["conditions"][0]["status"] == "True"


async def test_a_try_that_succeeds_is_the_last_one_NODE_011() -> None:
    async with registered() as world:
        await asyncio.sleep(5)
        world.pressures.append(PressureCondition("MemoryPressure", "True"))
        world.api.fails("PATCH", "/status", times=2)
        await asyncio.sleep(10)
        assert len(world.patches()) == 1 + 3
        assert (await world.node())["status"]["conditions"][0]["status"] == "True"
        assert world.reasons()[-1] == "NodeHasInsufficientMemory"


async def test_a_report_that_came_early_waits_for_the_whole_period_when_it_fails_NODE_011() -> None:
    """The delay of a report counts once."""

    async with registered() as world:
        world.drawn = 0.0
        await asyncio.sleep(100)
        refused = world.api.fails("PATCH", "/status", times=1)
        await asyncio.sleep(180)
        assert (refused.hits, len(world.patches())) == (1, 2)
        await asyncio.sleep(40)
        assert len(world.patches()) == 3


async def test_addresses_that_a_node_had_before_are_replaced_NODE_011() -> None:
    old = [{"type": "ExternalIP", "address": "192.0.2.1"}]
    body = {"metadata": {"name": "n1"}, "status": {"addresses": old}}
    async with registered(started=False) as world:
        await world.api.request("POST", "/api/v1/nodes", body=body)
        world.start()
        await asyncio.sleep(5)
        addresses = (await world.node())["status"]["addresses"]
        assert [a["type"] for a in addresses] == ["InternalIP", "Hostname"]


async def test_a_node_that_gets_ready_is_told_to_be_ready_at_once_NODE_013() -> None:
    async with registered(started=False) as world:
        world.not_ready.append("container runtime is down")
        world.start()
        soon = asyncio.create_task(world.registrar.get_ready())
        await asyncio.sleep(3)
        assert world.looks == pytest.approx(29, abs=1)
        world.not_ready.clear()
        await asyncio.sleep(0.2)
        ready = (await world.node())["status"]["conditions"][-1]
        assert (ready["type"], ready["status"]) == ("Ready", "True")
        looks = world.looks
        await asyncio.sleep(5)
        assert world.looks == looks
        soon.cancel()


async def test_after_two_minutes_the_node_is_looked_at_as_usual_NODE_013() -> None:
    async with registered(started=False) as world:
        world.not_ready.append("container runtime is down")
        world.start()
        soon = asyncio.create_task(world.registrar.get_ready())
        await asyncio.sleep(121)
        looks = world.looks
        await asyncio.sleep(10)
        assert world.looks == looks
        soon.cancel()


async def test_why_a_node_is_not_ready_NODE_022_NODE_024() -> None:
    async with registered() as world:
        await asyncio.sleep(1)
        world.not_ready[:] = ["a", "b", "a"]
        await asyncio.sleep(15)
        ready = (await world.node())["status"]["conditions"][-1]
        assert (ready["status"], ready["reason"], ready["message"]) == (
            "False",
            "KubeletNotReady",
            "[a, b]",
        )
        assert world.reasons()[-1] == "NodeNotReady"


async def test_texts_of_a_runtime_that_is_not_ready_NODE_023() -> None:
    pleg: list[str | None] = ["pleg has yet to be successful"]
    state = RuntimeState(virtual_loop().clock, lambda: pleg[0])
    assert state.not_ready() == [
        "container runtime status check may not have completed yet",
        "PLEG is not healthy: pleg has yet to be successful",
        "network state unknown",
    ]
    pleg[0] = None
    state.observe(RuntimeConditions(True, False, network_reason="NoCNI", network_message="m"))
    assert state.not_ready() == [
        "container runtime network not ready: NetworkReady=false reason:NoCNI message:m"
    ]
    state.observe(RuntimeConditions(False, True, runtime_reason="R", runtime_message="m"))
    await asyncio.sleep(30)
    assert state.not_ready()[:2] == [
        "container runtime is down",
        "container runtime not ready: RuntimeReady=false reason:R message:m",
    ]


async def test_a_node_that_may_not_register_waits_for_its_object_NODE_005() -> None:
    async with registered(register=False) as world:
        await asyncio.sleep(30)
        assert world.api.requests("POST") == []
        await world.api.request("POST", "/api/v1/nodes", body={"metadata": {"name": "n1"}})
        await asyncio.sleep(15)
        assert (await world.node())["status"]["conditions"][-1]["type"] == "Ready"


async def test_the_runtimes_fields_are_written_when_they_change_NODE_035() -> None:
    async with registered() as world:
        await asyncio.sleep(15)
        assert "features" not in (await world.node())["status"]
        world.told["features"] = {"supplementalGroupsPolicy": True}
        await asyncio.sleep(11)
        assert (await world.node())["status"]["features"] == {"supplementalGroupsPolicy": True}


async def test_a_hurry_writes_the_status_at_once_NODE_061() -> None:
    async with registered() as world:
        await asyncio.sleep(15)
        world.not_ready.append("node is shutting down")
        world.registrar.hurry()
        await asyncio.sleep(0.1)
        ready = (await world.node())["status"]["conditions"][-1]
        assert (ready["status"], ready["message"]) == ("False", "node is shutting down")


async def told_of_boots(before: str) -> list[tuple[str, str]]:
    """The events Rebooted, type and message, where the Node is of that boot."""
    async with registered(started=False) as world:
        info = {**dict.fromkeys(NODE_INFO, ""), "bootID": before}
        node = {"metadata": {"name": "n1"}, "status": {"nodeInfo": info}}
        await world.api.request("POST", "/api/v1/nodes", body=node)
        world.start()
        await asyncio.sleep(30)
        assert (await world.node())["status"]["nodeInfo"]["bootID"] == "now"
        return [(e.type, e.message) for e in world.recorder.events if e.reason == "Rebooted"]


async def test_another_boot_is_told_once_NODE_034() -> None:
    text = "Node n1 has been rebooted, boot id: now"
    assert await told_of_boots("before") == [("Warning", text)]


@pytest.mark.parametrize("before", ["", "now"])
async def test_the_same_boot_is_not_told_NODE_034(before: str) -> None:
    assert await told_of_boots(before) == []


async def test_the_nodes_pod_ranges_are_passed_on_NODE_014() -> None:
    async with registered() as world:
        await asyncio.sleep(1)
        body = {"spec": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]}}
        await world.api.request(
            "PATCH", "/api/v1/nodes/n1", body=body, content_type="application/merge-patch+json"
        )
        before = len(world.patches())
        await asyncio.sleep(11)
        assert world.ranges == ("10.1.0.0/24", "fd00::/64")
        assert len(world.patches()) == before + 1  # a new range is a reason to write


VOLUMES = ["kubernetes.io/csi/a^b"]


async def test_volumes_of_an_earlier_kubelet_are_not_in_use_NODE_035() -> None:
    async with registered(started=False) as world:
        node = {"metadata": {"name": "n1"}, "status": {"volumesInUse": VOLUMES}}
        await world.api.request("POST", "/api/v1/nodes", body=node)
        world.start()
        await asyncio.sleep(1)
        assert not (await world.node())["status"].get("volumesInUse")


async def test_volumes_that_somebody_shows_later_are_not_in_use_NODE_035() -> None:
    """Although nothing else of the status has changed."""
    async with registered() as world:
        await asyncio.sleep(1)
        patch = {"status": {"volumesInUse": VOLUMES}}
        await world.client.patch(NODES, "n1", patch, subresource="status")
        await asyncio.sleep(15)
        assert not (await world.node())["status"].get("volumesInUse")


def version(number: str, uid: str = "u") -> Node:
    return Node(metadata=ObjectMeta(name="n1", uid=uid, resourceVersion=number))


@pytest.mark.parametrize(
    ("seen", "answer_counts"),
    [
        (version("9"), True),  # of an earlier write: the watch is behind
        (version("10"), False),
        (version("11"), False),
        (version("9", uid="another"), False),  # made again
        (version("nine"), False),  # says nothing of the order
        (None, False),
    ],
)
def test_the_answer_counts_until_the_watch_has_come_as_far_NODE_011(
    seen: Node | None, answer_counts: bool
) -> None:
    known: list[Node | None] = [version("8")]
    latest = _Latest(lambda: known[0])
    answer = version("10")
    latest.answered(answer)
    assert latest.node() is answer
    known[0] = seen
    assert latest.node() is (answer if answer_counts else seen)
    assert latest.node() is (answer if answer_counts else seen)
