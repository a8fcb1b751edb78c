"""A runtime that does not work: nothing new starts, and nothing that runs is harmed."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
RESTART, VIRTUAL = Feature.RESTART, Feature.VIRTUAL_TIME


@conformance(
    id="runtime-not-ready", rules=["LIFE-006", "PLEG-202.5"], needs=[STATUS, FAULTS, RESTART]
)
async def nothing_starts_before_the_runtime_is_ready(node: Node) -> None:
    """No pod starts before the runtime's Status has succeeded for the first time."""
    await node.kubelet.stop()
    with node.runtime.on("Status").fails("UNKNOWN", "not yet"):
        await node.kubelet.start()
        await node.apply_static(pod("web"))
        await node.run_for(6)
        expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    # The status is read every 5 s, and the loop looks again after 5 s at most.
    await node.run_until(lambda: node.running("web"), within_s=10 + limits.START_S)


@conformance(
    id="runtime-away-long",
    rules=["PLEG-202.5", "LIFE-006", "LIFE-006.2"],
    needs=[STATUS, FAULTS, VIRTUAL],
    alone=True,
)
async def a_minute_without_a_runtime_harms_no_pod(node: Node) -> None:
    """While every call fails for a minute nothing changes; new pods start soon afterwards: the
    runtime is asked every 5 s, and the loop looks again after 5 s at most."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    before = node.writes("web")
    with node.runtime.away():
        await node.apply_static(pod("later"))
        await node.run_for(60)
    await node.run_until(
        lambda: node.running("later"), within_s=10 + limits.START_S, what="later runs"
    )
    expect_equal(node, node.writes("web"), before, "changing calls for web")


@conformance(
    id="runtime-outage", rules=["NODE-051", "PLEG-009"], needs=[STATUS, FAULTS], alone=True
)
async def a_short_outage_of_the_runtime_restarts_nothing(node: Node) -> None:
    """While every call fails for 8 s containers are left alone, and none is restarted
    afterwards."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    before = node.writes("web")
    with node.runtime.away():
        await node.run_for(8)
    await node.run_for(limits.NOTICE_S + limits.HOUSEKEEPING_S)
    expect_equal(node, node.writes("web"), before, "changing calls")
    await node.apply_static(pod("later"))
    await node.run_until(lambda: node.running("later"), within_s=30, what="later runs")


@conformance(
    id="status-unreadable", rules=["PLEG-104.1"], needs=[API, FAULTS, Feature.OUTSIDE_KILL]
)
async def a_pod_is_not_synced_by_a_status_that_cannot_be_read(node: Node) -> None:
    """While the status of a container that has ended cannot be read, a sync of its pod for another
    reason makes nothing; afterwards the container is replaced in the same sandbox."""
    await node.api.run_pods(pod("web"))
    await node.run_for(limits.NOTICE_S)
    before = node.writes("web")
    with node.runtime.on("ContainerStatus").fails("UNKNOWN", "try later"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_for(limits.NOTICE_S)
        await node.api.patch_pod("web", {"metadata": {"annotations": {"some": "change"}}})
        await node.run_for(limits.NOTICE_S)
        expect_equal(node, node.writes("web"), before, "changing calls while a status fails")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 * limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="main is replaced",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")


@conformance(
    id="relist-hangs",
    rules=["PLEG-201.2", "PLEG-202.2", "PLEG-202.4", "PLEG-202.5", "LIFE-006.4", "NODE-023.3"],
    needs=[API, STATUS, FAULTS, VIRTUAL],
    alone=True,
)
async def a_relist_older_than_three_minutes_stops_the_loop(node: Node) -> None:
    """While lists fail new pods still start; when they have failed for more than three minutes,
    none starts until one succeeds, and the node is not ready."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    with node.runtime.on("ListPodSandbox").fails("UNKNOWN", "stuck"):
        await node.run_for(160)
        await node.apply_static(pod("early"))
        await node.run_until(
            lambda: node.count("RunPodSandbox", pod="early"),
            within_s=limits.START_S,
            what="a sandbox of early",
        )
        await node.run_for(35)
        await node.apply_static(pod("later"))
        await node.run_for(20)
        expect_equal(node, node.count("RunPodSandbox", pod="later"), 0, "sandboxes of later")
        ready = node.api.node_condition("Ready")
        expect_equal(
            node, (ready["status"], ready["reason"]), ("False", "KubeletNotReady"), "Ready"
        )
        text = "PLEG is not healthy: pleg was last seen active 3m"
        expect(node, text in ready["message"], text, ready["message"])
        with node.runtime.on("Status").changes_answer(not_ready):
            both = ("RuntimeReady=false", "PLEG is not healthy")
            await node.run_until(
                lambda: all(why in node.api.node_condition("Ready")["message"] for why in both),
                within_s=5 + limits.NODE_STATUS_S,
                what=f"both {' and '.join(both)} in the message",
            )
    await node.run_until(lambda: node.running("later"), within_s=20 + limits.START_S)


@conformance(
    id="relist-never", rules=["PLEG-201.1", "NODE-023.3"], needs=[API, STATUS, FAULTS, RESTART]
)
async def nothing_starts_before_the_first_list(node: Node) -> None:
    """A kubelet that has not yet listed anything is not ready, and starts no pod."""
    await node.kubelet.stop()
    with node.runtime.on("ListPodSandbox").fails("UNKNOWN", "not yet"):
        await node.kubelet.start()
        await node.apply_static(pod("web"))
        await node.run_until(
            lambda: (
                "PLEG is not healthy: pleg has yet to be successful"
                in str(node.api.node_condition("Ready").get("message"))
            ),
            within_s=limits.NODE_STATUS_S + limits.START_S,
            what="a node that is not ready because of the PLEG",
        )
        expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    await node.run_until(lambda: node.running("web"), within_s=10 + limits.START_S)


@conformance(
    id="status-silent", rules=["PLEG-202.1", "LIFE-006.3"], needs=[STATUS, FAULTS], alone=True
)
async def a_runtime_is_down_after_half_a_minute_without_status(node: Node) -> None:
    """Status is asked every 5 s. While it fails new pods start, and when it has failed for more
    than 30 s none does."""
    await node.run_for(6)
    began_s = node.now_s
    with node.runtime.on("Status").fails("UNKNOWN", "no answer"):
        await node.run_for(17)
        await node.apply_static(pod("early"))
        await node.wait_running("early")
        await node.run_for(35 - (node.now_s - began_s))
        await node.apply_static(pod("later"))
        await node.run_for(8)
        expect_equal(node, node.count("RunPodSandbox", pod="later"), 0, "sandboxes of later")
    await node.run_until(lambda: node.running("later"), within_s=10 + limits.START_S)
    expect_spans(node, node.times_s("Status"), [Span(0.0, 5.5)] * 5, "calls of Status")


def not_ready(answer: Any) -> None:
    """A change of the answer to Status: the runtime is not ready."""
    for condition in answer.status.conditions:
        if condition.type == "RuntimeReady":
            condition.status = False
            condition.reason, condition.message = "Maintenance", "shims are exchanged"


def no_network(answer: Any) -> None:
    """A change of the answer to Status: the network is not ready."""
    for condition in answer.status.conditions:
        condition.status = condition.type != "NetworkReady"


@conformance(
    id="runtime-says-not-ready",
    rules=["PLEG-202.3", "PLEG-202.4", "PLEG-202.5"],
    needs=[API, STATUS, FAULTS],
    alone=True,
)
async def a_runtime_that_says_it_is_not_ready_gets_no_pods(node: Node) -> None:
    """While Status says that the runtime is not ready no pod starts, and the node's condition tells
    it. While only the network is not ready, a pod on the host's network starts."""
    await node.run_for(6)
    with node.runtime.on("Status").changes_answer(not_ready):
        await node.run_for(6)
        await node.apply_static(pod("web", hostNetwork=True))
        await node.run_until(
            lambda: "shims are exchanged" in str(node.api.node_condition("Ready").get("message")),
            within_s=limits.NODE_STATUS_S + limits.NOTICE_S,
            what="a node that is not ready because of the runtime",
        )
        expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")
    with node.runtime.on("Status").changes_answer(no_network):
        await node.run_until(lambda: node.running("web"), within_s=10 + limits.START_S)


@conformance(
    id="stop-goes-on-unready",
    rules=["PLEG-202.6"],
    needs=[API, FAULTS],
    alone=True,
)
async def a_stop_that_has_begun_goes_on(node: Node) -> None:
    """A pod that is being stopped when the runtime says that it is not ready is stopped to the end:
    container, sandbox, and the pod is gone from the API."""
    await node.api.run_pods(pod("web"))
    rule = node.runtime.on("StopContainer", pod="web").hangs()
    await node.api.delete_pod("web", grace_s=1)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.NOTICE_S, what="the stop"
    )
    with node.runtime.on("Status").changes_answer(not_ready):
        await node.run_until(
            lambda: "shims are exchanged" in str(node.api.node_condition("Ready").get("message")),
            within_s=6 + limits.NODE_STATUS_S + limits.NOTICE_S,
            what="a node that is not ready because of the runtime",
        )
        rule.release()
        await node.run_until(
            lambda: node.count("StopPodSandbox", pod="web"),
            within_s=limits.STOP_S,
            what="the sandbox is stopped",
        )
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=10 + 3 * limits.STOP_S, what="web is gone"
    )


@conformance(id="hung-stop-isolated", rules=["LIFE-030", "PLEG-102.3"], needs=[STATUS, FAULTS])
async def a_hung_stop_touches_only_its_pod(node: Node) -> None:
    """While StopContainer of one pod hangs, other pods start and stop."""
    await node.apply_static(pod("stuck"))
    await node.apply_static(pod("free"))
    await node.wait_running("stuck")
    await node.wait_running("free")
    rule = node.runtime.on("StopContainer", pod="stuck").hangs()
    await node.remove_static("stuck")
    await node.run_until(lambda: node.count("StopContainer", pod="stuck"), within_s=limits.STOP_S)
    await node.remove_static("free")
    await node.run_until(lambda: node.count("StopPodSandbox", pod="free"), within_s=limits.STOP_S)
    await node.apply_static(pod("new"))
    await node.wait_running("new")
    expect_equal(node, node.count("StopPodSandbox", pod="stuck"), 0, "sandbox stops of stuck")
    rule.release()
    await node.run_until(lambda: node.count("StopPodSandbox", pod="stuck"), within_s=limits.STOP_S)
    stopped = [node.ended_s(c) for c in node.calls("StopContainer", pod="stuck")]
    expect(node, max(stopped) >= 0, "StopContainer has ended", stopped)
