"""CPU and memory at their bounds: the least quota, amounts of the whole pod, no quota at all."""

from typing import Any

from kubelet_conformance.cases.lifecycle.starting.config import created
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS


def amounts(resources: Any) -> tuple[int, int, int]:
    """CPU shares, CPU quota and memory limit."""
    return resources.cpu_shares, resources.cpu_quota, resources.memory_limit_in_bytes


# Kubelet 1.36.2 without cgroups of pods (cgroupsPerQOS false) ends with a nil pointer in the second
# sync of a pod that has resources of its own.
@conformance(
    id="config-least-quota",
    rules=["LIFE-139.2", "LIFE-139.5"],
    needs=[STATUS, Feature.CGROUPS],
    since="1.34",
)
async def a_container_gets_the_limits_of_its_pod_and_at_least_a_quota_of_one_ms(node: Node) -> None:
    """A CPU limit of 5m makes a quota of 1000, the least one; a container without limits has those
    of its pod, also for its CPU shares."""
    small = container("small", resources={"limits": {"cpu": "5m"}})
    await node.apply_static(pod("tiny", small))
    whole = {"limits": {"cpu": "500m", "memory": "64Mi"}}
    own = container("own", resources={"limits": {"cpu": "200m", "memory": "16Mi"}})
    await node.apply_static(pod("level", container("bare"), own, resources=whole))
    tiny = (await created(node, "small")).linux.resources
    expect_equal(node, (tiny.cpu_shares, tiny.cpu_quota), (5, 1000), "shares and quota of small")
    bare, own_linux = [(await created(node, name)).linux.resources for name in ("bare", "own")]
    expect_equal(node, amounts(bare), (512, 50_000, 64 << 20), "shares, quota, memory of bare")
    expect_equal(node, amounts(own_linux), (204, 20_000, 16 << 20), "shares, quota, memory of own")


@conformance(id="config-overhead", rules=["LIFE-139.7"], needs=[STATUS], alone=True)
async def the_overhead_of_a_pod_is_told_apart(node: Node) -> None:
    """The resources of the sandbox are those of its containers; the overhead is passed beside
    them, as shares, quota and memory."""
    main = container("main", resources={"limits": {"cpu": "200m", "memory": "16Mi"}})
    await node.apply_static(pod("web", main, overhead={"cpu": "100m", "memory": "8Mi"}))
    await created(node)
    linux = node.calls("RunPodSandbox", pod="web")[0].request.config.linux
    expect_equal(node, amounts(linux.resources), (204, 20_000, 16 << 20), "resources")
    expect_equal(node, amounts(linux.overhead), (102, 10_000, 8 << 20), "overhead")


@conformance(
    id="config-no-quota",
    rules=["LIFE-139.6"],
    needs=[STATUS],
    node_config={"cpuCFSQuota": False},
    alone=True,
)
async def without_cfs_quota_a_limit_makes_none(node: Node) -> None:
    """With cpuCFSQuota false a CPU limit sets neither period nor quota; the memory limit is set."""
    main = container("main", resources={"limits": {"cpu": "500m", "memory": "64Mi"}})
    await node.apply_static(pod("web", main))
    resources = (await created(node)).linux.resources
    amounts = (resources.cpu_period, resources.cpu_quota, resources.memory_limit_in_bytes)
    expect_equal(node, amounts, (0, 0, 64 << 20), "period, quota, memory limit")
