"""When the cgroup of a pod is made and removed, and what happens when it is missing or wrong."""

from functools import partial

from kubelet_conformance.cases.cgroups.pods import asking, expect_cpu, limited
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term
from kubelet_conformance.registry import Feature, Level, conformance

CGROUPS, V1, V2 = Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2
API = Feature.API
OFTEN = {"syncFrequency": "5s"}
SYNC_S = 5 * 1.5 + limits.NOTICE_S
BESTEFFORT = ("kubepods", "besteffort")


async def gone(node: Node, *group: str, within_s: float = limits.STOP_S) -> None:
    """Run until the cgroup is in no tree."""
    await node.run_until(
        lambda: node.cgroups.is_gone(*group), within_s=within_s, what=f"{'/'.join(group)} is gone"
    )


@conformance(id="cgroup-before-sandbox", rules=["CG-040.1"], needs=[CGROUPS, Feature.FAULTS])
async def the_cgroup_is_there_before_the_sandbox(node: Node) -> None:
    """The pod's cgroup exists, with its limits, before the kubelet calls RunPodSandbox, because the
    runtime puts the sandbox into it."""
    with node.runtime.on("RunPodSandbox", pod="web").delays(2):
        await node.apply_static(pod("web", container("main", **limited("500m", "64Mi"))))
        await node.run_until(
            lambda: node.count("RunPodSandbox", pod="web"), within_s=limits.START_S
        )
        group = node.cgroups.of_pod("web")
        expect_equal(node, node.cgroups.exists(*group), True, "the cgroup exists")
        expect_equal(node, node.cgroups.cpu_quota_us(*group), 50_000, "quota")
        expect_equal(node, node.cgroups.memory_limit_bytes(*group), 64 << 20, "memory limit")


@conformance(id="cgroup-removed-at-end", rules=["CG-042.3", "CG-042.5"], needs=[API, CGROUPS])
async def the_cgroup_is_gone_when_the_pod_is(node: Node) -> None:
    """When a deleted pod is gone from the API, its cgroup has been removed.

    This is tried with three pods, one after the other: housekeeping, which runs every 2 s, removes
    leftover cgroups too, but would be too late for at least one of them.
    """
    for name in ("one", "two", "three"):
        await node.api.create_pod(pod(name))
        await node.wait_running(name)
        group = node.cgroups.of_pod(name)
        expect_equal(node, node.cgroups.exists(*group), True, "the cgroup exists")
        await node.api.delete_pod(name)
        await node.run_until(
            partial(is_deleted, node, name), within_s=3 * limits.STOP_S, what="the pod is gone"
        )
        expect_equal(node, node.cgroups.is_gone(*group), True, f"the cgroup of {name} is gone")
        await node.run_for(0.7)


def is_deleted(node: Node, name: str) -> bool:
    """Whether the pod is gone from the API."""
    return node.api.pod(name) is None


@conformance(id="cgroup-removed-when-finished", rules=["CG-042.3"], needs=[API, CGROUPS])
async def a_finished_pod_has_no_cgroup(node: Node) -> None:
    """The cgroup of a pod that has succeeded is removed, although the pod stays at the API."""
    await node.api.create_pod(
        pod("job", container("main", exits(0, after_s=5)), restartPolicy="Never")
    )
    await node.wait_running("job")
    group = node.cgroups.of_pod("job")
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=5 + 3 * limits.STOP_S,
        what="Succeeded",
    )
    await gone(node, *group)


@conformance(id="cgroup-kept-by-restart", rules=["CG-040.3"], needs=[CGROUPS, Feature.RESTART])
async def a_new_kubelet_keeps_the_cgroups(node: Node) -> None:
    """A restarted kubelet that finds a running pod with its cgroup stops nothing and leaves the
    cgroup as it is."""
    await node.apply_static(pod("web", container("main", **limited("500m", "64Mi"))))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    file, text = ("cpu.shares", "99") if node.cgroups.version == 1 else ("cpu.weight", "99")
    node.cgroups.write("cpu", file, text, *group)
    await node.kubelet.restart()
    await node.wait_running("web")
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    expect_equal(node, node.cgroups.cpu(*group), 99, "CPU shares that were written by hand")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="cgroup-missing-restarts",
    rules=["CG-015", "CG-041.1", "CG-041.2"],
    needs=[CGROUPS],
    node_config=OFTEN,
)
async def a_pod_without_its_cgroup_is_started_anew(node: Node) -> None:
    """Containers that run without the cgroup of their pod are stopped and started again in a new
    one."""
    await node.apply_static(pod("web", container("main", **asking("100m"))))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    node.cgroups.remove(*group)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=SYNC_S, what="a stop"
    )
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=SYNC_S + limits.STOP_S,
        what="a second start",
    )
    expect_equal(node, node.cgroups.exists(*group), True, "the cgroup exists again")
    expect_cpu(node, group, 102, 4)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 2, "sandboxes")


@conformance(
    id="cgroup-missing-made-at-once", rules=["CG-041.1", "CG-041.2",
    "LIFE-070.6"], node_config=OFTEN,
    needs=[CGROUPS, Feature.FAULTS],
)  # fmt: skip
async def a_lost_cgroup_is_made_again_as_soon_as_the_pod_is_stopped(node: Node) -> None:
    """The cgroup is made again in the sync that stops the containers, not in a later one: here none
    comes, because the runtime does not answer what there is."""
    await node.apply_static(pod("web", container("main", ignores_term()), grace_s=3))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    node.cgroups.remove(*group)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=SYNC_S, what="a stop"
    )
    with node.runtime.on("ListPodSandbox").delays(20):
        await node.run_until(
            lambda: any(c.succeeded for c in node.calls("StopPodSandbox", pod="web")),
            within_s=3 + limits.STOP_S,
            what="the sandbox is stopped",
        )
        await node.run_until(
            lambda: node.cgroups.exists(*group), within_s=limits.NOTICE_S, what="the cgroup exists"
        )


@conformance(
    id="cgroup-missing-never", rules=["CG-041.1", "CG-041.3"], needs=[CGROUPS], node_config=OFTEN
)
async def a_pod_that_never_restarts_gets_no_new_cgroup(node: Node) -> None:
    """When the cgroup of a pod with restartPolicy Never is missing, its containers are stopped, and
    neither they nor the cgroup come back."""
    await node.apply_static(pod("web", restartPolicy="Never"))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    node.cgroups.remove(*group)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=SYNC_S, what="a stop"
    )
    await node.run_for(SYNC_S)
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
    expect_equal(node, node.cgroups.is_gone(*group), True, "the cgroup is gone")


@conformance(
    id="cgroup-missing-in-one-tree", needs=[CGROUPS, V1],
    rules=["CG-015.1", "CG-041.1", "CG-044.1"],
    node_config=OFTEN,
)  # fmt: skip
async def a_cgroup_that_lacks_one_tree_does_not_count(node: Node) -> None:
    """With cgroup v1 a cgroup that is missing in the tree of one controller counts as missing."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    node.cgroups.remove(*group, tree="pids")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 * SYNC_S + limits.STOP_S,
        what="a second start",
    )
    expect_equal(node, node.cgroups.exists(*group), True, "the cgroup exists in every tree")


@conformance(
    id="cgroup-without-a-controller", needs=[CGROUPS, V2], rules=["CG-015.2", "CG-041.1"],
    node_config=OFTEN,
)  # fmt: skip
async def a_cgroup_that_lacks_a_controller_does_not_count(node: Node) -> None:
    """With cgroup v2 a cgroup that has lost one of the kernel's controllers counts as missing: its
    pod is started anew in one that has it."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    for words in (group, group[:-1]):  # first below: a parent may not take away what a child has
        node.cgroups.write("pids", "cgroup.subtree_control", "-pids", *words)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 * SYNC_S + limits.STOP_S,
        what="a second start",
    )
    controllers = node.cgroups.read("pids", "cgroup.controllers", *group).split()
    expect(node, "pids" in controllers, "the controller pids in the cgroup of the pod", controllers)


@conformance(
    id="cgroup-cannot-be-made", rules=["CG-040.2", "LIFE-070.6"], needs=[API, CGROUPS, V2],
)  # fmt: skip
async def without_a_cgroup_there_is_no_sandbox(node: Node) -> None:
    """While the kernel refuses to make the pod's cgroup, an event says so and no sandbox is made;
    the pod starts when the cgroup can be made."""
    await node.run_until(lambda: node.cgroups.exists(*BESTEFFORT), within_s=limits.START_S)
    node.cgroups.write("memory", "cgroup.max.descendants", "2", "kubepods")
    await node.api.create_pod(pod("web"))
    await node.run_until(
        lambda: node.events("FailedCreatePodContainer", pod="web"),
        within_s=limits.START_S,
        what="the event FailedCreatePodContainer",
    )
    event = node.events("FailedCreatePodContainer", pod="web")[0]
    start = "unable to ensure pod container exists: failed to create container for [kubepods"
    message = str(event["message"])
    expect(node, message.startswith(start), f"a message that begins with {start!r}", message)
    expect_equal(node, event["type"], "Warning", "type of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    node.cgroups.write("memory", "cgroup.max.descendants", "max", "kubepods")
    await node.run_until(
        lambda: node.running("web"), within_s=limits.SYNC_ERROR_S + limits.START_S, what="web runs"
    )


@conformance(
    id="cgroup-limit-refused", rules=["CG-040"], level=Level.DETAIL, needs=[CGROUPS, V1],
    node_config={"podPidsLimit": 5_000_000},
)  # fmt: skip
async def a_limit_that_is_refused_stops_no_pod(node: Node) -> None:
    """A limit that the kernel refuses (here more processes than it has IDs for) is only logged: the
    pod runs with its other limits."""
    await node.apply_static(pod("web", container("main", **limited("500m", "64Mi"))))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    expect_equal(node, node.cgroups.pids_limit(*group), None, "limit of processes")
    expect_equal(node, node.cgroups.cpu_quota_us(*group), 50_000, "quota")


@conformance(id="cgroup-orphan", rules=["CG-043.1", "CG-043.3"], needs=[CGROUPS])
async def cgroups_of_unknown_pods_are_removed(node: Node) -> None:
    """Housekeeping removes a cgroup that is named like a pod's but belongs to none, with everything
    below it; others stay."""
    await node.run_until(lambda: node.cgroups.exists(*BESTEFFORT), within_s=limits.START_S)
    orphans = [
        (*above, "pod0123") for above in (("kubepods",), ("kubepods", "burstable"), BESTEFFORT)
    ]
    for orphan in orphans:
        node.cgroups.make(*orphan)
    node.cgroups.make(*orphans[0], "container")
    node.cgroups.make(*BESTEFFORT, "other")
    for orphan in orphans:
        await gone(node, *orphan, within_s=2 * limits.HOUSEKEEPING_S + 2)
    expect_equal(node, node.cgroups.exists(*BESTEFFORT, "other"), True, "the other cgroup exists")
    node.cgroups.remove(*BESTEFFORT, "other")


@conformance(id="cgroup-orphan-of-last-kubelet", rules=["CG-043"], needs=[CGROUPS, Feature.RESTART])
async def what_became_an_orphan_meanwhile_is_removed(node: Node) -> None:
    """A pod that was removed while no kubelet ran is stopped by the next kubelet, and its cgroup is
    removed."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    group = node.cgroups.of_pod("web")
    await node.kubelet.stop()
    await node.remove_static("web")
    await node.kubelet.start()
    await gone(node, *group, within_s=4 * limits.STOP_S)
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.STOP_S,
        what="the sandbox is stopped",
    )


@conformance(
    id="cgroup-not-managed", rules=["CG-012.2"], needs=[CGROUPS],
    node_config={"cgroupsPerQOS": False, "enforceNodeAllocatable": []},
)  # fmt: skip
async def without_cgroups_per_qos_there_are_none(node: Node) -> None:
    """With cgroupsPerQOS false no cgroup is made, and sandboxes name no parent cgroup: the runtime
    chooses the place."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    expect_equal(node, node.cgroups.is_gone("kubepods"), True, "there is no cgroup kubepods")
    parent = node.calls("RunPodSandbox")[0].request.config.linux.cgroup_parent
    expect_equal(node, parent, "", "cgroup_parent")
