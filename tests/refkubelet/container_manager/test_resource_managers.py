"""The managers in the kubelet: what is made, what containers and admission get, what is told."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from pods import container, make_pod, named
from resource_world import Around, sure

from fakecri import FakeNode, uniform_topology
from refkubelet.admission.admit_handler import Operation, PodAdmitAttributes
from refkubelet.config import ConfigError, KubeletConfiguration
from refkubelet.config.load import parse_config
from refkubelet.container_manager.resource_managers import ResourceDeps, ResourceManagers
from refkubelet.container_manager.topology.manager import allocated
from refkubelet.cri.target import CriCallError
from refkubelet.kuberuntime.common.runtime_options import ResourceOptions
from refkubelet.kuberuntime.config.linux_resources import container_resources, sandbox_resources
from refkubelet.model.cpuset import ANYWHERE, Placement
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid

pytestmark = pytest.mark.virtual_time

STATIC: dict[str, Any] = {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "1"}}
MEMORY: dict[str, Any] = {
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "1Gi"},
    "evictionHard": {"nodefs.available": "1%"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}


def config(**fields: Any) -> KubeletConfiguration:
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    return parse_config(json.dumps({**kind, **fields}).encode(), "kubelet.yaml")


@dataclass
class Updates:
    """A runtime that takes, or refuses, new resources."""

    seen: list[tuple[str, str]] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)

    async def update_container_resources(self, container_id: str, resources: Message) -> None:
        if container_id in self.refuses:
            raise CriCallError("UpdateContainerResources", "UNKNOWN", "no")
        assert isinstance(resources, Message)
        self.seen.append((container_id, resources.cpuset_cpus))  # type: ignore[attr-defined]


class World:
    """Managers over a fake node, with pods whose containers run at once."""

    def __init__(self, tmp_path: Path, layout: dict[str, Any] | None = None) -> None:
        self.root = tmp_path
        self.around = Around()
        self.runtime = Updates()
        self.statuses: dict[str, PodStatus] = {}
        self.node: Any = FakeNode()
        if layout is not None:
            self.node.layout = uniform_topology(**layout)

    def managers(self, **fields: Any) -> ResourceManagers:
        loop: Any = asyncio.get_running_loop()
        deps = ResourceDeps(
            clock=loop.clock,
            machine=self.node,
            root_dir=self.root,
            runtime=self.runtime,
            active=self.around.active,
            status=self.statuses.get,
        )
        return ResourceManagers(config(**fields), deps)

    def runs(self, web: Pod, *, state: str = "running") -> None:
        """The pod is active, and its status shows its containers."""
        self.around.pods.append(web)
        shown = [
            {
                "name": c.name,
                "containerID": f"fake://{c.name}-1",
                "image": "",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {state: {"exitCode": 0} if state == "terminated" else {}},
            }
            for c in web.spec.containers
        ]
        self.statuses[uid(web)] = PodStatus.from_dict({"containerStatuses": shown})


async def test_default_policies_make_nothing_but_two_files_CG_081(tmp_path: Path) -> None:
    world = World(tmp_path)
    managers = world.managers()
    assert (managers.cpus, managers.memory, managers.reconciles) == (None, None, False)
    assert managers.topology.providers == ()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "cpu_manager_state",
        "memory_manager_state",
    ]
    web = make_pod(sure("main", "1"), uid="u")
    assert managers.placement(web, named(web, "main")) is ANYWHERE
    assert not managers.has_exclusive_cpus(web)
    managers.starting(web, named(web, "main"))
    assert allocated(managers.topology)(PodAdmitAttributes(web)) is None


async def admit(managers: ResourceManagers, web: Pod, operation: Operation = Operation.ADD) -> Any:
    answer: Any = allocated(managers.topology)(PodAdmitAttributes(web, (), operation))
    return await answer


async def test_placement_after_admission_CG_050(tmp_path: Path) -> None:
    world = World(tmp_path)
    managers = world.managers(**STATIC)
    web = make_pod(sure("main", "2"), sure("more", "500m"), uid="u")
    other = make_pod(container(), uid="v")
    world.around.pods = [web, other]
    assert await admit(managers, web) is None
    assert managers.placement(web, named(web, "main")) == Placement("1-2", "", own_cpus=True)
    assert managers.placement(web, named(web, "more")) == Placement("0,3")
    assert managers.placement(other, named(other, "main")) == Placement("0,3")
    assert managers.has_exclusive_cpus(web)
    assert not managers.has_exclusive_cpus(other)
    assert await admit(managers, web, Operation.RESIZE) is None
    assert managers.placement(web, named(web, "main")).cpus == "1-2"


async def test_the_quota_gate_gives_the_quota_back_CG_031(tmp_path: Path) -> None:
    gates = {"DisableCPUQuotaWithExclusiveCPUs": False}
    managers = World(tmp_path).managers(**STATIC, featureGates=gates)
    web = make_pod(sure("main", "2"), uid="u")
    assert await admit(managers, web) is None
    assert managers.placement(web, named(web, "main")) == Placement("1-2", "")
    assert not managers.has_exclusive_cpus(web)


def test_own_cpus_have_no_quota_CG_031() -> None:
    web = make_pod(sure("main", "2"), uid="u")
    options = ResourceOptions(cpu_cfs_quota=True)
    own = Placement("1-2", "0,1", own_cpus=True)
    told = container_resources(named(web, "main"), web, options, own)
    assert (told.cpu_quota, told.cpu_period, told.cpu_shares) == (-1, 100_000, 2048)
    assert (told.cpuset_cpus, told.cpuset_mems) == ("1-2", "0,1")
    assert container_resources(named(web, "main"), web, options).cpu_quota == 200_000
    assert sandbox_resources(web, options, own_cpus=True).cpu_quota == -1
    assert sandbox_resources(web, options).cpu_quota == 200_000
    unlimited = ResourceOptions(cpu_cfs_quota=False)
    assert container_resources(named(web, "main"), web, unlimited, own).cpu_quota == 0


async def test_refusals_come_with_their_reason_LIFE_223(tmp_path: Path) -> None:
    managers = World(tmp_path).managers(**STATIC)
    refusal = await admit(managers, make_pod(sure("main", "4"), uid="u"))
    assert refusal.reason == "UnexpectedAdmissionError"
    assert refusal.message == (
        "Allocate failed due to not enough cpus available to satisfy request: requested=4, "
        "available=3, which is unexpected"
    )


async def test_a_new_kubelet_finds_the_assignments_CG_081(tmp_path: Path) -> None:
    world = World(tmp_path)
    web = make_pod(sure("main", "2"), uid="u")
    world.around.pods = [web]
    assert await admit(world.managers(**STATIC), web) is None
    later = world.managers(**STATIC)
    assert later.placement(web, named(web, "main")).cpus == "1-2"
    assert await admit(later, web) is None
    assert later.placement(web, named(web, "main")).cpus == "1-2"


async def at(second: float) -> None:
    """Wait until that second of virtual time, and what happens then is over."""
    loop: Any = asyncio.get_running_loop()
    await asyncio.sleep(second - loop.time() + 0.001)


async def test_running_containers_are_told_of_changes_CG_081(tmp_path: Path) -> None:
    """Every period, what shares CPUs is told the shared ones, what changed nothing is not; what
    was created with its own CPUs is not told them."""
    world = World(tmp_path)
    managers = world.managers(**STATIC, cpuManagerReconcilePeriod="10s")
    other, web = make_pod(container("other"), uid="v"), make_pod(sure("main", "2"), uid="u")
    world.runs(other)
    task = asyncio.create_task(managers.run())
    await at(0)
    assert world.runtime.seen == [("other-1", "0-3")]
    assert await admit(managers, web) is None
    managers.starting(web, named(web, "main"))
    world.runs(web)
    await at(9)
    assert len(world.runtime.seen) == 1
    await at(30)
    assert world.runtime.seen[1:] == [("other-1", "0,3")]
    world.around.pods.remove(web)
    await at(40)
    assert world.runtime.seen[2:] == [("other-1", "0-3")]
    task.cancel()


async def test_what_the_runtime_refuses_is_told_again_CG_081(tmp_path: Path) -> None:
    world = World(tmp_path)
    managers = world.managers(**STATIC)
    world.runs(make_pod(container("other"), uid="v"))
    world.runtime.refuses = {"other-1"}
    task = asyncio.create_task(managers.run())
    await at(15)
    assert world.runtime.seen == []
    world.runtime.refuses = set()
    await at(45)
    assert world.runtime.seen == [("other-1", "0-3")]
    task.cancel()


async def test_containers_that_do_not_run_are_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    managers = world.managers(**STATIC)
    world.runs(make_pod(container("over"), uid="v"), state="terminated")
    world.runs(make_pod(container("waits"), uid="w"), state="waiting")
    world.around.pods.append(make_pod(container("unknown"), uid="x"))
    task = asyncio.create_task(managers.run())
    await at(15)
    assert world.runtime.seen == []
    task.cancel()


async def test_memory_and_cpus_together_CG_082(tmp_path: Path) -> None:
    world = World(tmp_path, {"sockets": 2, "cores": 4, "memory_bytes": 8 << 30})
    reserved = {"cpu": "1", "memory": "1Gi"}
    managers = world.managers(
        **{**MEMORY, **STATIC, "systemReserved": reserved},
        topologyManagerPolicy="single-numa-node",
    )
    web = make_pod(sure("main", "4", "3Gi"), uid="u")
    world.around.pods = [web]
    assert await admit(managers, web) is None
    place = managers.placement(web, named(web, "main"))
    assert place == Placement("4-7", "1", own_cpus=True)
    refusal = await admit(managers, make_pod(sure("main", "4"), uid="v"))
    assert refusal.reason == "TopologyAffinityError"


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"cpuManagerPolicy": "dynamic"}, 'unknown policy: "dynamic"'),
    ({"memoryManagerPolicy": "static"}, 'unknown policy: "static"'),
    (
        {"memoryManagerPolicy": "BestEffort"},
        'policy "BestEffort" is not available for platform "linux"',
    ),
    (
        {"cpuManagerPolicy": "static"},
        "[cpumanager] unable to determine reserved CPU resources for static policy",
    ),
    (
        {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        "new none policy error: None policy: received unsupported "
        "options=map[full-pcpus-only:true]",
    ),
    (
        {**STATIC, "cpuManagerPolicyOptions": {"x": "true"}},
        'new static policy error: unknown CPU Manager Policy option: "x"',
    ),
    (
        {"reservedSystemCPUs": "0,9"},
        "reserved-cpus: 0,9 is not a subset of online-cpus: 0-3",
    ),
    (
        {
            **STATIC,
            "cpuManagerPolicyOptions": {"align-by-socket": "true"},
            "featureGates": {"CPUManagerPolicyAlphaOptions": True},
            "topologyManagerPolicy": "single-numa-node",
        },
        "new static policy error: Topolgy manager single-numa-node policy is incompatible with "
        "CPUManager align-by-socket policy option",
    ),
    (
        {
            **MEMORY,
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
        },
        'the total amount "2Gi" of type "memory" is not equal to the value "1Gi"',
    ),
    (
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "3"},
        },
        'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
    ),
]


@pytest.mark.parametrize(("fields", "words"), REFUSALS)
async def test_impossible_configurations_are_start_failures(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    """CG-081, CG-082, CG-083."""

    with pytest.raises(ConfigError) as raised:
        World(tmp_path).managers(**fields)
    assert str(raised.value).startswith(words)


async def test_a_state_that_does_not_fit_says_what_to_do_CG_081(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.managers(**STATIC)
    world.node.cpus = 8
    with pytest.raises(ConfigError) as raised:
        world.managers(**STATIC)
    assert str(raised.value) == (
        'start cpu manager error: current set of available CPUs "0-7" doesn\'t match with CPUs in '
        'state "0-3", please drain this node and delete the CPU manager checkpoint file '
        f'"{tmp_path}/cpu_manager_state" before restarting Kubelet'
    )


async def test_changed_memory_is_a_start_failure_CG_082(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.managers(**MEMORY)
    world.node.memory_bytes *= 2
    with pytest.raises(ConfigError, match="the expected machine state is different from the real"):
        world.managers(**MEMORY)


# -- the configuration ----------------------------------------------------------------------------


def test_named_cpus_replace_what_is_said_of_cpu_CG_081() -> None:
    loaded = config(
        reservedSystemCPUs="0,4-5",
        kubeReserved={"cpu": "2", "memory": "1Gi"},
        systemReserved={"cpu": "1"},
    )
    assert dict(loaded.kube_reserved) == {"memory": "1Gi"}
    assert dict(loaded.system_reserved) == {"cpu": "3"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"reservedSystemCPUs": "0-"},
            "unable to parse reservedSystemCPUs (--reserved-cpus) 0-, error: strconv.Atoi: "
            'parsing "": invalid syntax',
        ),
        (
            {"reservedSystemCPUs": "0", "systemReservedCgroup": "/system"},
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
        ),
        (
            {"reservedMemory": [{"numaNode": 1, "limits": {"cpu": "1"}}]},
            'the limit type "cpu" for NUMA node 1 is not supported, only [memory '
            "hugepages-<HugePageSize>] is accepted",
        ),
        (
            {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "0"}}]},
            'reserved memory may not be zero for NUMA node 1 and resource "memory"',
        ),
        (
            {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "1Gi"}}] * 2},
            'the reserved memory has a duplicate value for NUMA node 1 and resource "memory"',
        ),
        (
            {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "much"}}]},
            "reservedMemory of NUMA node 1, memory: 'much' is no quantity",
        ),
        (
            {"topologyManagerPolicy": "all"},
            'topologyManagerPolicy (--topology-manager-policy) "all" must be one of: ["none" ',
        ),
    ],
)
def test_wrong_fields_are_named_CFG_005(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(**fields)
    assert f"invalid configuration: {words}" in str(raised.value)
