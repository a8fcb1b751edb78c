"""Which probe may run when: initial delays, thresholds that are not set, and what goes on after the
end of a container."""

from kubelet_conformance.cases.probes.effects import answers, failures_before_stop
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, has_file, runs
from kubelet_conformance.registry import Feature, KnownBug, conformance

STATUS, API = Feature.STATUS, Feature.API
DELAY_S = 6


@conformance(
    id="initial-delay-of-all-types",
    rules=["PROBE-016.2", "PROBE-016.4", "PROBE-016.1"],
    needs=[STATUS],
)
async def probes_of_every_type_wait_for_their_initial_delay(node: Node) -> None:
    """Startup and readiness probes wait for initialDelaySeconds, too, and no longer; meanwhile the
    container is neither started nor ready."""
    late = ExecProbe(initial_delay_s=DELAY_S)
    fresh = container("fresh", probes={"startup": late})
    calm = container("calm", probes={"readiness": late})
    await node.apply_static(pod("web", fresh, calm))
    await node.wait_running("web", "fresh", "calm")
    await node.run_for(1.5)
    expect_equal(node, node.container("web", "fresh").get("started"), False, "started of fresh")
    expect_equal(node, node.container("web", "calm").get("ready"), False, "ready of calm")
    await node.run_until(
        lambda: (
            node.count("ExecSync", container="fresh") and node.count("ExecSync", container="calm")
        ),
        within_s=DELAY_S + 2 + limits.START_S,
        what="both probes run",
    )
    for name in ("fresh", "calm"):
        started = node.ended_s(node.calls("StartContainer", container=name)[0])
        delay = node.times_s("ExecSync", container=name)[0] - started
        # startedAt is cut to whole seconds in the status (STAT-006), so the delay may seem shorter.
        fits = DELAY_S - 1.1 <= delay <= DELAY_S + 2 + node.slack_s / 4
        expect(node, fits, f"the first run of {name} after about {DELAY_S} s", f"{delay:.2f} s")


@conformance(id="failure-threshold-default", rules=["PROBE-003.1", "PROBE-019.2"], needs=[STATUS])
async def three_failures_are_the_default_threshold(node: Node) -> None:
    """A probe without a failureThreshold fails with its third failure in a row."""
    probe = ExecProbe(until_s=2)
    fields = {k: v for k, v in probe.manifest("liveness").items() if k != "failureThreshold"}
    main = container("main", probes={"liveness": probe}, livenessProbe=fields)
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("StopContainer", container="main"),
        within_s=limits.START_S + 2 + 4 + limits.NOTICE_S,
        what="the container is stopped",
    )
    failure_count = failures_before_stop(node, "/tmp/liveness")
    expect_equal(node, failure_count, 3, "failures before the stop")


@conformance(
    id="errors-do-not-count", rules=["PROBE-018", "PROBE-060.1"], needs=[STATUS, Feature.FAULTS]
)
async def an_error_between_two_failures_changes_no_count(node: Node) -> None:
    """A run that ends in an error is as if it had not been: failures before and after it add up to
    failureThreshold."""
    probe = ExecProbe(from_s=90, period_s=2, failure_threshold=3)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: len(answers(node, "/tmp/liveness")) == 2,
        within_s=limits.START_S + 3 * 2,
        what="two failures",
    )
    before = node.count("ExecSync", container="main")
    with node.runtime.on("ExecSync", container="main").fails("INTERNAL", "broken"):
        await node.run_until(
            lambda: node.count("ExecSync", container="main") >= before + 3,
            within_s=2 + 1,
            what="three tries that end in an error",
        )
    await node.run_until(
        lambda: node.count("StopContainer", container="main"),
        within_s=2 * 2 + limits.NOTICE_S,
        what="the container is stopped",
    )
    failure_count = failures_before_stop(node, "/tmp/liveness")
    expect_equal(node, failure_count, 3, "failures before the stop")


@conformance(
    id="probe-goes-on",
    rules=["PROBE-014.2", "PROBE-012.1"],
    needs=[STATUS],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "5s"}},
    since="1.35",
)
async def the_next_instance_is_probed_whatever_the_policy_of_the_pod(node: Node) -> None:
    """A container that its own policy starts again is probed again, after a back-off and beside a
    container that never ends, too."""
    calm = container("calm", probes={"readiness": ExecProbe()})
    main = container(
        "main", exits(1, after_s=3), probes={"liveness": ExecProbe()}, restartPolicy="Always"
    )
    await node.apply_static(pod("job", calm, main, restartPolicy="Never"))
    waits_s = limits.restart_after(0).high_s + limits.restart_after(5).high_s
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=limits.START_S + 2 * 3 + waits_s,
        what="a third start of main",
    )
    third = node.ended_s(node.calls("StartContainer", container="main")[2])
    await node.run_until(
        lambda: node.times_s("ExecSync", container="main")[-1] > third,
        within_s=2 + limits.NOTICE_S,
        what="a probe of the third instance",
    )


@conformance(id="readiness-in-a-row", rules=["PROBE-026.3", "PROBE-019.3"], needs=[STATUS])
async def successes_count_in_a_row_only(node: Node) -> None:
    """A failure between successes begins their count again: a container is ready after
    successThreshold successes in a row."""
    probe = ExecProbe(until_s=5, period_s=2, success_threshold=6)
    work = runs().also(has_file("/tmp/readiness", from_s=8))
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=limits.START_S + 8 + 6 * 2 + 2,
        what="ready",
    )
    codes = answers(node, "/tmp/readiness")
    expect(node, sum(code == 0 for code in codes) > 6, "successes before the failure, too", codes)
    expect(node, not any(codes[-6:]) and any(codes), "six successes in a row at the end", codes)


@conformance(
    id="restart-stays-started",
    rules=["PROBE-017.2", "PROBE-041.3", "PROBE-053", "LIFE-175.4"],
    needs=[API, Feature.RESTART],
    bugs=[
        KnownBug(
            "135795", "A restarted kubelet takes back that a container has started", fixed="1.35"
        )
    ],
)
async def a_started_container_stays_started_over_a_kubelet_restart(node: Node) -> None:
    """A restarted kubelet does not run the startup probe of a container that had started long
    before, and shows it as started all the time."""
    probes = {"startup": ExecProbe(until_s=9)}
    await node.api.create_pod(pod("web", container("main", probes=probes)))
    await node.run_until(
        lambda: node.api.container("web", "main").get("started") is True,
        within_s=limits.START_S + 2,
        what="started",
    )
    await node.run_for(11)  # PROBE-051: a container this old was there before the kubelet
    before, runs_before = len(node.statuses("web")), node.count("ExecSync", container="main")
    await node.kubelet.restart()
    await node.run_for(limits.START_S)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})  # one more sync
    await node.run_for(limits.NOTICE_S)
    values = [
        entry["started"]
        for status in node.statuses("web")[before:]
        for entry in status.get("containerStatuses") or []
    ]
    expect_equal(node, set(values) - {True}, set(), "other values of started since the restart")
    runs_after = node.count("ExecSync", container="main")
    expect_equal(node, runs_after, runs_before, "runs of the startup probe")
