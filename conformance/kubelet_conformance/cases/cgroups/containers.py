"""Limits of memory, swap and huge pages that the runtime gets for a container."""

from kubelet_conformance.cases.cgroups.pods import MI, asking, limited
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

CGROUPS, V1, V2 = Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2
NODE, SYSTEMD = Feature.NODE_RESOURCES, Feature.SYSTEMD_CGROUPS


@conformance(id="container-memory-v1", rules=["CG-050"], needs=[V1])
async def a_container_may_not_swap_v1(node: Node) -> None:
    """With cgroup v1 the limit of memory and swap together is the memory limit, so that the
    container cannot swap; without a memory limit both are left out."""
    await node.apply_static(pod("web", container("a", **limited("", "64Mi")), container("b")))
    await node.wait_running("web", "b")
    resources = [c.request.config.linux.resources for c in node.calls("CreateContainer")]
    memory = [(r.memory_limit_in_bytes, r.memory_swap_limit_in_bytes) for r in resources]
    expect_equal(node, memory, [(64 * MI, 64 * MI), (0, 0)], "limits of memory, and with swap")
    expect_equal(node, [dict(r.unified) for r in resources], [{}, {}], "files of v2")


@conformance(id="container-memory-v2", rules=["CG-050", "EVIC-122"], needs=[V2])
async def a_container_may_not_swap_v2(node: Node) -> None:
    """With cgroup v2 CreateContainer carries the files of the cgroup: no swap, and all processes of
    a container are killed together when its memory runs out."""
    await node.apply_static(pod("web", container("main", **limited("", "64Mi"))))
    await node.wait_running("web")
    resources = node.calls("CreateContainer")[0].request.config.linux.resources
    expect_equal(node, resources.memory_limit_in_bytes, 64 * MI, "limit of memory")
    files = {"memory.oom.group": "1", "memory.swap.max": "0"}
    expect_equal(node, dict(resources.unified), files, "files of v2")


@conformance(
    id="container-limited-swap",
    rules=["CG-050"],
    needs=[Feature.API, CGROUPS, V2, NODE],
    node_config={"failSwapOn": False, "memorySwap": {"swapBehavior": "LimitedSwap"}},
    machine={"cores": 4, "memory_bytes": 8192 * MI, "swap_bytes": 4096 * MI},
)
async def a_burstable_container_may_swap_its_share(node: Node) -> None:
    """With LimitedSwap a Burstable container may use the same part of the node's swap as it
    requests of the node's memory.

    Containers of critical pods (every static pod is one), of Guaranteed pods, and those that
    request no memory may use none.
    """
    asks = container("asks", **asking(memory="1Gi"))
    await node.api.create_pod(pod("burst", asks, container("no")))
    await node.api.create_pod(pod("sure", container("main", **limited("100m", "1Gi"))))
    await node.apply_static(pod("static", container("critical", **asking(memory="1Gi"))))
    for name, last in (("burst", "no"), ("sure", "main"), ("static", "critical")):
        await node.wait_running(name, last)
    configs = (call.request.config for call in node.calls("CreateContainer"))
    swap_limits = {c.metadata.name: c.linux.resources.unified["memory.swap.max"] for c in configs}
    expected_limits = {"asks": str(512 * MI), "no": "0", "main": "0", "critical": "0"}
    expect_equal(node, swap_limits, expected_limits, "memory.swap.max")
