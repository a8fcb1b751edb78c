"""The limits of a pod's cgroup, by its QoS class and the resources of its containers."""

from typing import Any

from fakecri import uses
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.topology import HugePages

CGROUPS, V1, V2 = Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2
NODE, SYSTEMD = Feature.NODE_RESOURCES, Feature.SYSTEMD_CGROUPS
MI = 1 << 20


def asking(cpu: str = "", memory: str = "") -> dict[str, Any]:
    """A container's resources: requests without limits."""
    return {"resources": {"requests": _amounts(cpu, memory)}}


def limited(cpu: str = "", memory: str = "", *, asks_cpu: str = "") -> dict[str, Any]:
    """A container's resources: limits, and equal requests unless `asks_cpu` gives another one for
    CPU."""
    limits = _amounts(cpu, memory)
    return {"resources": {"limits": limits, "requests": {**limits, **_amounts(asks_cpu)}}}


def _amounts(cpu: str, memory: str = "") -> dict[str, str]:
    return {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}


async def cgroup_of(node: Node, plan: PodPlan) -> tuple[str, ...]:
    """Run the pod and return the words of its cgroup."""
    await node.apply_static(plan)
    await node.wait_running(plan.name, plan.containers[-1].name)
    return node.cgroups.of_pod(plan.name)


def expect_cpu(node: Node, group: tuple[str, ...], shares: int, weight: int) -> None:
    """Expect CPU shares with cgroup v1, a CPU weight with v2."""
    expected_share = shares if node.cgroups.version == 1 else weight
    expect_equal(node, node.cgroups.cpu(*group), expected_share, f"CPU share of {'/'.join(group)}")


def expect_limits(
    node: Node, group: tuple[str, ...], *, quota_us: int | None, memory_mi: int | None
) -> None:
    """Expect this CPU quota and memory limit (in MiB); None: no limit."""
    actual = (node.cgroups.cpu_quota_us(*group), node.cgroups.memory_limit_bytes(*group))
    expected = (quota_us, None if memory_mi is None else memory_mi * MI)
    expect_equal(node, actual, expected, f"CPU quota and memory limit of {'/'.join(group)}")


GUARANTEED = pod(
    "web",
    container("main", **limited("300m", "100Mi")),
    container("side", **limited("1", "50Mi")),
)
BURSTABLE = pod(
    "web",
    container("main", **limited("150m", "200Mi", asks_cpu="100m")),
    container("side", **limited("50m", "20Mi")),
)


async def guaranteed(node: Node) -> None:
    """Run the Guaranteed pod and expect the place and values of its cgroup."""
    group = await cgroup_of(node, GUARANTEED)
    expect_equal(node, len(group), 2, "words of the name of a Guaranteed pod's cgroup")
    expect_cpu(node, group, 1331, 51)
    expect_limits(node, group, quota_us=130_000, memory_mi=150)
    parent = node.calls("RunPodSandbox")[0].request.config.linux.cgroup_parent
    expect_equal(node, parent, node.cgroups.path(*group), "cgroup_parent of the sandbox")


@conformance(
    id="cgroup-guaranteed-v1", rules=["CG-001", "CG-010", "CG-012", "CG-020", "CG-023", "CG-027"],
    needs=[CGROUPS, V1],
)  # fmt: skip
async def a_guaranteed_pod_gets_its_sums_v1(node: Node) -> None:
    """The cgroup of a Guaranteed pod lies directly below that of all pods, its shares, quota and
    memory limit are the sums of its containers, and RunPodSandbox names its path."""
    await guaranteed(node)


@conformance(
    id="cgroup-guaranteed-v2", rules=["CG-010", "CG-012", "CG-020", "CG-021", "CG-027"],
    needs=[CGROUPS, V2],
)  # fmt: skip
async def a_guaranteed_pod_gets_its_sums_v2(node: Node) -> None:
    """With cgroup v2 the cgroup of a Guaranteed pod lies directly below that of all pods; its
    weight, quota and memory limit come from the sums of its containers, and RunPodSandbox names its
    path."""
    await guaranteed(node)


async def burstable(node: Node) -> None:
    """Run the Burstable pod and expect the place and values of its cgroup."""
    group = await cgroup_of(node, BURSTABLE)
    expect_equal(node, group[1], "burstable", "parent of a Burstable pod's cgroup")
    expect_cpu(node, group, 153, 6)
    expect_limits(node, group, quota_us=20_000, memory_mi=220)


@conformance(id="cgroup-burstable-v1", rules=["CG-010", "CG-020", "CG-028"], needs=[CGROUPS, V1])
async def a_burstable_pod_gets_its_sums_v1(node: Node) -> None:
    """A Burstable pod whose containers all have limits is limited to their sums; its shares are the
    sum of the requests."""
    await burstable(node)


@conformance(id="cgroup-burstable-v2", rules=["CG-010", "CG-021", "CG-028"], needs=[CGROUPS, V2])
async def a_burstable_pod_gets_its_sums_v2(node: Node) -> None:
    """With cgroup v2 a Burstable pod whose containers all have limits is limited to their sums; its
    weight comes from the sum of the requests."""
    await burstable(node)


@conformance(id="cgroup-besteffort", rules=["CG-010", "CG-029"], needs=[CGROUPS])
async def a_besteffort_pod_has_no_limits(node: Node) -> None:
    """The cgroup of a BestEffort pod has the minimum of CPU shares and no limits."""
    group = await cgroup_of(node, pod("web"))
    expect_equal(node, group[1], "besteffort", "parent of a BestEffort pod's cgroup")
    expect_cpu(node, group, 2, 1)
    expect_limits(node, group, quota_us=None, memory_mi=None)
    expect_equal(node, node.cgroups.pids_limit(*group), None, "limit of processes")


@conformance(
    id="cgroup-quota-off",
    rules=["CG-031.2", "CG-050.1"],
    needs=[CGROUPS],
    node_config={"cpuCFSQuota": False},
)
async def without_cpu_cfs_quota_pods_have_none(node: Node) -> None:
    """With cpuCFSQuota false a CPU limit becomes no quota; memory is limited all the same."""
    group = await cgroup_of(node, GUARANTEED)
    expect_limits(node, group, quota_us=None, memory_mi=150)
    linux = node.calls("CreateContainer")[0].request.config.linux.resources
    expect_equal(node, (linux.cpu_period, linux.cpu_quota), (0, 0), "period and quota it is told")


@conformance(
    id="cgroup-quota-period", needs=[CGROUPS],
    rules=["CG-020.2", "CG-020.3", "CG-031.3", "CG-050.1"],
    node_config={"cpuCFSQuotaPeriod": "50ms"}, since="1.36",
)  # fmt: skip
async def the_period_is_the_configured_one(node: Node) -> None:
    """The quota of a pod is in periods of cpuCFSQuotaPeriod, and never below a millisecond, even
    for a limit of a thousandth of a CPU."""
    group = await cgroup_of(node, GUARANTEED)
    expect_equal(node, node.cgroups.cpu_period_us(*group), 50_000, "period")
    expect_limits(node, group, quota_us=65_000, memory_mi=150)
    linux = node.calls("CreateContainer")[0].request.config.linux.resources
    quota = (linux.cpu_period, linux.cpu_quota)
    expect_equal(node, quota, (50_000, 15_000), "period and quota of the container main")
    small = await cgroup_of(node, pod("tiny", container("main", **limited("1m", "64Mi"))))
    expect_limits(node, small, quota_us=1000, memory_mi=64)


@conformance(
    id="cgroup-pids-limit", rules=["CG-027", "CG-029"], needs=[CGROUPS],
    node_config={"podPidsLimit": 64},
)  # fmt: skip
async def every_pod_gets_the_limit_of_processes(node: Node) -> None:
    """podPidsLimit limits the processes of each pod, in every QoS class."""
    group = await cgroup_of(node, GUARANTEED)
    expect_equal(node, node.cgroups.pids_limit(*group), 64, "processes of a Guaranteed pod")
    group = await cgroup_of(node, pod("other"))
    expect_equal(node, node.cgroups.pids_limit(*group), 64, "processes of a BestEffort pod")


@conformance(
    id="cgroup-pids-exhausted", rules=["CG-027", "CG-142"],
    needs=[CGROUPS, Feature.MEMORY_USE], node_config={"podPidsLimit": 40},
)  # fmt: skip
async def a_pod_that_forks_without_end_has_its_limit_and_no_more(node: Node) -> None:
    """In a pod that has reached podPidsLimit forks fail: it keeps running with exactly that many
    processes, and other pods of the node can still start and fork."""
    group = await cgroup_of(node, pod("greedy", container("main", runs(uses(pids=400)))))
    await node.run_until(
        lambda: node.cgroups.pids(*group) == 40, within_s=limits.START_S, what="40 processes"
    )
    other = await cgroup_of(node, pod("other", container("main", runs(uses(pids=20)))))
    await node.run_until(
        lambda: node.cgroups.pids(*other) > 20, within_s=limits.START_S, what="20 and the sandbox's"
    )
    await node.run_for(5)
    expect_equal(node, node.cgroups.pids(*group), 40, "processes of the pod that tries to fork")
    expect_equal(node, node.count("StartContainer"), 2, "starts of containers")


@conformance(
    id="cgroup-systemd-names", needs=[CGROUPS, SYSTEMD],
    rules=["CG-010.2", "CG-010.3", "CG-011.1", "CG-012.1"],
    node_config={"cgroupDriver": "systemd"},
)  # fmt: skip
async def with_the_systemd_driver_cgroups_are_slices(node: Node) -> None:
    """With the systemd driver each level is a slice whose name begins with those above it, dashes
    of the UID become underscores, and RunPodSandbox gets the whole path."""
    plan = pod("web", container("main", **limited("333m", "64Mi", asks_cpu="100m")),
               metadata={"uid": "11111111-2222-3333-4444-555555555555"})  # fmt: skip
    group = await cgroup_of(node, plan)
    slices = (
        "/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice"
    )
    parent = node.calls("RunPodSandbox")[0].request.config.linux.cgroup_parent
    expect_equal(node, parent, slices, "cgroup_parent")
    expect_cpu(node, group, 102, 4)


@conformance(
    id="cgroup-systemd-quota", rules=["CG-031.5"], needs=[CGROUPS, SYSTEMD],
    node_config={"cgroupDriver": "systemd"},
)  # fmt: skip
async def with_the_systemd_driver_quotas_are_hundredths(node: Node) -> None:
    """The systemd driver rounds a pod's quota up to a hundredth of a CPU."""
    group = await cgroup_of(node, pod("web", container("main", **limited("333m", "64Mi"))))
    expect_limits(node, group, quota_us=34_000, memory_mi=64)


@conformance(id="cgroup-static-uid", rules=["CG-011"], needs=[CGROUPS])
async def the_uid_of_a_static_pod_has_no_dashes(node: Node) -> None:
    """The cgroup of a static pod ends with its UID, 32 hexadecimal digits."""
    group = await cgroup_of(node, pod("web"))
    uid = group[-1].removeprefix("pod")
    digits = len(uid) == 32 and set(uid) <= set("0123456789abcdef")
    expect_equal(node, digits, True, f"{uid} is 32 hexadecimal digits")


@conformance(
    id="cgroup-hugepages", rules=["CG-027", "CG-030.2", "CG-050.3", "LIFE-139.4"],
    needs=[CGROUPS, NODE],
    machine={"cores": 2, "hugepages": (HugePages(2 * MI, 512), HugePages(1 << 30, 1))},
)  # fmt: skip
async def a_pod_gets_the_huge_pages_it_asks_for(node: Node) -> None:
    """The limit of each size of huge pages is the sum of the containers, and 0 for sizes that none
    requests."""
    amounts = {"hugepages-2Mi": "4Mi", "memory": "64Mi"}
    pages: dict[str, Any] = {"resources": {"limits": amounts, "requests": amounts}}
    group = await cgroup_of(node, pod("web", container("a", **pages), container("b", **pages)))
    sizes = [node.cgroups.hugepages_bytes(size, *group) for size in ("2MB", "1GB")]
    expect_equal(node, sizes, [8 * MI, 0], "huge pages of 2 MiB and 1 GiB")
    rows = node.calls("CreateContainer")[0].request.config.linux.resources.hugepage_limits
    expected = {"2MB": 4 * MI, "1GB": 0}
    expect_equal(
        node, {h.page_size: h.limit for h in rows}, expected, "huge page limits it is told"
    )
