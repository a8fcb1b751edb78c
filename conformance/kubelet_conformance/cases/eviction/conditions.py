"""The pressure conditions of the Node: their texts, their events, and several at once."""

from typing import Any

from kubelet_conformance.cases.eviction.common import MI, has_condition, hungry
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, NODE, VIRTUAL = Feature.API, Feature.NODE_RESOURCES, Feature.VIRTUAL_TIME
SHORT = Feature.SHORTAGE
MEMORY = "memory.available"
REFUSED_S = limits.START_S + limits.STATUS_PASS_S
KINDS = ("MemoryPressure", "DiskPressure", "PIDPressure")
FINE = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
FINE_EVENTS = ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID")


def texts(node: Node, kind: str) -> tuple[str, str]:
    """Reason and message of a condition of the Node."""
    condition = node.api.node_condition(kind)
    return condition["reason"], condition["message"]


@conformance(
    id="conditions-at-start",
    rules=["EVIC-060.3", "EVIC-061.3", "EVIC-062.3", "EVIC-063.1", "EVIC-063.2"],
    needs=[API],
    alone=True,
)
async def a_node_that_lacks_nothing(node: Node) -> None:
    """A node without pressure shows that in three conditions, each with an event of type Normal at
    the start and no other later, and their times of transition stay."""
    for kind in KINDS:
        await has_condition(node, kind, "False")
        expect_equal(node, texts(node, kind), FINE[kind], f"reason and message of {kind}")
    since = [node.api.node_condition(kind)["lastTransitionTime"] for kind in KINDS]
    # A kubelet that does not see its Node at the API yet computes it anew, and tells it each time.
    await node.run_for(limits.START_S)
    before = {reason: node.event_count(reason) for reason in FINE_EVENTS}
    await node.run_for(2 * limits.NODE_STATUS_S)
    for reason in FINE_EVENTS:
        expect_equal(
            node, {e["type"] for e in node.events(reason)}, {"Normal"}, f"type of {reason}"
        )
        expect(node, before[reason], f"an event {reason}")
        expect_equal(node, node.event_count(reason), before[reason], f"events {reason}")
    after = [node.api.node_condition(kind)["lastTransitionTime"] for kind in KINDS]
    expect_equal(node, after, since, "lastTransitionTime of the three conditions")


@conformance(
    id="two-pressures",
    rules=["EVIC-110.6", "EVIC-111.1", "EVIC-111.2", "EVIC-053.5", "EVIC-063.1"],
    needs=[API, NODE, VIRTUAL],
    node_config={
        "evictionHard": {MEMORY: "200Mi", "nodefs.available": "1Gi"},
        "evictionPressureTransitionPeriod": "30s",
    },
)
async def each_condition_has_its_own_time(node: Node) -> None:
    """Under memory and disk pressure every ordinary pod is refused, with both conditions in the
    message; each condition ends after its own transition period."""
    node.machine.leave_memory(100 * MI)
    node.machine.leave_disk(500 * MI)
    await has_condition(node, "MemoryPressure")
    await has_condition(node, "DiskPressure")
    tolerated = [
        {"key": f"node.kubernetes.io/{resource}-pressure", "operator": "Exists"}
        for resource in ("memory", "disk")
    ]
    asks: dict[str, Any] = {"requests": {"memory": "8Mi"}, "tolerations": tolerated}
    await node.api.create_pod(hungry("web", **asks))
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=REFUSED_S)
    message = (node.api.pod("web") or {})["status"]["message"]
    texts = {
        f"The node had condition: [{both}]. "
        for both in ("DiskPressure MemoryPressure", "MemoryPressure DiskPressure")
    }
    expect(node, message.removeprefix("Pod was rejected: ") in texts, f"one of {texts}", message)
    events = {(e["type"], e["message"] in texts) for e in node.events("Evicted", pod="web")}
    expect_equal(node, events, {("Warning", True)}, "type and message of the event about web")
    node.machine.leave_memory(900 * MI)
    await node.run_for(30 + limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    statuses = [node.api.node_condition(kind).get("status") for kind in KINDS]
    expect_equal(node, statuses, ["False", "True", "False"], f"status of {KINDS}")
    expect_equal(node, node.event_count("NodeHasDiskPressure"), 1, "events NodeHasDiskPressure")


@conformance(
    id="toleration-of-another-effect", rules=["EVIC-110.5", "EVIC-110.4"], needs=[API, SHORT],
    node_config={"evictionHard": {MEMORY: "200Mi"}},
)  # fmt: skip
async def only_the_right_toleration_helps(node: Node) -> None:
    """Under memory pressure a pod without requests that tolerates another effect of the taint is
    refused."""
    await node.machine.run_short(MEMORY, 150 * MI)
    await has_condition(node, "MemoryPressure")
    other = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
    await node.api.create_pod(pod("web", tolerations=[{**other, "effect": "NoExecute"}]))
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=REFUSED_S)
    expect_equal(node, (node.api.pod("web") or {})["status"]["reason"], "Evicted", "reason")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")
