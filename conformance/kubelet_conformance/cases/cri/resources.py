"""CPU and memory of containers, as numbers for the runtime."""

from typing import Any

from kubelet_conformance.cases.cri.common import container_config, started
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import Container, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, API, NODE = Feature.STATUS, Feature.API, Feature.NODE_RESOURCES
MI = 1 << 20
FOUR_GI: dict[str, Any] = {"cores": 2, "memory_bytes": 4 << 30}


def sized(name: str, requests: dict[str, str], limits_: dict[str, str], **fields: Any) -> Container:
    """A container with these requests and limits."""
    return container(name, resources={"requests": requests, "limits": limits_}, **fields)


@conformance(
    id="cri-cpu-numbers",
    rules=["LIFE-139.1", "LIFE-139.2", "LIFE-139.3"],
    needs=[STATUS],
    alone=True,
)
async def shares_follow_the_request_and_quotas_the_limit(node: Node) -> None:
    """CPU shares follow the request, and the limit only where there is none; the least are 2, and
    the least quota is 1000. A memory request limits nothing; with a memory limit the limit of
    memory and swap is the same."""
    await node.apply_static(
        pod(
            "web",
            sized("both", {"cpu": "100m"}, {"cpu": "400m"}),
            sized("limit", {}, {"cpu": "400m", "memory": "64Mi"}),
            sized("small", {"cpu": "1m"}, {"cpu": "5m"}),
            sized("memory", {"memory": "32Mi"}, {}),
        )
    )
    names = ("both", "limit", "small", "memory")
    await node.wait_running("web", *names)
    amounts = {}
    for name in names:
        linux = container_config(node, name).linux.resources
        amounts[name] = (linux.cpu_shares, linux.cpu_quota, linux.memory_limit_in_bytes // MI)
    expected = {
        "both": (102, 40_000, 0),
        "limit": (409, 40_000, 64),
        "small": (2, 1000, 0),
        "memory": (2, 0, 0),
    }
    expect_equal(node, amounts, expected, "shares, quota, memory in MiB")


@conformance(id="cri-swap-limit", rules=["LIFE-139.3"], needs=[STATUS, Feature.CGROUP_V1])
async def a_memory_limit_holds_for_memory_and_swap(node: Node) -> None:
    """With cgroup v1 the limit of memory and swap together is the memory limit."""
    await node.apply_static(pod("web", sized("main", {}, {"memory": "64Mi"})))
    await started(node, "web")
    linux = container_config(node, "main").linux.resources
    limits_mi = (linux.memory_limit_in_bytes // MI, linux.memory_swap_limit_in_bytes // MI)
    expect_equal(node, limits_mi, (64, 64), "memory, memory and swap in MiB")


@conformance(
    id="cri-cpu-period", rules=["LIFE-139.2"], needs=[STATUS],
    node_config={"cpuCFSQuotaPeriod": "20ms", "featureGates": {"CustomCPUCFSQuotaPeriod": True}},
)  # fmt: skip
async def the_configured_period_divides_the_quota(node: Node) -> None:
    """Period and quota follow cpuCFSQuotaPeriod."""
    await node.apply_static(pod("web", sized("main", {}, {"cpu": "500m"})))
    await started(node, "web")
    linux = container_config(node, "main").linux.resources
    expect_equal(node, (linux.cpu_period, linux.cpu_quota), (20_000, 10_000), "period and quota")


@conformance(
    id="cri-cpu-no-quota",
    rules=["LIFE-139.6"],
    needs=[STATUS],
    node_config={"cpuCFSQuota": False},
    alone=True,
)
async def without_quotas_only_shares_are_given(node: Node) -> None:
    """With cpuCFSQuota false containers have shares, and neither period nor quota."""
    await node.apply_static(pod("web", sized("main", {}, {"cpu": "500m"})))
    await started(node, "web")
    linux = container_config(node, "main").linux.resources
    cpu_settings = (linux.cpu_shares, linux.cpu_period, linux.cpu_quota)
    expect_equal(node, cpu_settings, (512, 0, 0), "shares, period, quota")


@conformance(
    id="cri-pod-limits",
    rules=["LIFE-139.5", "LIFE-140.5"],
    needs=[STATUS, NODE],
    machine=FOUR_GI,
    since="1.34",
)
async def a_container_without_a_limit_has_that_of_its_pod(node: Node) -> None:
    """Limits at the level of the pod hold for containers that have none of their own; its memory
    request that no container claims is shared among them for their scores."""
    whole = {
        "requests": {"cpu": "200m", "memory": "1280Mi"},
        "limits": {"cpu": "800m", "memory": "2Gi"},
    }
    own = sized("own", {"memory": "256Mi"}, {"cpu": "200m", "memory": "512Mi"})
    await node.apply_static(pod("web", container("free"), own, resources=whole))
    await node.wait_running("web", "free", "own")
    amounts = {}
    for name in ("free", "own"):
        linux = container_config(node, name).linux.resources
        memory = linux.memory_limit_in_bytes // MI
        amounts[name] = (linux.cpu_shares, linux.cpu_quota, memory, linux.oom_score_adj)
    # 1024 MiB are not claimed: 512 for each. Of 4096 these are 12.5 %, with 256 of its own 18.75 %.
    expected = {"free": (819, 80_000, 2048, 875), "own": (204, 20_000, 512, 813)}
    expect_equal(node, amounts, expected, "shares, quota, memory in MiB, score")


@conformance(
    id="cri-oom-scores", rules=["LIFE-140.1", "LIFE-140.2", "LIFE-140.3", "LIFE-140.4"],
    needs=[STATUS, NODE], machine={"cores": 2, "memory_bytes": 8 << 30}, since="1.32")  # fmt: skip
async def the_more_a_container_asks_for_the_later_it_is_killed(node: Node) -> None:
    """The score of a Burstable container falls with its share of the node's memory, from 999 to 3;
    a sidecar is not killed before the container it serves; BestEffort is 1000, Guaranteed and
    node-critical pods are -997."""
    alike = {"cpu": "10m", "memory": "64Mi"}
    burstable = pod(
        "burstable",
        sized("none", {"cpu": "10m"}, {}),
        sized("quarter", {"memory": "2Gi"}, {}),
        sized("half", {"memory": "4Gi"}, {}),
    )
    await node.apply_static(burstable)
    await node.apply_static(pod("best", container("nothing")))
    await node.apply_static(pod("sure", sized("alike", alike, alike)))
    served = sized("served", {"memory": "1Gi"}, {})
    await node.apply_static(pod("with-side", served, init=[sidecar("side")]))
    critical: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "priority": 2_000_001_000,
    }
    await node.apply_static(pod("vital", sized("vital", {"cpu": "1m"}, {}), **critical))
    names = ("none", "quarter", "half", "nothing", "alike", "side", "served", "vital")
    await node.run_until(
        lambda: all(node.count("StartContainer", container=name) for name in names),
        within_s=2 * limits.START_S,
        what="all start",
    )
    scores = {n: container_config(node, n).linux.resources.oom_score_adj for n in names}
    expected_scores = {
        "none": 999,
        "quarter": 750,
        "half": 500,
        "nothing": 1000,
        "alike": -997,
        "side": 875,
        "served": 875,
        "vital": -997,
    }
    expect_equal(node, scores, expected_scores, "oom_score_adj")


@conformance(id="cri-oom-score-least", rules=["LIFE-140.3"], needs=[STATUS, NODE], machine=FOUR_GI)
async def a_burstable_container_never_scores_below_three(node: Node) -> None:
    """A Burstable container that asks for nearly all of the node's memory has the score 3, so that
    it is killed before all Guaranteed ones."""
    await node.apply_static(pod("web", sized("main", {"memory": "4088Mi"}, {})))
    await started(node, "web")
    score = container_config(node, "main").linux.resources.oom_score_adj
    expect_equal(node, score, 3, "oom_score_adj")


@conformance(id="cri-oom-group", rules=["LIFE-139.4"], needs=[STATUS, Feature.CGROUP_V2])
async def with_cgroup_v2_the_kernel_kills_whole_containers(node: Node) -> None:
    """memory.oom.group is 1."""
    await node.apply_static(pod("web"))
    await started(node, "web")
    unified = dict(container_config(node, "main").linux.resources.unified)
    expect_equal(node, unified.get("memory.oom.group"), "1", "memory.oom.group")


@conformance(
    id="cri-oom-single", rules=["LIFE-139.4"], needs=[STATUS, Feature.CGROUP_V2],
    node_config={"singleProcessOOMKill": True}, since="1.32")  # fmt: skip
async def the_kernel_can_be_left_to_kill_single_processes(node: Node) -> None:
    """With singleProcessOOMKill memory.oom.group is not set."""
    await node.apply_static(pod("web"))
    await started(node, "web")
    unified = dict(container_config(node, "main").linux.resources.unified)
    expect_equal(node, unified.get("memory.oom.group", "0"), "0", "memory.oom.group")
