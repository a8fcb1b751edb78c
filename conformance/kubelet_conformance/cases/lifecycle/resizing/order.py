"""The order of a resize: the cgroup of the pod, its containers, memory and CPU."""

from kubelet_conformance.cases.lifecycle.resizing.common import (
    MI,
    NEEDS,
    asking,
    expect_pod_group,
    main_of,
    message,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance


@conformance(id="resize-grows-pod-first", rules=["CG-065"], needs=NEEDS, since="1.34")
async def the_pod_grows_before_its_containers(node: Node) -> None:
    """When memory and CPU grow, the pod's cgroup is raised before the container, first for memory
    and then for CPU: a container never has more than its pod. The runtime is told of the pod's
    overhead beside it."""
    overhead = {"cpu": "100m", "memory": "16Mi"}
    await run_pod(node, pod("web", main_of("100m", "64Mi"), overhead=overhead))
    await node.api.resize_pod("web", "main", asking("200m", "96Mi"))
    await resized(node, "web")
    order = [c.method for c in node.calls() if c.method.startswith("Update")]
    expect_equal(
        node,
        order,
        [
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
        ],
        "updates",
    )
    beside = [c.request.overhead for c in node.calls("UpdatePodSandboxResources")]
    overheads = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in beside]
    expect_equal(node, overheads, [(16, 10_000)] * 3, "memory, CPU quota of the overhead")
    resources = [c.request.resources for c in node.calls("UpdatePodSandboxResources")]
    overheads = [(r.memory_limit_in_bytes // MI, r.cpu_quota) for r in resources]
    expect_equal(node, overheads, [(96, 10_000), (96, 20_000), (96, 20_000)], "memory, CPU quota")
    expect_pod_group(node, "web", quota_us=30_000, memory_mi=112)


@conformance(id="resize-shrinks-pod-last", rules=["CG-065"], needs=NEEDS, since="1.34")
async def the_pod_shrinks_after_its_containers(node: Node) -> None:
    """When memory and CPU shrink, the container is lowered before the pod's cgroup, first for
    memory and then for CPU: a container never has more than its pod."""
    await run_pod(node, pod("web", main_of("200m", "96Mi")))
    await node.api.resize_pod("web", "main", asking("100m", "64Mi"))
    await resized(node, "web")
    order = [c.method for c in node.calls() if c.method.startswith("Update")]
    expect_equal(
        node,
        order,
        [
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdateContainerResources",
            "UpdatePodSandboxResources",
            "UpdatePodSandboxResources",
        ],
        "updates",
    )
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=64)


@conformance(id="resize-decreases-first", rules=["CG-065"], needs=NEEDS, since="1.34")
async def containers_that_get_less_come_first(node: Node) -> None:
    """When two containers swap their CPU, the one that gets less is updated before the other."""
    await run_pod(
        node,
        pod(
            "web",
            container("up", resources=asking("100m", "64Mi")),
            container("down", resources=asking("200m", "64Mi")),
        ),
    )
    up, down = asking("200m", "64Mi"), asking("100m", "64Mi")
    await node.api.resize_containers("web", {"up": up, "down": down})
    await resized(node, "web")
    names = {
        c.response.container_id: c.request.config.metadata.name
        for c in node.calls("CreateContainer")
    }
    order = [names[c.request.container_id] for c in node.calls("UpdateContainerResources")]
    expect_equal(node, order, ["down", "up"], "order of updates")


@conformance(
    id="resize-sandbox-refused", rules=["CG-065"], needs=[*NEEDS, Feature.FAULTS], since="1.36"
)
async def a_runtime_that_refuses_the_pods_size_ends_the_resize(node: Node) -> None:
    """When UpdatePodSandboxResources fails, no cgroup is written and no container updated. (Until
    1.35 it was called after the cgroup was written, and its error did not matter.)"""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdatePodSandboxResources", pod="web").fails("INTERNAL", "too much"):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
        error = message(node, "ResizeError", "web")[1]["error"]
        error_start = (
            "failed to notify runtime for UpdatePodSandboxResources (resource=memory); resize "
            "rejected: "
        )
        expect(node, error.startswith(error_start), error_start, error)
        expect_equal(node, len(updates(node)), 0, "updates")
        expect_pod_group(node, "web", quota_us=10_000, memory_mi=64)


@conformance(
    id="resize-cgroup-refused", rules=["CG-065.4"], needs=[*NEEDS, Feature.CGROUP_V1], since="1.36"
)
async def a_runtime_is_told_the_old_limits_when_the_kernel_refuses_the_new(node: Node) -> None:
    """When the kernel refuses the limit of the pod's cgroup, here a quota above that of all pods,
    UpdatePodSandboxResources is called again with the limits that the pod keeps, and the
    container's CPU stays."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    node.cgroups.write("cpu", "cpu.cfs_quota_us", "15000", "kubepods")
    await node.api.resize_pod("web", "main", asking("200m", "64Mi"))
    await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
    resources = [c.request.resources for c in node.calls("UpdatePodSandboxResources")]
    quotas = [r.cpu_quota for r in resources[:2]]
    expect_equal(node, quotas, [20_000, 10_000], "CPU quotas of the first two calls")
    expect_equal(node, len(updates(node)), 0, "updates of main")
    node.cgroups.write("cpu", "cpu.cfs_quota_us", "-1", "kubepods")
    await node.run_until(
        lambda: node.events("ResizeCompleted", pod="web"),
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S + limits.STATUS_PASS_S,
        what="the resize is completed",
    )
    expect_pod_group(node, "web", quota_us=20_000, memory_mi=64)


@conformance(
    id="resize-sandbox-unimplemented",
    rules=["CG-065", "CRI-009.3"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.34",
)
async def a_runtime_without_that_call_does_not_matter(node: Node) -> None:
    """When UpdatePodSandboxResources answers UNIMPLEMENTED, the resize goes on."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    with node.runtime.on("UpdatePodSandboxResources", pod="web").fails(
        "UNIMPLEMENTED", "unknown method"
    ):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await resized(node, "web")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)


@conformance(
    id="resize-sandbox-not-implemented",
    rules=["CRI-122", "CG-065"],
    needs=[*NEEDS, Feature.FAULTS],
    since="1.36",
)
async def a_runtime_that_has_not_implemented_that_call_does_not_matter(node: Node) -> None:
    """The resize also goes on when UpdatePodSandboxResources answers UNKNOWN with the text `not
    implemented`, as containerd 2.2 does; any other UNKNOWN ends it."""
    await run_pod(node, pod("web", main_of("100m", "64Mi")))
    call = "UpdatePodSandboxResources"
    with node.runtime.on(call, pod="web").fails("UNKNOWN", "method not implemented yet"):
        await node.api.resize_pod("web", "main", asking("100m", "96Mi"))
        await resized(node, "web")
    expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)
    with node.runtime.on(call, pod="web").fails("UNKNOWN", "no space left"):
        await node.api.resize_pod("web", "main", asking("100m", "128Mi"))
        await until(node, lambda: node.events("ResizeError", pod="web"), "ResizeError")
        expect_pod_group(node, "web", quota_us=10_000, memory_mi=96)
