"""A machine with two sockets: whole sockets, cores and threads, and resources of one NUMA node."""

from typing import Any

from kubelet_conformance.cases.resources.cpus import created, guaranteed
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from refkubelet.model.cpuset import parse_cpuset

STATUS, NODE = Feature.STATUS, Feature.NODE_RESOURCES
GI = 1024**3
# CPU n and its sibling n + 32; the first 16 cores are socket 0.
SERVER = {"sockets": 2, "cores": 16, "threads": 2, "memory_bytes": 128 * GI}
SOCKETS = (
    frozenset((*range(16), *range(32, 48))),
    frozenset((*range(16, 32), *range(48, 64))),
)


def static(**fields: Any) -> dict[str, Any]:
    """Policy static with a core reserved, and further fields of the configuration."""
    return {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,32", **fields}


async def refusal(node: Node, name: str) -> tuple[str, str]:
    """Run until the pod has failed, and return its reason and message."""
    await node.run_until(
        lambda: node.phase(name) == "Failed", within_s=limits.START_S, what=f"{name} is refused"
    )
    status = (node.pod(name) or {})["status"]
    return status["reason"], status["message"]


@conformance(
    id="cpus-whole-units", rules=["CG-081"], needs=[STATUS, NODE], node_config=static(),
    machine=SERVER,
)  # fmt: skip
async def requests_take_whole_sockets_and_cores(node: Node) -> None:
    """A request for 32 CPUs gets the free socket; one for 2 CPUs a whole core, on the socket with
    the fewest free CPUs."""
    await node.apply_static(pod("large", guaranteed("socket", "32")))
    await node.wait_running("large", "socket")
    await node.apply_static(pod("small", guaranteed("core", "2")))
    await node.wait_running("small", "core")
    socket, core = (parse_cpuset(created(node, n).cpuset_cpus) for n in ("socket", "core"))
    expect_equal(node, socket, SOCKETS[1], "CPUs of the large container")
    expect_equal(node, core, {1, 33}, "CPUs of the small container")


@conformance(
    id="cpus-smt", rules=["CG-081", "LIFE-223"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(cpuManagerPolicyOptions={"full-pcpus-only": "true"}),
)  # fmt: skip
async def parts_of_cores_are_refused_with_full_pcpus_only(node: Node) -> None:
    """With full-pcpus-only a request for an odd number of CPUs is refused on a machine with two
    threads per core."""
    await node.apply_static(pod("web", guaranteed("main", "3")))
    reason, message = await refusal(node, "web")
    expect_equal(node, reason, "SMTAlignmentError", "reason")
    text = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"
    expect_equal(node, message, f"Pod was rejected: {text}", "message")


@conformance(
    id="cpus-across-numa", rules=["CG-081"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(cpuManagerPolicyOptions={"distribute-cpus-across-numa": "true"}),
    since="1.33",
)  # fmt: skip
async def what_needs_two_nodes_is_spread_evenly(node: Node) -> None:
    """With distribute-cpus-across-numa a request for 40 CPUs gets 20 of each NUMA node."""
    await node.apply_static(pod("web", guaranteed("main", "40")))
    await node.wait_running("web")
    cpus = parse_cpuset(created(node, "main").cpuset_cpus)
    expect_equal(node, [len(cpus & socket) for socket in SOCKETS], [20, 20], "CPUs by node")


@conformance(
    id="topology-single-node", rules=["CG-083", "LIFE-223"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(topologyManagerPolicy="single-numa-node"),
)  # fmt: skip
async def what_does_not_fit_a_node_is_refused(node: Node) -> None:
    """With single-numa-node a request for 31 CPUs gets those of one node, and one for 33 is
    refused."""
    await node.apply_static(pod("large", guaranteed("both", "33")))
    reason, message = await refusal(node, "large")
    expect_equal(node, reason, "TopologyAffinityError", "reason")
    text = "Resources cannot be allocated with Topology locality"
    expect_equal(node, message, f"Pod was rejected: {text}", "message")
    await node.apply_static(pod("small", guaranteed("one", "31")))
    await node.wait_running("small", "one")
    cpus = parse_cpuset(created(node, "one").cpuset_cpus)
    expect(node, cpus < SOCKETS[1], "31 CPUs of node 1")


@conformance(
    id="topology-best-effort", rules=["CG-083"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(topologyManagerPolicy="best-effort"),
)  # fmt: skip
async def best_effort_never_refuses(node: Node) -> None:
    """With best-effort a container for which no single node has room runs all the same."""
    await node.apply_static(pod("first", guaranteed("one", "20")))
    await node.wait_running("first", "one")
    await node.apply_static(pod("second", guaranteed("two", "20")))
    await node.wait_running("second", "two")
    await node.apply_static(pod("third", guaranteed("three", "20")))
    await node.wait_running("third", "three")
    cpus = parse_cpuset(created(node, "three").cpuset_cpus)
    expect(node, all(cpus & socket for socket in SOCKETS), "CPUs of both nodes")


@conformance(
    id="topology-restricted", rules=["CG-083"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(topologyManagerPolicy="restricted"),
)  # fmt: skip
async def restricted_refuses_what_one_node_could_have_given(node: Node) -> None:
    """With restricted a request for 20 CPUs, which would fit one node, is refused when no node has
    them free; one for 40, which needs both nodes anyway, is not."""
    await node.apply_static(pod("first", guaranteed("one", "20")))
    await node.wait_running("first", "one")
    await node.apply_static(pod("second", guaranteed("two", "20")))
    await node.wait_running("second", "two")
    await node.apply_static(pod("third", guaranteed("three", "20")))
    reason, _ = await refusal(node, "third")
    expect_equal(node, reason, "TopologyAffinityError", "reason")
    await node.remove_static("first")
    await node.remove_static("second")
    await node.run_for(limits.STOP_S)
    await node.apply_static(pod("fourth", guaranteed("four", "40")))
    await node.wait_running("fourth", "four")


@conformance(
    id="topology-pod-scope", rules=["CG-083"], needs=[STATUS, NODE], machine=SERVER,
    node_config=static(topologyManagerPolicy="single-numa-node", topologyManagerScope="pod"),
)  # fmt: skip
async def with_pod_scope_all_containers_are_on_one_node(node: Node) -> None:
    """With scope pod both containers of a pod are on one NUMA node, and a pod that needs more than
    one is refused."""
    await node.apply_static(pod("large", guaranteed("a", "20"), guaranteed("b", "20")))
    reason, _ = await refusal(node, "large")
    expect_equal(node, reason, "TopologyAffinityError", "reason")
    await node.apply_static(pod("web", guaranteed("c", "16"), guaranteed("d", "16")))
    await node.wait_running("web", "c", "d")
    cpus = [parse_cpuset(created(node, name).cpuset_cpus) for name in ("c", "d")]
    expect_equal(node, cpus[0] | cpus[1], SOCKETS[1], "CPUs of both containers")
