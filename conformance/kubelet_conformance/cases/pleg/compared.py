"""What two lists are compared by: identities and states, and nothing else."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS


@conformance(
    id="labels-are-not-compared", rules=["PLEG-002.2", "PLEG-002.1"], needs=[STATUS, FAULTS],
    alone=True,
)  # fmt: skip
async def other_labels_are_no_change(node: Node) -> None:
    """While no container or sandbox comes, goes or changes its state, nothing is read of a pod,
    though each list shows other labels and annotations of it."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    numbers = iter(range(10_000))

    def change(answer: Any) -> None:
        for row in (*getattr(answer, "items", ()), *getattr(answer, "containers", ())):
            row.labels["number"] = str(next(numbers))
            row.annotations["number"] = str(next(numbers))

    since = node.now_s
    with (
        node.runtime.on("ListContainers").changes_answer(change),
        node.runtime.on("ListPodSandbox").changes_answer(change),
    ):
        await node.run_for(10)
    # Of containers the log manager asks every 10 s, whatever was listed.
    read = len(node.calls("PodSandboxStatus", since_s=since))
    expect_equal(node, read, 0, "calls of PodSandboxStatus")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
