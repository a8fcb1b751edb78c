"""The Node object: registration, adoption, conditions, and the machine behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fakeapi import FakeApi
from fakeapi.httpx_transport import InProcessTransport
from refkubelet.admission.features import declared_features
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import allocatable_of
from refkubelet.container_manager.cgroups.node_config import reservations_of
from refkubelet.cri.records import HandlerFeatures, ImageRecord, RuntimeConditions
from refkubelet.daemon import host_ips
from refkubelet.events.queued_recorder import QueuedEventRecorder
from refkubelet.host.machine import (
    FilesystemStats,
    HugePages,
    MachineTopology,
    MemoryStats,
    NumaNode,
)
from refkubelet.host.real_machine import MachineError, RealMachine
from refkubelet.model.quantity import NANO
from refkubelet.node.facts import NodeNameError, node_facts, node_name
from refkubelet.node.images import NodeImages, images_shown
from refkubelet.node.register import NodeRegistrar, NodeSettings, adoption_patch
from refkubelet.node.status import (
    NodeFacts,
    conditions,
    default_labels,
    flip_events,
    node_status,
    runtime_fields,
)
from refkubelet.node.versions import runtime_version
from refkubelet.sync_loop.runtime_state import RuntimeState
from refkubelet.usage import UsageError
from simtime import Ids, RealClock, Rng, VirtualLoop, run_virtual

FACTS = NodeFacts(name="n1", internal_ip="10.0.0.1", labels=default_labels("n1", "amd64"))


@dataclass(frozen=True)
class Pressure:
    type: str
    status: str = "True"


class World:
    """A registrar on a fake API server; `not_ready`, `pressures` and `told` may be
    changed."""

    def __init__(self, loop: VirtualLoop, *, register: bool) -> None:
        self.api = FakeApi(clock=loop.clock)
        self.client = LightkubeApiClient.in_process(InProcessTransport(self.api))
        self.recorder = QueuedEventRecorder(None, loop.clock, Ids(Rng(1)), "n1")
        self.not_ready: list[str] = []
        self.pressures: list[Pressure] = []
        self.told: dict[str, Any] = {}
        self.drawn = 0.5
        self.looks = 0
        settings = NodeSettings(
            FACTS,
            register=register,
            pressures=lambda: self.pressures,
            not_ready=lambda: self.not_ready,
            runtime=lambda: self.told,
            random=lambda: self.drawn,
            look=self.look,
        )
        self.registrar = NodeRegistrar(self.client, settings, self.recorder, loop.clock)

    async def look(self) -> None:
        self.looks += 1

    async def node(self) -> dict[str, Any]:
        body: dict[str, Any] = (await self.api.request("GET", "/api/v1/nodes/n1")).body
        return body

    def reasons(self) -> list[str]:
        return [e.reason for e in self.recorder.events]

    def patches(self) -> list[float]:
        return [r.started_s for r in self.api.requests("PATCH")]


def registered(
    body: Callable[[World], Awaitable[None]], before: Any = None, *, register: bool = True
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = World(loop, register=register)
        if before is not None:
            await before(world)
        task = asyncio.create_task(world.registrar.run())
        await body(world)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await world.client.aclose()

    run_virtual(main)


def test_the_node_is_made_after_a_tenth_of_a_second_NODE_002_NODE_003() -> None:
    async def body(world: World) -> None:
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

    registered(body)


def test_registration_is_tried_again_ever_slower_NODE_002() -> None:
    async def body(world: World) -> None:
        with world.api.fails("POST", "/nodes", status=500):
            await asyncio.sleep(40)
        gaps = [r.started_s for r in world.api.requests("POST")]
        steps = [round(b - a, 3) for a, b in pairwise(gaps)]
        assert steps[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0]
        await asyncio.sleep(8)
        assert (await world.node())["metadata"]["name"] == "n1"

    registered(body)


def test_an_existing_node_is_adopted_NODE_004() -> None:
    async def before(world: World) -> None:
        metadata = {
            "name": "n1",
            "labels": {"mine": "yes", "kubernetes.io/os": "plan9"},
        }
        spec = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
        await world.api.request("POST", "/api/v1/nodes", body={"metadata": metadata, "spec": spec})

    async def body(world: World) -> None:
        await asyncio.sleep(1)
        node = await world.node()
        assert node["metadata"]["labels"]["mine"] == "yes"
        assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
        assert {"key": "t", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert node["status"]["conditions"][-1]["reason"] == "KubeletReady"

    registered(body, before)


def test_status_is_written_on_change_and_every_five_minutes_NODE_010() -> None:
    async def body(world: World) -> None:
        await asyncio.sleep(100)
        assert len(world.patches()) == 1  # at the start
        world.pressures.append(Pressure("MemoryPressure"))
        await asyncio.sleep(15)
        assert len(world.patches()) == 2
        assert world.reasons()[-1] == "NodeHasInsufficientMemory"
        assert world.recorder.events[-1].message == (
            "Node n1 status is now: NodeHasInsufficientMemory"
        )
        await asyncio.sleep(310)
        assert len(world.patches()) == 3

    registered(body)


@pytest.mark.parametrize(("drawn", "first_s"), [(0.0, 150), (0.5, 300), (0.99, 447)])
def test_after_a_change_the_next_report_has_a_time_of_its_own_NODE_010(
    drawn: float, first_s: float
) -> None:
    """Then every 300 s; looks are 10 to 10.4 s apart."""

    async def body(world: World) -> None:
        world.drawn = drawn
        await asyncio.sleep(1600)
        first, second, third, *_ = world.patches()
        assert first_s <= second - first < first_s + 10.4
        assert 300 <= third - second < 310.4

    registered(body)


def test_looks_are_a_little_more_than_a_period_apart_NODE_010() -> None:
    async def body(world: World) -> None:
        world.drawn = 0.999
        await asyncio.sleep(1)
        world.told["images"] = [{"sizeBytes": 1}]
        await asyncio.sleep(20)
        first, second = world.patches()
        assert second - first == pytest.approx(10.4, abs=0.01)

    registered(body)


def test_an_update_is_tried_five_times_at_once_then_a_period_later_NODE_011() -> None:
    """The first with the Node as it was seen, the others with the Node as it is."""

    async def body(world: World) -> None:
        await asyncio.sleep(5)
        began = len(world.api.requests())
        world.pressures.append(Pressure("MemoryPressure"))
        with world.api.fails("PATCH", "/status"):
            await asyncio.sleep(10)
            asked = [r.method for r in world.api.requests()[began:]]
        assert asked == ["PATCH", *4 * ["GET", "PATCH"]]
        await asyncio.sleep(10)
        assert (await world.node())["status"]["conditions"][0]["status"] == "True"

    registered(body)


def test_a_try_that_succeeds_is_the_last_one_NODE_011() -> None:
    async def body(world: World) -> None:
        await asyncio.sleep(5)
        world.pressures.append(Pressure("MemoryPressure"))
        world.api.fails("PATCH", "/status", times=2)
        await asyncio.sleep(10)
        assert len(world.patches()) == 1 + 3
        assert (await world.node())["status"]["conditions"][0]["status"] == "True"
        assert world.reasons()[-1] == "NodeHasInsufficientMemory"

    registered(body)


def test_a_report_that_came_early_waits_for_the_whole_period_when_it_fails_NODE_011() -> None:
    """The delay of a report counts once."""

    async def body(world: World) -> None:
        world.drawn = 0.0
        await asyncio.sleep(100)
        refused = world.api.fails("PATCH", "/status", times=1)
        await asyncio.sleep(180)
        assert (refused.hits, len(world.patches())) == (1, 2)
        await asyncio.sleep(40)
        assert len(world.patches()) == 3

    registered(body)


def test_addresses_that_a_node_had_before_are_replaced_NODE_011() -> None:
    async def before(world: World) -> None:
        old = [{"type": "ExternalIP", "address": "192.0.2.1"}]
        body = {"metadata": {"name": "n1"}, "status": {"addresses": old}}
        await world.api.request("POST", "/api/v1/nodes", body=body)

    async def body(world: World) -> None:
        await asyncio.sleep(5)
        addresses = (await world.node())["status"]["addresses"]
        assert [a["type"] for a in addresses] == ["InternalIP", "Hostname"]

    registered(body, before)


def test_a_node_that_gets_ready_is_told_to_be_ready_at_once_NODE_013() -> None:
    async def before(world: World) -> None:
        world.not_ready.append("container runtime is down")

    async def body(world: World) -> None:
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

    registered(body, before)


def test_nobody_hurries_after_two_minutes_NODE_013() -> None:
    async def before(world: World) -> None:
        world.not_ready.append("container runtime is down")

    async def body(world: World) -> None:
        soon = asyncio.create_task(world.registrar.get_ready())
        await asyncio.sleep(121)
        looks = world.looks
        await asyncio.sleep(10)
        assert world.looks == looks
        soon.cancel()

    registered(body, before)


def test_why_a_node_is_not_ready_NODE_022_NODE_024() -> None:
    async def body(world: World) -> None:
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

    registered(body)


def test_transition_times_change_with_the_status_only_NODE_021_EVIC_063() -> None:
    first = conditions([], [], [], "t1")
    second = conditions([Pressure("DiskPressure")], ["one"], first, "t2")
    times = {c["type"]: c["lastTransitionTime"] for c in second}
    assert times == {
        "MemoryPressure": "t1",
        "DiskPressure": "t2",
        "PIDPressure": "t1",
        "Ready": "t2",
    }
    assert second[-1]["message"] == "one"
    assert flip_events(first, second) == ["NodeHasDiskPressure", "NodeNotReady"]


def test_reasons_and_messages_of_pressure_NODE_020() -> None:
    under = [Pressure(kind) for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    calm, pressed = conditions([], [], [], "t1"), conditions(under, [], [], "t2")
    assert [(c["reason"], c["message"]) for c in pressed[:3]] == [
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ]
    assert [(c["reason"], c["message"]) for c in calm[:3]] == [
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ]
    assert flip_events(calm, pressed) == [
        "NodeHasInsufficientMemory",
        "NodeHasDiskPressure",
        "NodeHasInsufficientPID",
    ]


def test_texts_of_a_runtime_that_is_not_ready_NODE_023() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        pleg: list[str | None] = ["pleg has yet to be successful"]
        state = RuntimeState(loop.clock, lambda: pleg[0])
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

    run_virtual(main)


def test_a_node_that_may_not_register_waits_for_somebody_else_NODE_005() -> None:
    async def body(world: World) -> None:
        await asyncio.sleep(30)
        assert world.api.requests("POST") == []
        await world.api.request("POST", "/api/v1/nodes", body={"metadata": {"name": "n1"}})
        await asyncio.sleep(15)
        assert (await world.node())["status"]["conditions"][-1]["type"] == "Ready"

    registered(body, register=False)


class Machine(RealMachine):
    """This machine with 4 cores, 1000 bytes of memory and a disk of 2000."""

    def cpu_count(self) -> int:
        return 4

    def memory(self) -> MemoryStats:
        return MemoryStats(1000, 0, 0)

    def filesystem(self, path: str) -> FilesystemStats:
        return FilesystemStats(
            device="disk",
            capacity_bytes=2000,
            available_bytes=0,
            inodes=0,
            inodes_free=0,
            time_ns=0,
        )

    def boot_id(self) -> str:
        return "boot"

    def topology(self) -> MachineTopology:
        return MachineTopology((), (NumaNode(0, 1000, (HugePages(2 << 20, 3),)),))


@pytest.mark.parametrize(
    ("settings", "pods", "disk"),
    [
        ({}, 110, 2000),
        ({"pods_per_core": 10}, 40, 2000),
        ({"pods_per_core": 50}, 110, 2000),
        ({"local_storage_capacity_isolation": False}, 110, None),
    ],
)
def test_capacity_of_a_node_NODE_030(settings: Any, pods: int, disk: int | None) -> None:
    config = KubeletConfiguration(eviction_hard={}, **settings)
    facts = node_facts(config, "n1", Machine(RealClock()), root_dir="/r")
    assert {name: amount // NANO for name, amount in facts.capacity.items()} == {
        "cpu": 4,
        "memory": 1000,
        "hugepages-2Mi": 6 << 20,
        "pods": pods,
    } | ({} if disk is None else {"ephemeral-storage": disk})


def test_what_a_node_says_about_itself_NODE_032_NODE_033() -> None:
    config = KubeletConfiguration(eviction_hard={})
    facts = node_facts(
        config,
        "n1",
        machine=Machine(RealClock()),
        root_dir="/r",
        node_ip="10.0.0.7",
        runtime_version="containerd://1.6.20",
    )
    status = node_status(facts, [])
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.7"},
        {"type": "Hostname", "address": "n1"},
    ]
    info = status["nodeInfo"]
    assert info["containerRuntimeVersion"] == "containerd://1.6.20"
    assert (info["bootID"], info["kubeProxyVersion"], info["operatingSystem"]) == (
        "boot",
        "",
        "linux",
    )
    assert info["kernelVersion"] == os.uname().release
    unknown = node_facts(config, "n1", Machine(RealClock()), root_dir="/r")
    assert unknown.info["containerRuntimeVersion"] == "Unknown"


@pytest.mark.parametrize(
    ("flag", "standalone", "wanted"),
    [("10.1.2.3", False, ("10.1.2.3",)), ("::1", True, ("::1",)), ("", True, ())],
)
def test_the_address_of_a_node_NODE_032(flag: str, standalone: bool, wanted: Any) -> None:
    assert host_ips(flag, standalone=standalone) == wanted


def test_a_wrong_node_ip_is_a_usage_error_NODE_032() -> None:
    with pytest.raises(UsageError, match=r"--node-ip 1\.2\.3: wanted an IP address"):
        host_ips("1.2.3", standalone=True)


def test_allocatable_leaves_out_reserves_and_thresholds_NODE_031() -> None:
    capacity = {"cpu": 4 * NANO, "memory": 1000 * NANO, "ephemeral-storage": 1000 * NANO}
    config = replace(
        KubeletConfiguration(),
        system_reserved={"cpu": "500m", "memory": "100"},
        kube_reserved={"cpu": "5"},
        eviction_hard={"memory.available": "300", "nodefs.available": "10%"},
    )
    found = allocatable_of(capacity, reservations_of(config, capacity))
    assert found == {"cpu": 0, "memory": 600 * NANO, "ephemeral-storage": 900 * NANO}


def test_adoption_corrects_nothing_that_is_right_NODE_004() -> None:
    good = {
        "labels": dict(FACTS.labels),
        "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
    }
    assert adoption_patch(FACTS, good) == {}


def test_the_node_name_is_trimmed_and_lower_case_NODE_001() -> None:
    assert node_name(" Node-A ") == "node-a"
    with pytest.raises(NodeNameError, match="empty hostname is invalid"):
        node_name("  ")
    for wrong in ("a b", "-a", "a..b", "a_b", "x" * 254):
        with pytest.raises(NodeNameError, match="is no node name"):
            node_name(wrong)
    assert node_name("a-1.example.com") == "a-1.example.com"


def machine(root: Path, **files: str) -> RealMachine:
    for name, text in {"proc/meminfo": "MemTotal:  2048 kB\n", **files}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return RealMachine(RealClock(), root)


@pytest.mark.parametrize(
    ("files", "working_set"),
    [
        (
            {
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
                "sys/fs/cgroup/memory/memory.stat": "cache 5\ntotal_inactive_file 300\n",
            },
            700,
        ),
        (
            {
                "sys/fs/cgroup/memory.current": "1000\n",
                "sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 1300\n",
            },
            0,
        ),
        ({"sys/fs/cgroup/memory.stat": "anon 600\nfile 500\ninactive_file 100\n"}, 1000),
    ],
)
def test_memory_of_cgroup_v1_v2_and_the_v2_root_EVIC_026(
    tmp_path: Path, files: dict[str, str], working_set: int
) -> None:
    memory = machine(tmp_path, **files).memory()
    assert (memory.total_bytes, memory.working_set_bytes) == (2048 * 1024, working_set)


def test_unreadable_machine_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"memory\.stat"):
        machine(tmp_path).memory()


def test_this_machine_answers(tmp_path: Path) -> None:
    real = RealMachine(RealClock())
    filesystem = real.filesystem(str(tmp_path))
    assert 0 < filesystem.available_bytes <= filesystem.capacity_bytes
    assert real.filesystem(str(tmp_path)).device == filesystem.device
    with pytest.raises(FileNotFoundError):
        real.filesystem(str(tmp_path / "nothing"))
    facts = node_facts(KubeletConfiguration(), "n1", real, root_dir=str(tmp_path))
    assert facts.capacity["cpu"] == real.cpu_count() * NANO
    assert facts.capacity["pods"] == 110 * NANO


def test_what_a_node_says_of_its_runtime_and_of_features_NODE_035() -> None:
    handlers = {"runc": HandlerFeatures(True, False), "": HandlerFeatures(False, True)}
    fields = runtime_fields(handlers, strict_groups=True, declared=declared_features({}))
    assert fields == {
        "declaredFeatures": [
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            "RestartAllContainersOnContainerExits",
        ],
        "features": {"supplementalGroupsPolicy": True},
        "runtimeHandlers": [
            {
                "name": "",
                "features": {"recursiveReadOnlyMounts": False, "userNamespaces": True},
            },
            {
                "name": "runc",
                "features": {"recursiveReadOnlyMounts": True, "userNamespaces": False},
            },
        ],
    }
    gates = {"NodeDeclaredFeatures": False}
    none = runtime_fields({}, strict_groups=False, declared=declared_features(gates))
    assert none == {}


def test_the_runtimes_fields_are_written_when_they_change_NODE_035() -> None:
    async def body(world: World) -> None:
        await asyncio.sleep(15)
        assert "features" not in (await world.node())["status"]
        world.told["features"] = {"supplementalGroupsPolicy": True}
        await asyncio.sleep(11)
        assert (await world.node())["status"]["features"] == {"supplementalGroupsPolicy": True}

    registered(body)


def test_a_hurry_writes_the_status_at_once_NODE_061() -> None:
    async def body(world: World) -> None:
        await asyncio.sleep(15)
        world.not_ready.append("node is shutting down")
        world.registrar.hurry()
        await asyncio.sleep(0.1)
        ready = (await world.node())["status"]["conditions"][-1]
        assert (ready["status"], ready["message"]) == ("False", "node is shutting down")

    registered(body)


def image(number: int, size_bytes: int, **more: Any) -> ImageRecord:
    return ImageRecord(f"sha256:{number}", size_bytes, **more)


def test_images_of_the_node_NODE_035() -> None:
    tags, digests = ("a:1", "a:2", "a:3", "a:4"), ("a@sha256:1", "a@sha256:2")
    big = image(1, 9, repo_tags=tags, repo_digests=digests)
    shown = images_shown([image(2, 3), image(3, 3), big], -1)
    assert shown[0] == {"names": [*digests, "a:1", "a:2", "a:3"], "sizeBytes": 9}
    assert [row["sizeBytes"] for row in shown] == [9, 3, 3]
    assert images_shown([image(2, 3, repo_tags=("x",)), image(3, 3), big], 2)[1]["names"] == []
    assert images_shown([big], 0) == []


def test_a_runtime_that_lists_no_images_changes_nothing_NODE_035() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        answers: list[Any] = [(image(1, 9),), RuntimeError("gone"), (image(1, 9), image(2, 3))]

        async def listed() -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        images = NodeImages(listed, -1, loop.clock)
        assert images.fields() == {}
        task = asyncio.create_task(images.run())
        numbers = []
        for _ in range(3):
            await asyncio.sleep(1)
            numbers.append(len(images.fields()["images"]))
            await asyncio.sleep(29)
        assert numbers == [1, 1, 2]
        task.cancel()

    run_virtual(main)


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("1.6.20~ds1", "r://1.6.20"),
        ("1.6.20", "r://1.6.20"),
        ("v2.1.0-rc.1+k3s1", "r://2.1.0-rc.1+k3s1"),
        ("1.7.24-0ubuntu1~24.04", "r://1.7.24"),
        ("1.2", "r://1.2"),
        ("1.02.3", "r://1.2.3"),
        ("1.2.3-01", "r://1.2.3"),
        ("7", "Unknown"),
        ("01.2.3", "Unknown"),
        ("dev", "Unknown"),
        ("", "Unknown"),
    ],
)
def test_the_runtimes_version_without_a_distributions_suffix_NODE_033(
    version: str, shown: str
) -> None:
    assert runtime_version("r", version) == shown
