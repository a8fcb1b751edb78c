"""A runtime that does not work: nothing new starts, and nothing that runs is harmed."""

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS
RESTART, VIRTUAL = Feature.RESTART, Feature.VIRTUAL_TIME


@conformance(
    id="runtime-not-ready", rules=["LIFE-006", "PLEG-202"], needs=[STATUS, FAULTS, RESTART]
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
    id="runtime-away-long", rules=["PLEG-202", "LIFE-006"], needs=[STATUS, FAULTS, VIRTUAL]
)
async def a_minute_without_a_runtime_harms_no_pod(node: Node) -> None:
    """While every call fails for a minute nothing changes; new pods start afterwards."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    before = node.writes("web")
    with node.runtime.away():
        await node.apply_static(pod("later"))
        await node.run_for(60)
    await node.run_until(lambda: node.running("later"), within_s=30, what="later runs")
    expect_equal(node, node.writes("web"), before, "changing calls for web")


@conformance(id="runtime-outage", rules=["NODE-051", "PLEG-009"], needs=[STATUS, FAULTS])
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


@conformance(id="relist-hangs", rules=["PLEG-201", "PLEG-202"], needs=[STATUS, FAULTS, VIRTUAL])
async def a_relist_older_than_three_minutes_stops_the_loop(node: Node) -> None:
    """When lists have failed for more than three minutes, no new pod starts until one succeeds."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    with node.runtime.on("ListPodSandbox").fails("UNKNOWN", "stuck"):
        await node.run_for(200)
        await node.apply_static(pod("later"))
        await node.run_for(20)
        expect_equal(node, node.count("RunPodSandbox", pod="later"), 0, "sandboxes of later")
    await node.run_until(lambda: node.running("later"), within_s=15 + limits.START_S)


@conformance(id="hung-stop-isolated", rules=["LIFE-030", "PLEG-102"], needs=[STATUS, FAULTS])
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
