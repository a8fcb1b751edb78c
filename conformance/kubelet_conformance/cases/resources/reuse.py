"""CPUs and memory that are kept from pods, used again within a pod, and free after its end."""

from __future__ import annotations

from typing import Any, Final

from kubelet_conformance.cases.resources.cpus import created
from kubelet_conformance.cases.resources.cpus import guaranteed as with_cpus
from kubelet_conformance.cases.resources.memory import CONFIG as MEMORY
from kubelet_conformance.cases.resources.memory import guaranteed as with_memory
from kubelet_conformance.cases.resources.topology import SERVER
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance
from refkubelet.model.cpuset import parse_cpuset

STATUS, NODE = Feature.STATUS, Feature.NODE_RESOURCES
PLUGINS = (Feature.DEVICE_PLUGINS, Feature.API)  # where the pod-resources API can be asked
ONE_AND_A_HALF: Final[dict[str, Any]] = {
    "cpuManagerPolicy": "static",
    "systemReserved": {"cpu": "1500m"},
}
SMALL: Final = {"cores": 4, "memory_bytes": 8 << 30}


@conformance(
    id="cpus-for-whole-requests", rules=["CG-081.1", "CG-081.6"], needs=[STATUS, NODE],
    node_config=ONE_AND_A_HALF, machine=SMALL,
    since="1.34",
)  # fmt: skip
async def parts_of_cpus_and_pod_level_resources_give_none(node: Node) -> None:
    """A Guaranteed container that requests 1.5 CPUs shares them, and so does one that requests a
    whole CPU in a pod with resources of its own."""
    await node.apply_static(pod("half", with_cpus("fraction", "1500m")))
    own = {"cpu": "1", "memory": "128Mi"}
    level = {"limits": own, "requests": own}
    await node.apply_static(pod("level", with_cpus("whole", "1"), resources=level))
    await node.wait_running("half", "fraction")
    await node.wait_running("level", "whole")
    for name, quota_us in (("fraction", 150_000), ("whole", 100_000)):
        cpu_settings = created(node, name).cpuset_cpus, created(node, name).cpu_quota
        expect_equal(node, cpu_settings, ("0-3", quota_us), f"CPUs and quota of {name}")


@conformance(
    id="cpus-sidecar", rules=["CG-081.1"], needs=[STATUS, NODE], node_config=ONE_AND_A_HALF,
    machine=SMALL,
)  # fmt: skip
async def sidecars_keep_their_cpus(node: Node) -> None:
    """The CPU of a sidecar is not given to the containers after it, which run beside it; that of an
    init container is."""
    first = with_cpus("first", "1", exits(0))
    helper = with_cpus("helper", "1", restartPolicy="Always")
    await node.apply_static(pod("web", with_cpus("main", "1"), init=[first, helper]))
    await node.wait_running("web")
    cpus = [created(node, name).cpuset_cpus for name in ("first", "helper", "main")]
    expect_equal(node, cpus[0], cpus[1], "CPUs of the init container and of the sidecar")
    expect(node, cpus[1] != cpus[2], "other CPUs for main than for the sidecar", cpus)


async def expect_assignable(node: Node, wanted: list[int]) -> None:
    """Run a container with a CPU of its own, and expect these CPUs as assignable, in use or not."""
    await node.apply_static(pod("web", with_cpus("main", "1")))
    await node.wait_running("web")
    allocatable = await node.kubelet.pod_resources("GetAllocatableResources")
    expect_equal(node, sorted(allocatable.cpu_ids), wanted, "assignable CPUs")
    own = parse_cpuset(created(node, "main").cpuset_cpus)
    expect(node, own <= set(wanted), "one of them for main", sorted(own))


@conformance(
    id="cpus-reserved", rules=["CG-081.2", "CG-085.4"], needs=[*PLUGINS, STATUS, NODE],
    node_config=ONE_AND_A_HALF, machine=SMALL,
)  # fmt: skip
async def parts_of_reserved_cpus_are_reserved(node: Node) -> None:
    """A reservation of 1.5 CPUs keeps two CPUs from being exclusive, the first ones."""
    await expect_assignable(node, [2, 3])


@conformance(
    id="cpus-reserved-by-name", rules=["CG-081.2"], needs=[*PLUGINS, STATUS, NODE],
    node_config={"cpuManagerPolicy": "static", "reservedSystemCPUs": "3"}, machine=SMALL,
)  # fmt: skip
async def named_cpus_are_reserved(node: Node) -> None:
    """The CPUs of reservedSystemCPUs are not assignable, and all others are."""
    await expect_assignable(node, [0, 1, 2])


@conformance(
    id="memory-used-again", rules=["CG-082.5"], needs=[STATUS, NODE], node_config=MEMORY,
    machine=SERVER,
)  # fmt: skip
async def memory_of_init_containers_is_used_again(node: Node) -> None:
    """The memory of an init container is used by the next container, and what that does not need is
    free for other pods as soon as it starts."""
    first = with_memory("first", "60Gi", work=exits(0))
    await node.apply_static(pod("a", with_memory("main", "10Gi"), init=[first]))
    await node.wait_running("a")
    await node.apply_static(pod("b", with_memory("second", "45Gi")))
    await node.wait_running("b", "second")
    nodes = [created(node, name).cpuset_mems for name in ("first", "main", "second")]
    expect_equal(node, nodes, ["0", "0", "0"], "NUMA nodes")


async def ended(node: Node, name: str) -> None:
    """Run until nothing of the pod runs any more, and the kubelet knows that."""
    await node.run_until(
        lambda: node.pod(name) is None and node.count("StopPodSandbox", pod=name),
        within_s=2 * limits.STOP_S,
        what=f"{name} has ended",
    )
    await node.run_for(limits.NOTICE_S)


@conformance(
    id="memory-released", rules=["CG-082.1", "CG-082.3"], needs=[STATUS, NODE], node_config=MEMORY,
    machine=SERVER,
)  # fmt: skip
async def memory_of_a_pod_that_is_gone_is_free(node: Node) -> None:
    """The memory of a pod that has ended is given to the next one. What is reserved of a NUMA node
    is given to none: a request that fits a node only with it takes two."""
    await node.apply_static(pod("a", with_memory("one", "60Gi")))
    await node.wait_running("a", "one")
    await node.remove_static("a")
    await ended(node, "a")
    await node.apply_static(pod("b", with_memory("two", "60Gi")))
    await node.wait_running("b", "two")
    await node.remove_static("b")
    await ended(node, "b")
    await node.apply_static(pod("c", with_memory("three", "65200Mi")))
    await node.wait_running("c", "three")
    nodes = [created(node, name).cpuset_mems for name in ("one", "two", "three")]
    expect_equal(node, nodes, ["0", "0", "0,1"], "NUMA nodes")
