"""The cgroups of the QoS classes: how CPU is shared between them, and when the shares are
updated."""

from kubelet_conformance.cases.cgroups.pods import asking, expect_cpu, limited
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

CGROUPS, V1, V2 = Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2
BURSTABLE = ("kubepods", "burstable")
BESTEFFORT = ("kubepods", "besteffort")
LONG_STOP_S = 20.0
"""Longer than the kubelet may take to notice a change."""
HALF = pod("half", container("main", **asking("500m")))


async def shares_follow_the_pods(node: Node) -> None:
    """Expect the CPU shares of the Burstable class before the sandbox of a new pod is made, with
    two pods, and after both have been removed."""
    await node.run_until(  # first it is made, with what the kernel gives a new group
        lambda: node.cgroups.exists(*BURSTABLE) and node.cgroups.cpu(*BURSTABLE) <= 2,
        within_s=limits.START_S,
        what="burstable has the least CPU",
    )
    expect_cpu(node, BURSTABLE, 2, 1)
    with node.runtime.on("RunPodSandbox", pod="half").delays(2):
        await node.apply_static(HALF)
        await node.run_until(
            lambda: node.count("RunPodSandbox", pod="half"), within_s=limits.START_S
        )
        expect_cpu(node, BURSTABLE, 512, 20)
    await node.wait_running("half")
    await node.apply_static(pod("quarter", container("main", **asking("250m"))))
    await node.wait_running("quarter")
    expect_cpu(node, BURSTABLE, 768, 30)
    expect_cpu(node, BESTEFFORT, 2, 1)
    for name in ("half", "quarter"):
        await node.remove_static(name)
    await node.run_until(
        lambda: node.cgroups.cpu(*BURSTABLE) <= 2,
        within_s=2 * limits.STOP_S,
        what="burstable has the least CPU again",
    )
    expect_cpu(node, BURSTABLE, 2, 1)


@conformance(
    id="class-shares-v1",
    rules=["CG-025", "CG-026", "CG-036.3", "CG-036.4"],
    needs=[CGROUPS, V1, Feature.FAULTS],
)
async def burstable_gets_the_sum_of_its_pods_v1(node: Node) -> None:
    """The Burstable class has the CPU shares that its pods request in all: updated before the
    sandbox of a new pod is made, and after a pod has been killed."""
    await shares_follow_the_pods(node)


@conformance(
    id="class-shares-v2",
    rules=["CG-021.1", "CG-025", "CG-026", "CG-036.3", "CG-036.4"],
    needs=[CGROUPS, V2, Feature.FAULTS],
)
async def burstable_gets_the_sum_of_its_pods_v2(node: Node) -> None:
    """With cgroup v2 the Burstable class has the CPU weight of what its pods request in all,
    updated before the sandbox of a new pod is made and after a pod has been killed."""
    await shares_follow_the_pods(node)


@conformance(id="class-others", rules=["CG-025", "CG-026"], needs=[CGROUPS])
async def other_classes_do_not_count(node: Node) -> None:
    """Guaranteed and BestEffort pods do not change the shares of the classes: Burstable has the sum
    of its own pods, BestEffort always has the minimum."""
    await node.apply_static(pod("sure", container("main", **limited("500m", "64Mi"))))
    await node.apply_static(pod("any"))
    await node.wait_running("sure")
    await node.wait_running("any")
    expect_cpu(node, BURSTABLE, 2, 1)
    expect_cpu(node, BESTEFFORT, 2, 1)
    limits_set = (
        node.cgroups.cpu_quota_us(*BESTEFFORT),
        node.cgroups.memory_limit_bytes(*BURSTABLE),
    )
    expect_equal(node, limits_set, (None, None), "quota and memory limit of the classes")


@conformance(id="class-update-period", rules=["CG-036.2"], needs=[CGROUPS, Feature.VIRTUAL_TIME])
async def classes_are_set_right_every_minute(node: Node) -> None:
    """A value that was changed behind the kubelet's back is restored within a minute."""
    await node.apply_static(HALF)
    await node.wait_running("half")
    file = "cpu.shares" if node.cgroups.version == 1 else "cpu.weight"
    node.cgroups.write("cpu", file, "77", *BURSTABLE)
    await node.run_until(
        lambda: node.cgroups.cpu(*BURSTABLE) != 77,
        within_s=61,
        what="burstable has its CPU again",
    )
    expect_cpu(node, BURSTABLE, 512, 20)


def spoil(node: Node) -> None:
    """Change the CPU share of the Burstable class behind the kubelet's back."""
    file = "cpu.shares" if node.cgroups.version == 1 else "cpu.weight"
    node.cgroups.write("cpu", file, "77", *BURSTABLE)


async def set_right(node: Node) -> None:
    """Run until the Burstable class has its share again, long before the minute is over."""
    await node.run_until(
        lambda: node.cgroups.cpu(*BURSTABLE) != 77,
        within_s=limits.NOTICE_S,
        what="burstable has its CPU again",
    )


@conformance(
    id="class-update-after-kills", rules=["CG-036.4"],
    needs=[CGROUPS, Feature.RESTART, Feature.FAULTS],
)  # fmt: skip
async def every_kill_of_a_pod_sets_the_classes_right(node: Node) -> None:
    """Killing a pod updates the shares of the classes, also when no source has the pod any more."""
    await node.apply_static(pod("unknown"))
    node.runtime.on("StopContainer").delays(2)
    await node.wait_running("unknown")
    await node.kubelet.stop()
    await node.remove_static("unknown")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopContainer", pod="unknown"),
        within_s=limits.START_S + limits.HOUSEKEEPING_S,
        what="the stop of the unknown pod",
    )
    spoil(node)
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="unknown"), within_s=2 + limits.STOP_S
    )
    await set_right(node)


@conformance(
    id="class-update-lost-cgroup", needs=[CGROUPS, Feature.FAULTS],
    rules=["CG-036.4", "CG-041.1", "CG-041.3", "LIFE-070.6"], node_config={"syncFrequency": "5s"},
)  # fmt: skip
async def the_kill_of_a_pod_that_lost_its_cgroup_sets_the_classes_right(node: Node) -> None:
    """A pod whose cgroup has vanished and that never restarts is killed for it, and once more
    because it has ended. The shares of the classes are right after the first kill, while the second
    one is under way."""
    await node.apply_static(pod("lost", restartPolicy="Never"))
    node.runtime.on("StopPodSandbox", pod="lost").delays(LONG_STOP_S)
    await node.wait_running("lost")
    group = node.cgroups.of_pod("lost")
    node.cgroups.remove(*group)
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="lost"),
        within_s=5 * 1.5 + limits.NOTICE_S + limits.STOP_S,
        what="the kill of the pod without its cgroup",
    )
    spoil(node)
    await node.run_for(LONG_STOP_S)
    await set_right(node)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.cgroups.is_gone(*group), True, "the cgroup stays away")
    expect_equal(node, node.count("StartContainer", pod="lost"), 1, "starts")
    expect_equal(node, node.count("RunPodSandbox", pod="lost"), 1, "sandboxes")


@conformance(
    id="class-hugepages", rules=["CG-024", "CG-025", "CG-026", "CG-030"],
    needs=[CGROUPS, Feature.NODE_RESOURCES],
)  # fmt: skip
async def huge_pages_of_classes_are_not_limited(node: Node) -> None:
    """The classes may use all huge pages of the node; a pod that requests none may use none."""
    await node.apply_static(pod("any"))
    await node.wait_running("any")
    for group in (("kubepods",), BURSTABLE, BESTEFFORT):
        limit = node.cgroups.hugepages_bytes("2MB", *group)
        expect_equal(node, limit, 1 << 62, f"huge pages of {'/'.join(group)}")
    limit = node.cgroups.hugepages_bytes("2MB", *node.cgroups.of_pod("any"))
    expect_equal(node, limit, 0, "huge pages of a pod")
