"""Memory manager policy Static: memory of NUMA nodes for Guaranteed pods."""

from typing import Any

from kubelet_conformance.cases.resources.cpus import created
from kubelet_conformance.cases.resources.topology import SERVER, refusal
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, KnownBug, conformance

STATUS, NODE = Feature.STATUS, Feature.NODE_RESOURCES
# 64 GiB a node; 1 GiB and the 1 MiB of the hard eviction threshold are kept from pods.
CONFIG = {
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "1Gi"},
    "evictionHard": {"memory.available": "1Mi"},
    "reservedMemory": [
        {"numaNode": 0, "limits": {"memory": "513Mi"}},
        {"numaNode": 1, "limits": {"memory": "512Mi"}},
    ],
}


def guaranteed(name: str, memory: str, work: Any = None, **fields: Any) -> Container:
    """A container whose limits are its requests."""
    amounts = {"cpu": "100m", "memory": memory}
    return container(name, work, resources={"requests": amounts, "limits": amounts}, **fields)


@conformance(
    id="memory-nodes", rules=["CG-082", "CG-050"], needs=[STATUS, NODE], node_config=CONFIG,
    machine=SERVER,
)  # fmt: skip
async def memory_of_guaranteed_pods_is_of_few_nodes(node: Node) -> None:
    """Containers of Guaranteed pods get memory of one NUMA node while it has enough; for others no
    nodes are set."""
    await node.apply_static(pod("a", guaranteed("one", "40Gi")))
    await node.wait_running("a", "one")
    await node.apply_static(pod("b", guaranteed("two", "40Gi")))
    await node.wait_running("b", "two")
    await node.apply_static(pod("c", container("any")))
    await node.wait_running("c", "any")
    nodes = [created(node, name).cpuset_mems for name in ("one", "two", "any")]
    expect_equal(node, nodes, ["0", "1", ""], "NUMA nodes")


@conformance(
    id="memory-group", rules=["CG-082"], needs=[STATUS, NODE], node_config=CONFIG, machine=SERVER
)
async def large_requests_take_a_group_of_nodes(node: Node) -> None:
    """A request for 80 GiB is met by both nodes together, and from then on neither gives memory
    alone."""
    await node.apply_static(pod("a", guaranteed("both", "80Gi")))
    await node.wait_running("a", "both")
    await node.apply_static(pod("b", guaranteed("with", "4Gi")))
    await node.wait_running("b", "with")
    nodes = [created(node, name).cpuset_mems for name in ("both", "with")]
    expect_equal(node, nodes, ["0,1", "0,1"], "NUMA nodes")


@conformance(
    id="memory-shortage", rules=["CG-082", "LIFE-223"], needs=[STATUS, NODE], node_config=CONFIG,
    machine=SERVER,
)  # fmt: skip
async def memory_that_no_nodes_have_is_refused(node: Node) -> None:
    """A request is refused when neither a single node nor an allowed group of nodes has so much
    memory free."""
    message = await shortage(node)
    text = (
        "Pod was rejected: Allocate failed due to [memorymanager] failed to get the default NUMA "
        "affinity, no NUMA nodes with enough memory is available, which is unexpected"
    )
    expect_equal(node, message, text, "message")


@conformance(
    id="memory-shortage-aligned", rules=["CG-082.4"], needs=[STATUS, NODE], machine=SERVER,
    node_config={**CONFIG, "topologyManagerPolicy": "restricted"},
    bugs=[KnownBug("123443", "Memory of several NUMA nodes is given of which one serves single "
                   "allocations", fixed="1.32")],
)  # fmt: skip
async def memory_that_no_nodes_have_is_no_matter_of_alignment(node: Node) -> None:
    """Where no nodes have enough memory there is no hint to prefer, so it is the allocation that
    fails and not the topology manager, even with its policy restricted."""
    await shortage(node)


async def shortage(node: Node) -> str:
    """Take 40 GiB of each node, expect that the allocation of 30 GiB fails, and return what the pod
    is told."""
    await node.apply_static(pod("a", guaranteed("one", "40Gi")))
    await node.wait_running("a", "one")
    await node.apply_static(pod("b", guaranteed("two", "40Gi")))
    await node.wait_running("b", "two")
    await node.apply_static(pod("c", guaranteed("three", "30Gi")))
    reason, message = await refusal(node, "c")
    expect_equal(node, reason, "UnexpectedAdmissionError", "reason")
    return message
