"""What a kubelet finds that another one began: CPUs and memory that were given to a container which
was not made yet."""

from typing import Any, Final

from kubelet_conformance.cases.resources.cpus import created
from kubelet_conformance.cases.resources.memory import CONFIG as MEMORY
from kubelet_conformance.cases.resources.topology import SERVER
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance
from refkubelet.model.cpuset import parse_cpuset

BOTH: Final = {
    **MEMORY,
    "cpuManagerPolicy": "static",
    "systemReserved": {"memory": "1Gi", "cpu": "1"},
}


def guaranteed(name: str, cpus: int, memory: str) -> PodPlan:
    """A pod with one container, named as the pod, whose limits are its requests."""
    amounts = {"cpu": str(cpus), "memory": memory}
    return pod(name, container(name, resources={"requests": amounts, "limits": amounts}))


def given(resources: Any) -> tuple[str, str]:
    """The CPUs and the memory nodes in the resources of a CreateContainer."""
    return resources.cpuset_cpus, resources.cpuset_mems


@conformance(
    id="cpus-half-made", rules=["CG-081.3", "CG-082.3", "CG-080.3"], machine=SERVER,
    needs=[Feature.API, Feature.STATUS, Feature.NODE_RESOURCES, Feature.FAULTS, Feature.RESTART],
    node_config=BOTH,
)  # fmt: skip
async def what_was_given_before_a_crash_is_kept(node: Node) -> None:
    """A container whose CPUs and memory nodes were chosen when the kubelet was killed, and that was
    not made yet, is made with the same ones by the next kubelet, though better ones are free by
    then; these, and no others, go to the next pod."""
    await node.api.run_pods(guaranteed("before", 2, "40Gi"))
    rule = node.runtime.on("CreateContainer", pod="web").hangs()
    await node.api.create_pod(guaranteed("web", 2, "40Gi"))
    await node.run_until(
        lambda: node.count("CreateContainer", pod="web"), within_s=limits.START_S, what="the call"
    )
    first = given(created(node, "web"))
    await node.kubelet.kill()
    rule.remove()
    node.api.vanish_pod("before")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.running("web", "web"),
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="web runs",
    )
    expect_equal(node, given(created(node, "web")), first, "CPUs and memory nodes of web")
    await node.run_until(
        lambda: node.count("StopContainer", pod="before"),
        within_s=limits.START_S + limits.STOP_S + 2 * limits.HOUSEKEEPING_S,
        what="before is stopped",
    )
    await node.run_for(limits.NOTICE_S + limits.STOP_S)
    await node.api.run_pods(guaranteed("next", 2, "40Gi"))
    cpus, nodes = given(created(node, "next"))
    expect(node, not parse_cpuset(cpus) & parse_cpuset(first[0]), "other CPUs", (cpus, first[0]))
    expect_equal(node, nodes, given(created(node, "before"))[1], "memory nodes of next")
