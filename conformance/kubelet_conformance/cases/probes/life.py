"""Probes over the life of a pod: termination, restarts of the kubelet, sidecars."""

from fakecri import serves, stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, container, http_probe, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, has_file, runs
from kubelet_conformance.registry import Feature, KnownBug, Level, conformance

STATUS, API, RESTART = Feature.STATUS, Feature.API, Feature.RESTART
OLD_S = 11.0  # PROBE-051: a container this old was there before the kubelet


def runs_of(node: Node, path: str, *, since_s: float = 0.0) -> list[float]:
    """The times at which the exec probes that look at `path` ran."""
    calls = node.calls("ExecSync", since_s=since_s)
    return [node.time_s(c) for c in calls if c.request.cmd[-1] == path]


@conformance(id="termination-liveness", rules=["PROBE-091.1"], needs=[API])
async def a_terminating_pod_is_not_probed_for_liveness(node: Node) -> None:
    """From the deletion of a pod on its liveness probes do not run, and nothing is killed for
    them."""
    probe = ExecProbe(until_s=4)
    main = container("main", runs(stops(0, after_s=5)), probes={"liveness": probe})
    await node.api.create_pod(pod("web", main, grace_s=8))
    await node.run_until(lambda: runs_of(node, "/tmp/liveness"), within_s=limits.START_S + 2)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.NOTICE_S
    )
    stopping = node.times_s("StopContainer", container="main")[0]
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=8 + limits.STOP_S, what="the pod is gone"
    )
    late = [t for t in runs_of(node, "/tmp/liveness") if t > stopping + 1.1]
    expect_equal(node, late, [], "liveness runs during the grace period")
    expect_equal(node, node.event_count("Unhealthy", pod="web"), 0, "events Unhealthy")
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts")


@conformance(id="termination-startup", rules=["PROBE-091.1"], needs=[API])
async def a_terminating_pod_is_not_probed_for_startup(node: Node) -> None:
    """The startup probe of a container that has not started yet does not run any more when its pod
    is deleted."""
    probe = ExecProbe(from_s=60, failure_threshold=90)
    main = container("main", runs(stops(0, after_s=5)), probes={"startup": probe})
    await node.api.create_pod(pod("web", main, grace_s=8))
    await node.run_until(lambda: runs_of(node, "/tmp/startup"), within_s=limits.START_S + 2)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.NOTICE_S
    )
    stopping = node.times_s("StopContainer", container="main")[0]
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=8 + limits.STOP_S, what="the pod is gone"
    )
    late = [t for t in runs_of(node, "/tmp/startup") if t > stopping + 1.1]
    expect_equal(node, late, [], "startup runs during the grace period")


@conformance(
    id="termination-run-in-flight", rules=["PROBE-091.2"], needs=[API, Feature.POD_NETWORK]
)
async def a_run_in_flight_is_finished(node: Node) -> None:
    """A liveness probe that waits for its answer when the pod is deleted gets it, and a failure is
    told in an event."""
    work = runs(stops(0, after_s=6)).also(serves(8080, status=500, delay_s=3))
    probe = http_probe(8080, probe={"timeout_s": 9, "failure_threshold": 5})
    await node.api.create_pod(
        pod("web", container("main", work, probes={"liveness": probe}), grace_s=9)
    )
    await node.wait_running("web")
    await node.run_for(1.5)
    expect_equal(node, node.event_count("Unhealthy", pod="web"), 0, "events before the deletion")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.event_count("Unhealthy", pod="web"),
        within_s=3 + limits.NOTICE_S,
        what="an event about the run in flight",
    )


@conformance(
    id="termination-readiness",
    rules=["PROBE-092", "PROBE-094.1", "LIFE-071.4"],
    needs=[API],
    bugs=[
        KnownBug("140881", "Readiness probes end with the termination", since="1.35", fixed="1.36")
    ],
)
async def a_terminating_pod_still_becomes_unready(node: Node) -> None:
    """Readiness probes of a deleted pod run until its containers are stopped, and not a second
    longer."""
    probe = ExecProbe(until_s=9)
    main = container("main", runs(stops(0, after_s=7)), probes={"readiness": probe})
    await node.api.create_pod(pod("web", main, grace_s=12))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True, within_s=limits.START_S + 2
    )
    started = node.ended_s(node.calls("StartContainer", container="main")[0])
    await node.run_until(lambda: node.now_s >= started + 6, within_s=10)
    await node.api.delete_pod("web")
    await node.run_for(1.5)
    still = node.api.container("web", "main").get("ready")
    expect_equal(node, still, True, "ready while it stops and the probe succeeds")
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready") is False,
        within_s=3 + 2 + limits.NOTICE_S,
        what="not ready at the API while it stops",
    )
    expect(node, "running" in node.api.container("web", "main").get("state", {}), "still running")
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=12 + limits.STOP_S, what="the pod is gone"
    )
    end = node.ended_s(node.calls("StopContainer", container="main")[0])
    await node.run_for(2)
    late = [t for t in runs_of(node, "/tmp/readiness") if t > end + 1.1]
    expect_equal(node, late, [], "readiness runs after the end")


@conformance(
    id="restart-stays-ready",
    rules=["PROBE-051", "PROBE-052", "LIFE-175.4"],
    level=Level.SHOULD,
    needs=[API, RESTART],
    bugs=[
        KnownBug(
            "135795",
            "A restarted kubelet takes back that a container is ready",
            fixed="1.35",
            by_chance=True,
        )
    ],
)
async def a_ready_pod_stays_ready_over_a_kubelet_restart(node: Node) -> None:
    """A container that was ready before the kubelet restarted stays ready until its probe says
    otherwise."""
    period_s = 12
    main = container("main", probes={"readiness": ExecProbe(period_s=period_s)})
    await node.api.create_pod(pod("web", main))
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready") is True,
        within_s=period_s + limits.START_S,
    )
    await node.run_for(OLD_S)
    await node.kubelet.stop()
    before = len(node.statuses("web"))
    await node.kubelet.start()
    began = node.now_s
    await node.run_for(2)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})  # one more sync
    await node.run_until(
        lambda: runs_of(node, "/tmp/readiness", since_s=began),
        within_s=period_s + limits.START_S,
    )
    await node.run_for(2)
    ready = [
        entry["ready"]
        for status in node.statuses("web")[before:]
        for entry in status.get("containerStatuses") or []
    ]
    expect_equal(node, set(ready) - {True}, set(), "other values of ready since the restart")


@conformance(
    id="restart-static-unready",
    rules=["PROBE-052"],
    level=Level.DETAIL,
    needs=[STATUS, RESTART],
    since="1.35",
)
async def a_static_pod_is_unready_after_a_kubelet_restart_until_it_is_probed(node: Node) -> None:
    """A static pod has no stored condition Ready: after a restart of the kubelet its containers are
    unready until their probes succeed."""
    main = container("main", probes={"readiness": ExecProbe(period_s=5)})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True, within_s=limits.START_S + 6
    )
    await node.run_for(OLD_S)
    await node.kubelet.stop()
    before = len(node.statuses("web"))
    node.runtime.on("ExecSync", pod="web").delays(2)  # the first probe may run at once
    await node.kubelet.start()
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=5 + limits.START_S + 2 + 2,
        what="ready again",
    )
    values = [
        entry["ready"]
        for status in node.statuses("web")[before:]
        for entry in status.get("containerStatuses") or []
        if "running" in entry["state"]
    ]
    expect(node, False in values, "a status with a running container that is not ready", values)


@conformance(id="restart-forgets-failures", rules=["PROBE-053"], needs=[STATUS, RESTART])
async def a_restarted_kubelet_counts_failures_from_zero(node: Node) -> None:
    """A restarted kubelet knows neither results nor counts of probes."""
    probe = ExecProbe(from_s=90, period_s=3, failure_threshold=4)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: len(runs_of(node, "/tmp/liveness")) == 3, within_s=limits.START_S + 4 * 3
    )
    await node.kubelet.restart()
    began = node.now_s
    await node.run_until(
        lambda: node.count("StopContainer", container="main"),
        within_s=limits.START_S + 5 * 3 + limits.NOTICE_S,
        what="the container is stopped",
    )
    since = len(runs_of(node, "/tmp/liveness", since_s=began))
    expect(node, since >= 4, "four failures after the restart", since)


@conformance(id="sidecar-liveness-never", rules=["PROBE-035", "PROBE-001"], needs=[STATUS])
async def a_sidecar_is_restarted_in_every_policy(node: Node) -> None:
    """A sidecar whose liveness probe fails is restarted, also with restartPolicy Never."""
    side = sidecar("side", probes={"liveness": ExecProbe(until_s=2)})
    await node.apply_static(pod("job", container("main"), init=[side], restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.START_S + 2 + 2 + limits.NOTICE_S,
        what="a second start of the sidecar",
    )
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")


@conformance(id="sidecar-readiness", rules=["PROBE-043", "PROBE-042"], needs=[STATUS])
async def a_pod_is_ready_when_its_sidecars_are(node: Node) -> None:
    """The readiness of sidecars counts for the pod's conditions."""
    side = sidecar("side", probes={"readiness": ExecProbe(from_s=4)})
    await node.apply_static(pod("web", container("main"), init=[side]))
    await node.wait_running("web")

    def ready() -> dict[str, object]:
        return node.condition("web", "Ready")

    expect_equal(node, ready().get("status"), "False", "Ready")
    text = "containers with unready status: [side]"
    expect_equal(node, ready().get("message"), text, "message")
    await node.run_until(
        lambda: ready().get("status") == "True", within_s=4 + limits.NOTICE_S, what="Ready"
    )


@conformance(
    id="startup-resets", rules=["PROBE-041.1", "PROBE-041.4", "PROBE-012.1"], needs=[STATUS]
)
async def a_new_container_has_not_started_yet(node: Node) -> None:
    """A restarted container with a startup probe is not ready until that probe has succeeded
    again."""
    probes = {"startup": ExecProbe(from_s=2, failure_threshold=30), "readiness": ExecProbe()}
    ends = exits(1, after_s=8.0)
    await node.apply_static(pod("web", container("main", ends, probes=probes)))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=limits.START_S + 2 + 2 + limits.NOTICE_S,
        what="ready",
    )
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2, within_s=8 + limits.NOTICE_S
    )
    again = node.ended_s(node.calls("StartContainer", container="main")[1])
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is False,
        within_s=limits.NOTICE_S,
        what="not ready",
    )
    ended = [
        (entry["started"], entry["ready"])
        for status in node.statuses("web")
        for entry in status.get("containerStatuses") or []
        if "terminated" in entry["state"]
    ]
    expect_equal(node, set(ended) - {(False, False)}, set(), "started and ready after the end")
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=2 + 2 + limits.NOTICE_S,
        what="ready again",
    )
    startup = [t for t in runs_of(node, "/tmp/startup") if t > again]
    expect(node, startup, "the startup probe runs for the new container")


@conformance(id="init-not-probed", rules=["PROBE-001", "PROBE-042"], needs=[STATUS])
async def plain_init_containers_are_ready_when_they_are_done(node: Node) -> None:
    """An init container is ready if and only if it has exited 0."""
    first = container("first", exits(0, after_s=3.0))
    await node.apply_static(pod("web", container("main"), init=[first]))
    await node.run_until(lambda: node.running("web", "first"), within_s=limits.START_S)
    expect_equal(node, node.container("web", "first").get("ready"), False, "ready while it runs")
    await node.run_until(lambda: node.running("web"), within_s=3 + limits.START_S)
    expect_equal(node, node.container("web", "first").get("ready"), True, "ready at its end")


@conformance(id="readiness-flapping", rules=["PROBE-026", "PROBE-033"], needs=[STATUS])
async def readiness_needs_its_thresholds_in_a_row(node: Node) -> None:
    """Fewer failures in a row than failureThreshold leave the container ready."""
    gap = has_file("/tmp/readiness", from_s=6.5)
    probe = ExecProbe(until_s=5, failure_threshold=4)
    work = runs().also(gap)
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True, within_s=limits.START_S + 2
    )
    before = len(node.statuses("web"))
    await node.run_for(8)
    changed = [
        entry["ready"]
        for status in node.statuses("web")[before:]
        for entry in status.get("containerStatuses") or []
    ]
    expect(node, False not in changed, "ready in every status", changed)
    codes = [c.response.exit_code for c in node.calls("ExecSync") if c.response is not None]
    failed = [number for number, code in enumerate(codes) if code != 0]
    expect(node, failed and codes[-1] == 0, "a failed run, and a successful last one", codes)
