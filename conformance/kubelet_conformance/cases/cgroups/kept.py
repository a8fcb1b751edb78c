"""What the kubelet leaves as it is in the cgroups above pods, and what it sets right there."""

from kubelet_conformance.cases.cgroups.classes import BESTEFFORT, BURSTABLE, HALF, set_right, spoil
from kubelet_conformance.cases.cgroups.node_level import GI, PODS, lies_below
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

CGROUPS, NODE, RESTART = Feature.CGROUPS, Feature.NODE_RESOURCES, Feature.RESTART
MI = 1 << 20


def limit_memory(node: Node, limit_bytes: int, *group: str) -> None:
    """Write a memory limit behind the kubelet's back."""
    file = "memory.limit_in_bytes" if node.cgroups.version == 1 else "memory.max"
    node.cgroups.write("memory", file, str(limit_bytes), *group)


def limit_cpu(node: Node, quota_us: int, *group: str) -> None:
    """Write a CPU quota behind the kubelet's back."""
    if node.cgroups.version == 1:
        node.cgroups.write("cpu", "cpu.cfs_quota_us", str(quota_us), *group)
    else:
        node.cgroups.write("cpu", "cpu.max", f"{quota_us} 100000", *group)


@conformance(
    id="class-limits-of-others-stay", rules=["CG-030.1", "CG-025", "CG-026", "CG-036.2"],
    needs=[CGROUPS, Feature.VIRTUAL_TIME],
)  # fmt: skip
async def the_kubelet_writes_only_what_is_its_own(node: Node) -> None:
    """The kubelet sets the CPU shares of the classes right every minute, and writes neither a CPU
    quota nor a memory limit there: what somebody else has set stays."""
    await node.apply_static(HALF)
    await node.wait_running("half")
    for group in (BURSTABLE, BESTEFFORT):
        limit_memory(node, 512 * MI, *group)
        limit_cpu(node, 150_000, *group)
    spoil(node)
    await node.run_until(
        lambda: node.cgroups.cpu(*BURSTABLE) != 77, within_s=61, what="burstable has its CPU again"
    )
    for group in (BURSTABLE, BESTEFFORT):
        actual = node.cgroups.memory_limit_bytes(*group), node.cgroups.cpu_quota_us(*group)
        expect_equal(node, actual, (512 * MI, 150_000), f"limits of {group[-1]}, set by others")


@conformance(id="class-update-at-start", rules=["CG-036.1"], needs=[CGROUPS, RESTART])
async def a_new_kubelet_sets_the_classes_right_at_once(node: Node) -> None:
    """Shares of the classes that were changed while no kubelet ran are right as soon as the next
    one has started, and not only a minute later."""
    await node.apply_static(HALF)
    await node.wait_running("half")
    await node.kubelet.stop()
    spoil(node)
    await node.kubelet.start()
    await node.run_for(limits.START_S)
    await set_right(node)


@conformance(
    id="node-everything-reserved", rules=["CG-031.4", "CG-024"], needs=[CGROUPS, NODE],
    machine={"cores": 2, "memory_bytes": 4 * GI},
    node_config={
        "systemReserved": {"memory": "4Gi"},
        "evictionHard": {"memory.available": "0%", "nodefs.available": "1%"},
    },
)  # fmt: skip
async def no_memory_left_is_no_limit(node: Node) -> None:
    """Where all memory is reserved nothing is left for pods: that amount, 0, is not written as a
    limit, with which no pod could live."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    expect_equal(node, node.cgroups.memory_limit_bytes(*PODS), None, "memory limit of all pods")
    pids = node.cgroups.pids_limit(*PODS)
    expect(node, pids, "the limit of processes is written all the same", pids)


@conformance(
    id="node-cgroup-root-cleaned", rules=["CG-010.4", "CG-011.2", "CG-012.1"], needs=[CGROUPS]
)
async def the_path_of_a_root_is_cleaned(node: Node) -> None:
    """Empty words and dots in cgroupRoot are no levels: the paths of cgroups, and the parent in
    RunPodSandbox, have none of them."""
    await lies_below(node, as_written="//.")


@conformance(
    id="node-cgroup-root-no-slice", rules=["CG-010.4"], needs=[CGROUPS, Feature.SYSTEMD_CGROUPS],
    node_config={"cgroupDriver": "systemd"},
)  # fmt: skip
async def no_slice_has_an_empty_word(node: Node) -> None:
    """With the systemd driver a kubelet whose cgroupRoot has an empty word does not start."""
    error = await node.kubelet.refused_start(cgroupRoot="/a//b")
    expect(node, "/a//b" in error, "a kubelet that ends because of /a//b", error)
