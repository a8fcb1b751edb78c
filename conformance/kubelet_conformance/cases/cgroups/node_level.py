"""The cgroup of all pods, the reserved cgroups, and what the Node offers to pods."""

from fakecri import uses
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.topology import HugePages

CGROUPS, V1, V2 = Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2
API, NODE = Feature.API, Feature.NODE_RESOURCES
PODS = ("kubepods",)
MI, GI = 1 << 20, 1 << 30
RESERVED = {
    "kubeReserved": {"cpu": "250m", "memory": "512Mi", "pid": "1000"},
    "systemReserved": {"cpu": "750m", "memory": "512Mi"},
    "evictionHard": {"memory.available": "256Mi", "nodefs.available": "10%"},
}


async def limits_of_all_pods(node: Node) -> tuple[int, int, int]:
    """Run a pod, and return the CPU shares (v1) or weight (v2), memory and processes that are left
    to all pods on a node with RESERVED."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    expect_equal(node, node.cgroups.cpu_quota_us(*PODS), None, "CPU quota of all pods")
    return what_all_pods_may_use(node)


def what_all_pods_may_use(node: Node) -> tuple[int, int, int]:
    """The CPU shares or weight, memory and processes of the cgroup of all pods."""
    groups = node.cgroups
    memory, pids = groups.memory_limit_bytes(*PODS) or 0, groups.pids_limit(*PODS) or 0
    return groups.cpu(*PODS), memory, pids


async def capacity(node: Node) -> tuple[int, int, int]:
    """The CPUs, the bytes of memory and the processes of the node."""
    await node.run_until(lambda: node.api.capacity("cpu"), within_s=limits.START_S)
    memory = parse_nano(node.api.capacity("memory")) // NANO
    pids = (await node.kubelet.summary())["node"]["rlimit"]["maxpid"]
    return int(node.api.capacity("cpu")), memory, pids


@conformance(
    id="node-limits-v1", rules=["CG-024", "CG-034"], needs=[API, CGROUPS, V1],
    node_config=RESERVED,
)  # fmt: skip
async def all_pods_get_what_is_not_reserved_v1(node: Node) -> None:
    """The cgroup of all pods is limited to the node's capacity minus both reservations; eviction
    thresholds are not subtracted."""
    actual = await limits_of_all_pods(node)
    cpus, memory, pids = await capacity(node)
    expected = ((cpus - 1) * 1024 or 2, memory - GI, pids - 1000)
    expect_equal(node, actual, expected, "CPU shares, memory and processes of all pods")


@conformance(
    id="node-limits-v2", rules=["CG-021", "CG-024", "CG-034", "EVIC-007.4"],
    needs=[CGROUPS, V2, NODE], node_config=RESERVED,
)  # fmt: skip
async def all_pods_get_what_is_not_reserved_v2(node: Node) -> None:
    """With cgroup v2 the cgroup of all pods is limited to the node's capacity minus both
    reservations, with a CPU weight instead of shares."""
    actual = await limits_of_all_pods(node)
    expect_equal(
        node, actual, (118, 7 * GI, 31_768), "CPU weight, memory and processes of all pods"
    )


@conformance(
    id="node-limits-not-enforced", rules=["CG-034"], needs=[API, CGROUPS],
    node_config={**RESERVED, "enforceNodeAllocatable": ["none"]},
)  # fmt: skip
async def without_enforcement_pods_get_all(node: Node) -> None:
    """Without `pods` in enforceNodeAllocatable the cgroup of all pods is limited to the whole
    capacity."""
    _, *actual = await limits_of_all_pods(node)
    _, *expected_limits = await capacity(node)
    expect_equal(node, actual, expected_limits, "memory and processes of all pods")


@conformance(
    id="node-allocatable", rules=["CG-034", "NODE-031"], needs=[API, NODE], node_config=RESERVED
)
async def the_node_promises_less(node: Node) -> None:
    """The Node's allocatable is the capacity minus the reservations and the hard eviction
    thresholds, of memory and of the disk; a percentage is computed with 32-bit floats."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    amounts = {name: node.api.allocatable(name) for name in ("cpu", "memory", "ephemeral-storage")}
    expected_amounts = {"cpu": "3", "memory": "6912Mi", "ephemeral-storage": "96636764k"}
    expect_equal(node, amounts, expected_amounts, "allocatable")
    expect_equal(node, node.api.capacity("memory"), "8Gi", "capacity of memory")


@conformance(
    id="node-hugepages", rules=["CG-034", "NODE-031"], needs=[API, NODE],
    machine={"cores": 2, "memory_bytes": 4 * GI, "hugepages": (HugePages(2 << 20, 512),)},
    node_config={"evictionHard": {"memory.available": "0%"}},
)  # fmt: skip
async def huge_pages_are_taken_from_memory(node: Node) -> None:
    """Huge pages are resources of the Node, and their memory is not part of its allocatable
    memory."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    amounts = {name: node.api.allocatable(name) for name in ("memory", "hugepages-2Mi")}
    expect_equal(node, amounts, {"memory": "3Gi", "hugepages-2Mi": "1Gi"}, "allocatable")
    expect_equal(node, node.api.capacity("memory"), "4Gi", "capacity of memory")


@conformance(id="node-enforced-event", rules=["CG-035.1", "NODE-050.4"], needs=[API, CGROUPS])
async def enforcing_is_told(node: Node) -> None:
    """When the limits of the cgroup of all pods are written, an event about the node says so."""
    await node.run_until(
        lambda: node.events("NodeAllocatableEnforced"),
        within_s=limits.START_S,
        what="the event NodeAllocatableEnforced",
    )
    event = node.events("NodeAllocatableEnforced")[0]
    event_fields = (event["type"], event["message"], event["involvedObject"]["kind"])
    expected_fields = ("Normal", "Updated Node Allocatable limit across pods", "Node")
    expect_equal(node, event_fields, expected_fields, "type, message and object")


@conformance(
    id="node-enforcement-retried", rules=["CG-035.2", "LIFE-133.4"],
    needs=[API, CGROUPS, V1, NODE, Feature.VIRTUAL_TIME],
)  # fmt: skip
async def a_limit_below_the_usage_is_tried_again(node: Node) -> None:
    """The kernel refuses a limit that the pods already exceed: the kubelet reports a warning and
    tries again every minute, until the pods use less."""
    eater = pod("eater", container("main", runs(uses(memory_bytes=2 * GI))))
    await node.apply_static(eater)
    await node.wait_running("eater")
    await node.kubelet.restart(systemReserved={"memory": "7Gi"})
    await node.run_until(
        lambda: node.events("FailedNodeAllocatableEnforcement"),
        within_s=limits.START_S,
        what="the event FailedNodeAllocatableEnforcement",
    )
    message = str(node.events("FailedNodeAllocatableEnforcement")[0]["message"])
    start = 'Failed to update Node Allocatable Limits ["kubepods"]: '
    expect(node, message.startswith(start), f"a message that begins with {start!r}", message)
    limit = node.cgroups.memory_limit_bytes(*PODS)
    expect_equal(node, limit, 8 * GI, "memory of all pods until the new limit can be written")
    await node.run_until(
        lambda: node.phase("eater") == "Running",
        within_s=limits.NOTICE_S,
        what="the pod that uses too much is Running",
    )
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    await node.remove_static("eater")
    await node.run_until(
        lambda: node.cgroups.memory_limit_bytes(*PODS) == 1 * GI,
        within_s=61,
        what="all pods are limited to 1 GiB",
    )


@conformance(id="node-reserved-groups", rules=["CG-035.3"], needs=[CGROUPS], since="1.32")
async def reserved_groups_are_limited(node: Node) -> None:
    """The cgroups that are configured for the reservations are limited to them, those for
    compressible resources in their CPU alone."""
    groups = node.cgroups
    for name in ("sys", "kube"):
        groups.make(name)
    await node.kubelet.restart(
        systemReserved={"cpu": "500m", "memory": "256Mi"},
        kubeReserved={"cpu": "250m", "memory": "256Mi"},
        systemReservedCgroup=groups.path("sys"),
        kubeReservedCgroup=groups.path("kube"),
        enforceNodeAllocatable=["pods", "system-reserved", "kube-reserved-compressible"],
    )
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    v1 = groups.version == 1
    group_limits = [(groups.cpu(name), groups.memory_limit_bytes(name)) for name in ("sys", "kube")]
    expected_limits = [(512 if v1 else 20, 256 * MI), (256 if v1 else 10, None)]
    expect_equal(node, group_limits, expected_limits, "CPU and memory of the reserved groups")


@conformance(id="node-reserved-group-missing", rules=["CG-035.4"], needs=[CGROUPS])
async def a_reserved_group_that_is_missing_ends_the_kubelet(node: Node) -> None:
    """When a configured cgroup for a reservation does not exist, the kubelet does not start."""
    error = await node.kubelet.refused_start(
        systemReserved={"memory": "256Mi"},
        systemReservedCgroup=node.cgroups.path("nowhere"),
        enforceNodeAllocatable=["pods", "system-reserved"],
    )
    start = "Failed to enforce System Reserved Cgroup Limits on"
    expect(node, start in error, f"a kubelet that ends with {start!r}", error)


@conformance(
    id="node-reservation-impossible", rules=["CG-034.5", "NODE-050.5"], needs=[API, CGROUPS]
)
async def more_than_there_is_cannot_be_reserved(node: Node) -> None:
    """With reservations above the capacity the kubelet does not start; containers that run are left
    alone."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_until(lambda: node.api.capacity("cpu"), within_s=limits.START_S)
    too_much = int(node.api.capacity("cpu")) + 1
    error = await node.kubelet.refused_start(kubeReserved={"cpu": str(too_much)})
    start = 'invalid Node Allocatable configuration. Resource "cpu" has a reservation of'
    expect(node, start in error.replace('\\"', '"'), f"a kubelet that ends with {start!r}", error)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="node-cgroup-root-missing", rules=["CG-015"], needs=[CGROUPS])
async def a_missing_root_ends_the_kubelet(node: Node) -> None:
    """When the cgroupRoot does not exist, the kubelet does not start."""
    error = await node.kubelet.refused_start(cgroupRoot="/nowhere")
    start = "invalid configuration: "
    expect(
        node, start in error and "nowhere" in error, f"a kubelet that ends with {start!r}", error
    )


@conformance(id="node-cgroup-root", rules=["CG-011", "CG-015"], needs=[CGROUPS])
async def all_cgroups_are_below_the_configured_root(node: Node) -> None:
    """All cgroups lie below the cgroupRoot, and so does the parent cgroup in RunPodSandbox."""
    await lies_below(node, as_written="")


async def lies_below(node: Node, *, as_written: str) -> None:
    """A kubelet is restarted with a cgroupRoot, after whose path `as_written` follows, and has the
    cgroup of a pod below it."""
    # A kubelet with cgroupRoot / gives the groups below it their controllers (v2).
    await node.run_until(lambda: node.cgroups.exists(*PODS), within_s=limits.START_S)
    node.cgroups.make("below")
    await node.kubelet.restart(cgroupRoot=node.cgroups.path("below") + as_written)
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    group = ("below", *node.cgroups.of_pod("web"))
    expect_equal(node, node.cgroups.exists(*group), True, "the pod's cgroup exists")
    parent = node.calls("RunPodSandbox")[0].request.config.linux.cgroup_parent
    expect_equal(node, parent, node.cgroups.path(*group), "cgroup_parent")
