"""In which trees a pod's cgroup is made before its sandbox, and with which controllers."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, CGROUPS, FAULTS = Feature.API, Feature.CGROUPS, Feature.FAULTS
V1, V2 = Feature.CGROUP_V1, Feature.CGROUP_V2


async def before_its_sandbox(node: Node) -> tuple[str, ...]:
    """Create a pod whose sandbox takes some time, and return its cgroup meanwhile."""
    node.runtime.on("RunPodSandbox", pod="web").delays(2)
    await node.apply_static(pod("web"))
    await node.run_until(lambda: node.count("RunPodSandbox", pod="web"), within_s=limits.START_S)
    return node.cgroups.of_pod("web")


@conformance(
    id="cgroup-trees-v1", rules=["CG-044.1", "CG-044.2"], needs=[CGROUPS, V1, FAULTS]
)  # fmt: skip
async def the_tree_of_devices_is_the_runtimes(node: Node) -> None:
    """With cgroup v1 the pod's cgroup is made in every tree but that of the devices, in which the
    runtime makes it."""
    group = await before_its_sandbox(node)
    expect_equal(node, node.cgroups.exists(*group), True, "the cgroup exists in the other trees")
    try:
        devices = node.cgroups.read("devices", "devices.list", *group)
    except FileNotFoundError:
        devices = ""
    expect_equal(node, devices, "", "devices.list of the pod's cgroup")


@conformance(
    id="cgroup-controllers-v2", rules=["CG-016.1", "CG-016.2"], needs=[CGROUPS, V2, FAULTS]
)
async def a_cgroup_has_every_controller_and_gives_none_on(node: Node) -> None:
    """With cgroup v2 the pod's cgroup has the controllers of those above it; which of them are
    enabled below it is left to the runtime."""
    group = await before_its_sandbox(node)
    above = set(node.cgroups.read("memory", "cgroup.controllers").split())
    names = set(node.cgroups.read("memory", "cgroup.controllers", *group).split())
    expect(node, {"cpu", "memory", "pids"} <= names, "cpu, memory and pids", sorted(names))
    expect_equal(node, names, above, "controllers of the pod's cgroup")
    text = node.cgroups.read("memory", "cgroup.subtree_control", *group).strip()
    expect_equal(node, text, "", "cgroup.subtree_control of the pod's cgroup")


@conformance(id="node-cgroup-v1-told", rules=["CG-014.3"], needs=[API, CGROUPS, V1])
async def a_node_with_cgroup_v1_is_told_of(node: Node) -> None:
    """A kubelet that was allowed to run with cgroup v1 sends a warning about the node."""
    await node.run_until(
        lambda: node.events("CgroupV1"), within_s=limits.START_S, what="the event CgroupV1"
    )
    event = node.events("CgroupV1")[0]
    event_fields = event["type"], event["involvedObject"]["kind"]
    expect_equal(node, event_fields, ("Warning", "Node"), "type and object")
