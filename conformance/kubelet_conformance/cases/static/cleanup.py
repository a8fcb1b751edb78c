"""A static pod whose former version cannot be cleaned up."""

from kubelet_conformance.cases.cgroups.leftovers import freeze, leave_process, thaw
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance


@conformance(
    id="static-waits-for-cleanup",
    rules=["MIRR-003.1"],
    needs=[Feature.API, Feature.CGROUPS, Feature.CGROUP_V1],
)
async def a_new_version_waits_until_the_old_one_is_cleaned_up(node: Node) -> None:
    """While the cgroup of the former version of an edited static pod cannot be removed, because a
    process in it is frozen, the new version does not start; it does when the cgroup is gone."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    process, _ = leave_process(node, "web")
    await freeze(node, process)
    await node.apply_static(pod("web", metadata={"labels": {"v": "2"}}))
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.NOTICE_S + limits.STOP_S,
        what="the sandbox of the first version is stopped",
    )
    await node.run_for(limits.STATIC_SUCCESSOR_S + limits.NOTICE_S)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes of web")
    thaw(node)
    await node.run_until(
        lambda: node.count("RunPodSandbox", pod="web") == 2,
        within_s=limits.SYNC_ERROR_S + limits.STATIC_SUCCESSOR_S + limits.STOP_S,
        what="the second version starts",
    )
    node.cgroups.remove("ice")
