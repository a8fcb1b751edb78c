"""Sums over the containers of a pod, and the QoS class that follows from them."""

from typing import Any

from kubelet_conformance.cases.cgroups.pods import (
    MI,
    asking,
    cgroup_of,
    expect_cpu,
    expect_limits,
    limited,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, CGROUPS = Feature.API, Feature.CGROUPS


@conformance(id="cgroup-one-without-limit", rules=["CG-028"], needs=[CGROUPS])
async def one_container_without_a_limit_frees_the_pod(node: Node) -> None:
    """One container without a CPU limit leaves the pod without a CPU quota; its memory is limited
    all the same."""
    free = container("free", **limited(memory="64Mi", asks_cpu="100m"))
    group = await cgroup_of(node, pod("web", container("main", **limited("500m", "64Mi")), free))
    expect_limits(node, group, quota_us=None, memory_mi=128)


@conformance(id="cgroup-init-without-limit", rules=["CG-028"], needs=[CGROUPS])
async def an_init_container_without_a_limit_frees_the_pod(node: Node) -> None:
    """An init container without a memory limit leaves the pod without one, even after it has
    ended."""
    init = container("init", exits(0), **limited("100m"))
    main = container("main", **limited("200m", "64Mi", asks_cpu="100m"))
    group = await cgroup_of(node, pod("web", main, init=[init]))
    expect_limits(node, group, quota_us=20_000, memory_mi=None)


@conformance(id="cgroup-init-after-sidecar", rules=["CG-023", "CG-028"], needs=[CGROUPS])
async def the_limit_of_a_sidecar_counts_for_later_init_containers(node: Node) -> None:
    """An init container without limits that comes after a sidecar with limits does not take the
    pod's limits away; the sidecar counts beside the regular containers."""
    helper = sidecar("helper", **limited("50m", "16Mi"))
    init = container("init", exits(0))
    main = container("main", **limited("200m", "64Mi", asks_cpu="100m"))
    group = await cgroup_of(node, pod("web", main, init=[helper, init]))
    expect_limits(node, group, quota_us=25_000, memory_mi=80)
    expect_cpu(node, group, 153, 6)


@conformance(id="cgroup-init-peak", rules=["CG-023.1"], needs=[CGROUPS])
async def the_greatest_init_container_counts(node: Node) -> None:
    """If an init container requests more than all regular containers together, the pod's cgroup has
    its values."""
    init = container("init", exits(0), **limited("1", "256Mi", asks_cpu="500m"))
    main = container("main", **limited("200m", "64Mi", asks_cpu="100m"))
    group = await cgroup_of(node, pod("web", main, init=[init]))
    expect_limits(node, group, quota_us=100_000, memory_mi=256)
    expect_cpu(node, group, 512, 20)


@conformance(
    id="cgroup-pod-level",
    rules=["CG-002.1", "CG-023.3", "CG-028", "CG-050.1", "CG-050.5"],
    needs=[CGROUPS],
    since="1.34",
)
async def resources_of_the_pod_itself_count(node: Node) -> None:
    """Resources at the level of the pod decide its QoS class and its limits, whatever its
    containers lack."""
    amounts = {"cpu": "500m", "memory": "128Mi"}
    plan = pod(
        "web",
        container("main", **asking("100m")),
        container("bare"),
        resources={"limits": amounts, "requests": amounts},
    )
    group = await cgroup_of(node, plan)
    expect_equal(node, len(group), 2, "words of the name of a Guaranteed pod's cgroup")
    expect_cpu(node, group, 512, 20)
    expect_limits(node, group, quota_us=50_000, memory_mi=128)
    for name, shares in (("main", 102), ("bare", 512)):
        linux = node.calls("CreateContainer", container=name)[0].request.config.linux.resources
        actual = linux.cpu_shares, linux.cpu_quota, linux.memory_limit_in_bytes
        expect_equal(node, actual, (shares, 50_000, 128 * MI), f"shares, quota, memory of {name}")


@conformance(id="cgroup-init-phases", rules=["CG-023.1"], needs=[CGROUPS])
async def init_containers_count_one_by_one_with_the_sidecars_before_them(node: Node) -> None:
    """An init container counts together with the sidecars that were started before it, and not with
    the other init containers: these have ended. The greatest of these sums is the pod's."""
    inits = [
        container("first", exits(0), **limited("600m", "64Mi")),
        sidecar("helper", **limited("200m", "32Mi")),
        container("second", exits(0), **limited("500m", "128Mi")),
        sidecar("later", **limited("100m", "16Mi")),
    ]
    group = await cgroup_of(
        node, pod("web", container("main", **limited("100m", "16Mi")), init=inits)
    )
    expect_cpu(node, group, 716, 28)
    expect_limits(node, group, quota_us=70_000, memory_mi=160)


@conformance(id="cgroup-overhead", rules=["CG-023.2", "CG-050.6"], needs=[API, CGROUPS])
async def the_overhead_of_a_pod_counts(node: Node) -> None:
    """The overhead of a pod is added to its request, and to those limits that it has; for the
    sandbox it is told apart from the resources of the containers."""
    await node.api.create_runtime_class("heavy", "")
    await node.run_for(limits.WATCH_S)
    free = container("main", **limited("200m", asks_cpu="100m"))
    overhead = {"cpu": "250m", "memory": "32Mi"}
    fields: dict[str, Any] = {"runtimeClassName": "heavy", "overhead": overhead}
    await node.api.create_pod(pod("web", free, **fields))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    expect_cpu(node, group, 358, 14)
    expect_limits(node, group, quota_us=45_000, memory_mi=None)
    linux = node.calls("RunPodSandbox")[0].request.config.linux
    rows = [(r.cpu_shares, r.cpu_quota, r.memory_limit_in_bytes)
            for r in (linux.resources, linux.overhead)]  # fmt: skip
    expect_equal(node, rows, [(102, 20_000, 0), (256, 25_000, 32 * MI)], "resources and overhead")


@conformance(
    id="cgroup-pod-level-burstable", rules=["CG-002.2", "CG-028"], needs=[CGROUPS], since="1.34"
)
async def a_limit_of_the_pod_needs_none_of_its_containers(node: Node) -> None:
    """A pod with a limit of its own for memory, and a lower request, is Burstable and has that
    limit although its containers have none; it has no CPU quota."""
    own = {"limits": {"memory": "128Mi"}, "requests": {"memory": "64Mi", "cpu": "250m"}}
    group = await cgroup_of(node, pod("web", resources=own))
    expect_equal(node, group[1], "burstable", "parent of a Burstable pod's cgroup")
    expect_cpu(node, group, 256, 10)
    expect_limits(node, group, quota_us=None, memory_mi=128)


async def expect_class(node: Node, plan: PodPlan, wanted: str) -> None:
    """Run the pod and expect its QoS class."""
    await cgroup_of(node, plan)
    qos_class = (node.pod(plan.name) or {})["status"].get("qosClass")
    expect_equal(node, qos_class, wanted, f"QoS class of {plan.name}")


@conformance(id="class-of-pods", rules=["CG-001", "CG-012.1"], needs=[CGROUPS])
async def the_class_follows_from_all_containers(node: Node) -> None:
    """Amounts of 0 do not count; init containers do; a pod is Guaranteed only if every container
    limits CPU and memory and requests are not lower than the limits. Each has a cgroup of its own
    (law cgroups-given-once)."""
    zero = container("main", **asking("0", "0"))
    await expect_class(node, pod("zero", zero), "BestEffort")
    sized_one = container("main", **limited(memory="64Mi"))
    await expect_class(node, pod("one-of-two", sized_one), "Burstable")
    lower = container("main", **limited("200m", "64Mi", asks_cpu="100m"))
    await expect_class(node, pod("lower", lower), "Burstable")
    init = [container("init", exits(0))]
    sure = container("main", **limited("100m", "64Mi"))
    await expect_class(node, pod("free-init", sure, init=init), "Burstable")
    await expect_class(node, pod("sure", sure), "Guaranteed")


@conformance(
    id="class-of-whole-pods", rules=["CG-002.2", "CG-001.3"], needs=[CGROUPS], since="1.34"
)
async def the_class_follows_from_the_pods_own_resources(node: Node) -> None:
    """A pod with resources of its own is Guaranteed only if it limits CPU and memory both, and
    requests no less of either."""
    both, memory = {"cpu": "200m", "memory": "64Mi"}, {"memory": "64Mi"}
    rows: dict[str, tuple[dict[str, Any], str]] = {
        "equal": ({"limits": both, "requests": both}, "Guaranteed"),
        "less-cpu": ({"limits": both, "requests": {**both, "cpu": "100m"}}, "Burstable"),
        "less-memory": ({"limits": both, "requests": {**both, "memory": "32Mi"}}, "Burstable"),
        "one-limit": ({"limits": memory, "requests": memory}, "Burstable"),
        "no-limit": ({"requests": both}, "Burstable"),
    }
    for name, (own, wanted) in rows.items():
        await expect_class(node, pod(name, resources=own), wanted)
