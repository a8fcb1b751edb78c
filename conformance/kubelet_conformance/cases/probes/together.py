"""Several probes beside each other, and probes that take their time."""

from itertools import pairwise

from kubelet_conformance.cases.probes.runs import script
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, RunProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

STATUS, API = Feature.STATUS, Feature.API


@conformance(
    id="readiness-each-container",
    rules=["PROBE-031.1", "PROBE-001.1", "PROBE-033.3"],
    needs=[STATUS],
)
async def each_container_has_its_own_readiness(node: Node) -> None:
    """The result of a probe is that of its container alone; the condition names those that are not
    ready."""
    quick = container("quick", probes={"readiness": ExecProbe()})
    slow = container("slow", probes={"readiness": ExecProbe(from_s=12)})
    await node.apply_static(pod("web", quick, slow))
    await node.run_until(
        lambda: node.container("web", "quick").get("ready") is True, within_s=limits.START_S + 1
    )
    for _ in range(12):
        await node.run_for(0.25)
        readiness = [node.container("web", name).get("ready") for name in ("quick", "slow")]
        expect_equal(node, readiness, [True, False], "ready of quick and slow")
    text = "containers with unready status: [slow]"
    expect_equal(node, node.condition("web", "Ready").get("message"), text, "message of Ready")
    await node.run_until(
        lambda: node.condition("web", "Ready").get("status") == "True",
        within_s=12 + 2 + limits.NOTICE_S,
        what="Ready",
    )


@conformance(id="probe-slow", rules=["PROBE-005.2", "PROBE-005.4"], needs=[STATUS])
async def a_slow_probe_delays_only_itself(node: Node) -> None:
    """Runs of one probe never overlap, and a probe that takes longer than its period does not delay
    that of another container."""
    long = RunProbe(run=script("sleep 2.5; exit 0", 0, takes_s=2.5), timeout_s=9)
    slow = container("slow", probes={"liveness": long})
    quick = container("quick", probes={"liveness": ExecProbe()})
    await node.apply_static(pod("web", slow, quick))
    await node.wait_running("web", "slow", "quick")
    await node.run_for(12)
    ended = [c for c in node.calls("ExecSync", container="slow") if c.response is not None]
    expect(node, 3 <= len(ended) <= 5, "three to five runs of the slow probe", len(ended))
    overlaps = [
        (node.ended_s(first), node.time_s(second))
        for first, second in pairwise(ended)
        if node.time_s(second) < node.ended_s(first)
    ]
    expect_equal(node, overlaps, [], "runs that began before the last one had ended")
    gaps = [b - a for a, b in pairwise(node.times_s("ExecSync", container="quick"))]
    widest = max(gaps)
    fits = len(gaps) >= 9 and widest <= 1.7 + node.slack_s / 4
    expect(node, fits, "a run of the quick probe each second", [round(gap, 2) for gap in gaps])


@conformance(id="probe-missed-ticks", rules=["PROBE-005.3"], needs=[STATUS, Feature.FAULTS])
async def missed_periods_are_not_made_up_for(node: Node) -> None:
    """After a run of five periods at most one more run follows at once, then one a period."""
    await node.apply_static(pod("web", container("main", probes={"liveness": ExecProbe()})))
    await node.run_until(
        lambda: node.count("ExecSync", container="main") >= 2, within_s=limits.START_S + 3
    )
    with node.runtime.on("ExecSync", container="main").delays(4.5):
        before = node.count("ExecSync", container="main")
        await node.run_until(lambda: node.count("ExecSync", container="main") > before, within_s=2)
    long = node.calls("ExecSync", container="main")[before]
    await node.run_until(lambda: long.ended_s is not None, within_s=6, what="the long run is over")
    end = node.ended_s(long)
    await node.run_for(2.5)
    after = [t for t in node.times_s("ExecSync", container="main") if end <= t <= end + 2.4]
    expect(node, 2 <= len(after) <= 4, "two to four runs in the next 2.4 s", after)


@conformance(id="probe-update-once", rules=["PROBE-031.2", "BACK-011"], needs=[API])
async def a_result_that_stays_the_same_wakes_no_pod(node: Node) -> None:
    """A readiness probe that goes on succeeding causes no syncs: a container in back-off beside it
    records its event a few times, not once a second."""
    main = container("main", probes={"readiness": ExecProbe()})
    await node.api.create_pod(pod("web", main, container("crash", exits(1))))
    await node.run_until(
        lambda: node.count("StartContainer", container="crash") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="a second start of crash",
    )
    await node.run_for(9)
    times = node.event_count("BackOff", pod="web")
    expect(node, 1 <= times <= 4, "one to four events BackOff in 9 s of back-off", times)
