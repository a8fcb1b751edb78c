"""Disk pressure, on a node whose free disk space can be set."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import comparable
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance

API, NODE, VIRTUAL = Feature.API, Feature.NODE_RESOURCES, Feature.VIRTUAL_TIME
SHORT = Feature.SHORTAGE
MI = 1024 * 1024
HARD = {"evictionHard": {"nodefs.available": "1Gi"}}
PLENTY, LITTLE = 5000 * MI, 500 * MI


def writer(name: str, written_mi: int, **spec: Any) -> PodPlan:
    """A pod that has written so much into its root filesystem."""
    work = runs(stops(1), uses(disk_bytes=written_mi * MI))
    fields: dict[str, Any] = {"resources": {"requests": {"memory": "8Mi"}}}
    return pod(name, container("main", work, **fields), **spec)


@conformance(
    id="disk-larger-first",
    rules=["EVIC-081.3", "EVIC-044.1", "EVIC-091.1"],
    needs=[API, SHORT],
    node_config=HARD,
)
async def the_pod_that_wrote_most_is_evicted(node: Node) -> None:
    """Under disk pressure the pod that uses most is evicted first."""
    await node.api.run_pods(writer("small", 100), writer("large", 900))
    await node.machine.run_short("nodefs.available", LITTLE)
    await node.run_until(
        lambda: node.events("Evicted"),
        within_s=2 * limits.EVICTION_CYCLE_S + limits.STOP_S,
        what="an eviction",
    )
    event = node.events("Evicted")[0]
    expect_equal(node, event["involvedObject"]["name"], "large", "victim")
    begin = "The node was low on resource: ephemeral-storage. "
    start = comparable(node, f"{begin}Threshold quantity: 1Gi, available: 500Mi. ")
    message = comparable(node, event["message"])
    expect(node, message.startswith(start), f"message {start!r}...", event["message"])


@conformance(
    id="disk-request-counts",
    rules=["EVIC-081.1", "EVIC-081.3"],
    needs=[API, SHORT],
    node_config=HARD,
)
async def what_a_pod_asked_for_does_not_count_against_it(node: Node) -> None:
    """Pods are ranked by how far they are above their ephemeral-storage request: the one furthest
    above is evicted though it wrote less, and one within its request comes last."""
    pod_sizes = {"within": ("2Gi", 1200), "large": ("800Mi", 900), "small": ("10Mi", 300)}
    for name, (request, written_mi) in pod_sizes.items():
        work = runs(stops(1), uses(disk_bytes=written_mi * MI))
        fields: dict[str, Any] = {"resources": {"requests": {"ephemeral-storage": request}}}
        await node.api.run_pods(pod(name, container("main", work, **fields)))
    await node.machine.run_short("nodefs.available", LITTLE)
    await node.run_until(
        lambda: node.events("Evicted"),
        within_s=2 * limits.EVICTION_CYCLE_S + limits.STOP_S,
        what="an eviction",
    )
    expect_equal(node, node.events("Evicted")[0]["involvedObject"]["name"], "small", "victim")


@conformance(
    id="disk-reclaims-first",
    rules=["EVIC-070.1", "EVIC-070.6", "EVIC-044.3"],
    needs=[API, NODE, VIRTUAL, Feature.IMAGE_GC],
    node_config=HARD,
)
async def unused_images_go_before_any_pod(node: Node) -> None:
    """Under disk pressure unused images are removed before a pod is stopped."""
    node.machine.leave_disk(PLENTY)
    await node.api.run_pods(writer("web", 100))
    await node.run_for(150)  # images are kept for two minutes after they were first seen (GC-103)
    node.machine.leave_disk(LITTLE)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=2 * limits.EVICTION_CYCLE_S + limits.STOP_S,
        what="the eviction of web",
    )
    kinds = ("RemoveImage", "StopContainer")  # in virtual time both come at the same instant
    methods = [call.method for call in node.calls() if call.method in kinds]
    expect_equal(node, methods[:2], list(kinds), "removal of the unused image, then the eviction")


@conformance(
    id="disk-reclaim-told-first",
    rules=["EVIC-055.5"],
    needs=[API, NODE, VIRTUAL, Feature.IMAGE_GC, Feature.FAULTS],
    node_config=HARD,
)
async def the_event_comes_before_the_reclaim(node: Node) -> None:
    """The event about the node is recorded before images are removed to free space, and no pod is
    stopped meanwhile."""
    node.machine.leave_disk(PLENTY)
    await node.api.run_pods(writer("web", 100))
    await node.run_for(150)
    rule = node.runtime.on("RemoveImage").hangs()
    node.machine.leave_disk(LITTLE)
    await node.run_until(
        lambda: node.count("RemoveImage"),
        within_s=2 * limits.EVICTION_CYCLE_S,
        what="the removal of an image",
    )
    await node.run_for(1)
    expect_equal(node, node.event_count("EvictionThresholdMet"), 1, "events EvictionThresholdMet")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    rule.release()
    await node.run_until(
        lambda: node.events("Evicted"),
        within_s=2 * limits.EVICTION_CYCLE_S + limits.STOP_S,
        what="the eviction, as the removal did not free enough",
    )


@conformance(
    id="disk-refuses-all",
    rules=["EVIC-110.6", "EVIC-111.1", "EVIC-111.3"],
    needs=[API, SHORT],
    node_config=HARD,
)
async def every_ordinary_pod_is_refused_under_disk_pressure(node: Node) -> None:
    """Under disk pressure every ordinary pod is rejected, whatever its requests."""
    await node.machine.run_short("nodefs.available", LITTLE)
    await node.run_until(
        lambda: node.api.node_condition("DiskPressure").get("status") == "True",
        within_s=2 * limits.EVICTION_CYCLE_S + 2,
        what="DiskPressure",
    )
    sized: dict[str, Any] = {
        "resources": {"requests": {"memory": "8Mi"}, "limits": {"memory": "8Mi"}}
    }
    await node.api.create_pod(pod("web", container("main", **sized)))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.STATUS_PASS_S + limits.START_S
    )
    status = (node.api.pod("web") or {})["status"]
    text = "Pod was rejected: The node had condition: [DiskPressure]. "
    expect_equal(node, (status["reason"], status["message"]), ("Evicted", text), "status")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")


@conformance(
    id="disk-above-threshold",
    rules=["EVIC-053.1", "EVIC-002.1", "EVIC-022.1"],
    needs=[API, NODE],
    node_config=HARD,
)
async def nothing_is_evicted_while_the_disk_has_room(node: Node) -> None:
    """With as much space available as the threshold says nothing happens, and with slightly less a
    pod is evicted."""
    node.machine.leave_disk(PLENTY)
    await node.api.run_pods(writer("web", 900))
    node.machine.leave_disk(1024 * MI)
    await node.run_for(3 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect_equal(node, node.api.node_condition("DiskPressure").get("status"), "False", "condition")
    node.machine.leave_disk(1024 * MI - 4096)
    await node.run_until(
        lambda: node.events("Evicted"), within_s=2 * limits.EVICTION_CYCLE_S, what="an eviction"
    )
