"""Exec probes, and what the kubelet does about their results."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import ExecProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import has_file, runs
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS


def answers(node: Node, path: str, *, until_s: float | None = None) -> list[int]:
    """The exit codes so far of the exec probes that look at `path`; with `until_s`, of those that
    had ended by then."""
    return [
        call.response.exit_code
        for call in node.calls("ExecSync")
        if call.request.cmd[-1] == path
        and call.response is not None
        and (until_s is None or node.ended_s(call) <= until_s)
    ]


def failures_before_stop(node: Node, path: str) -> int:
    """The number of failed probes before the first container was told to stop."""
    stopped_s = node.times_s("StopContainer", container="main")[0]
    return sum(code != 0 for code in answers(node, path, until_s=stopped_s))


@conformance(
    id="liveness-restarts",
    rules=[
        "PROBE-034.1",
        "PROBE-034.2",
        "LIFE-115",
        "PROBE-019.2",
        "PROBE-020.1",
        "PROBE-032.1",
        "LIFE-005.1",
    ],
    needs=[STATUS],
)
async def a_failing_liveness_probe_restarts_the_container(node: Node) -> None:
    """After failureThreshold failures in a row the container is stopped and started again; the next
    one has as many."""
    probe = ExecProbe(until_s=3, failure_threshold=2)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=3 + 2 * 2 + limits.NOTICE_S,
        what="a second start",
    )
    steps = ["StopContainer main/0", "CreateContainer main/1", "StartContainer main/1"]
    expect_order(node, node.writes("web"), steps, "the stop, then a new container")
    failure_count = failures_before_stop(node, "/tmp/liveness")
    expect_equal(node, failure_count, 2, "failures before the stop")
    await node.run_until(
        lambda: node.count("StopContainer", container="main") == 2,
        within_s=3 + 2 * 2 + limits.NOTICE_S,
        what="a second stop",
    )
    again_s = node.times_s("StopContainer", container="main")[1]
    failure_count = sum(code != 0 for code in answers(node, "/tmp/liveness", until_s=again_s))
    expect_equal(node, failure_count, 4, "failures before the second stop")


@conformance(
    id="liveness-never", rules=["PROBE-034.5", "PROBE-034.2", "BACK-103.3"], needs=[STATUS]
)
async def a_liveness_failure_is_final_with_policy_never(node: Node) -> None:
    """With policy Never a container whose liveness probe fails is stopped and not started again; if
    it is the last one, the whole pod is stopped, with the pod's grace period."""
    probe = ExecProbe(until_s=1, grace_s=4)
    main = container("main", probes={"liveness": probe})
    await node.apply_static(pod("job", main, grace_s=9, restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") in ("Failed", "Succeeded"), within_s=4 + limits.STOP_S
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts")
    timeouts = {c.request.timeout for c in node.calls("StopContainer", container="main")}
    expect_equal(node, timeouts, {9}, "timeouts of StopContainer")


@conformance(id="probe-grace", rules=["PROBE-037.1"], needs=[STATUS])
async def the_grace_of_the_probe_beats_that_of_the_pod(node: Node) -> None:
    """A container that its liveness probe kills gets the terminationGracePeriodSeconds of the
    probe."""
    probe = ExecProbe(until_s=1, grace_s=4)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe}), grace_s=9))
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=4 + limits.NOTICE_S
    )
    stop = node.calls("StopContainer", container="main")[0]
    expect_equal(node, stop.request.timeout, 4, "timeout of StopContainer")


@conformance(
    id="readiness",
    rules=[
        "PROBE-012.3",
        "PROBE-020.3",
        "PROBE-032.2",
        "PROBE-033.3",
        "PROBE-036",
        "LIFE-183",
        "LIFE-005.2",
        "LIFE-070.11",
    ],
    needs=[STATUS],
)
async def readiness_follows_the_probe_and_kills_nothing(node: Node) -> None:
    """A container is ready while its readiness probe succeeds, each time anew; a failure stops
    nothing."""
    probe = ExecProbe(from_s=2, until_s=5)
    work = runs().also(has_file("/tmp/readiness", from_s=9))
    await node.apply_static(pod("web", container("main", work, probes={"readiness": probe})))
    await node.wait_running("web")

    def ready() -> str:
        return str(node.condition("web", "Ready").get("status"))

    expect_equal(node, ready(), "False", "Ready before the first success")
    await node.run_until(lambda: ready() == "True", within_s=2 + 2, what="Ready")
    await node.run_until(lambda: ready() == "False", within_s=3 + 3, what="not Ready again")
    why = node.condition("web", "Ready")
    expect_equal(node, why.get("reason"), "ContainersNotReady", "reason")
    expect_equal(node, why.get("message"), "containers with unready status: [main]", "message")
    await node.run_until(lambda: ready() == "True", within_s=4 + 2 + 2, what="Ready once more")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(
    id="startup-gates",
    rules=["PROBE-017", "LIFE-175", "PROBE-041.4", "PROBE-012.4", "LIFE-005.2"],
    needs=[STATUS],
)
async def no_other_probe_runs_before_the_startup_probe_has_succeeded(node: Node) -> None:
    """Until its startup probe succeeds a container counts as not started, and its other probes do
    not run; then they do."""
    probes = {
        "startup": ExecProbe(from_s=3, failure_threshold=30),
        "liveness": ExecProbe(),
        "readiness": ExecProbe(),
    }
    await node.apply_static(pod("web", container("main", probes=probes)))
    await node.wait_running("web")
    expect_equal(node, node.container("web", "main").get("started"), False, "started")
    await node.run_until(
        lambda: node.container("web", "main").get("started") is True,
        within_s=3 + 2 + limits.NOTICE_S,
        what="started",
    )
    ran = [c.request.cmd[-1] for c in node.calls("ExecSync", container="main")]
    first = next((n for n, path in enumerate(ran) if path != "/tmp/startup"), len(ran))
    expect(node, first >= 3, "three runs or more of the startup probe, then others", ran)
    await node.run_until(
        lambda: answers(node, "/tmp/liveness") and answers(node, "/tmp/readiness"),
        within_s=limits.NOTICE_S,
        what="runs of the liveness and the readiness probe",
    )


@conformance(
    id="startup-failure",
    rules=["PROBE-034.1", "LIFE-115", "PROBE-019.2", "PROBE-032.3", "LIFE-115.3", "LIFE-005.2"],
    needs=[STATUS],
)
async def a_failing_startup_probe_restarts_the_container(node: Node) -> None:
    """A container whose startup probe reaches failureThreshold is stopped and started again; it
    never counts as started."""
    probe = ExecProbe(from_s=60, failure_threshold=2)
    await node.apply_static(pod("web", container("main", probes={"startup": probe})))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=2 * 2 + limits.START_S,
        what="a second start",
    )
    expect_order(
        node, node.writes("web"), ["StopContainer main/0", "StartContainer main/1"], "a restart"
    )
    failure_count = failures_before_stop(node, "/tmp/startup")
    expect_equal(node, failure_count, 2, "failures before the stop")
    entries = [e for s in node.statuses("web") for e in s.get("containerStatuses") or []]
    started = {entry.get("started") for entry in entries}
    expect(node, True not in started, "no status with started true", started)


@conformance(id="probe-initial-delay", rules=["PROBE-016.1", "PROBE-016.2"], needs=[STATUS])
async def probes_begin_after_the_initial_delay(node: Node) -> None:
    """No probe runs before initialDelaySeconds after the container's start."""
    probe = ExecProbe(initial_delay_s=3)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: node.count("ExecSync", container="main"), within_s=limits.START_S + 3 + 2
    )
    started = node.ended_s(node.calls("StartContainer", container="main")[0])
    probed = node.times_s("ExecSync", container="main")[0]
    # startedAt is cut to whole seconds in the status (STAT-006), so the delay may seem shorter.
    expect(
        node, probed - started >= 1.9, "first run after 2 s or more", f"{probed - started:.2f} s"
    )


@conformance(id="probe-of-a-gone-pod", rules=["PROBE-032.4"], needs=[Feature.API, Feature.FAULTS])
async def a_result_for_a_pod_that_is_gone_changes_nothing(node: Node) -> None:
    """A pod is force-deleted while its readiness probe runs, which then fails for the first time.
    Nothing is started or written for that pod any more, and others go on."""

    def fail(answer: Any) -> None:
        answer.exit_code = 1

    probed = container("main", probes={"readiness": ExecProbe()})
    await node.api.run_pods(pod("web", probed), pod("other"))
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready") is True, within_s=limits.START_S + 2
    )
    node.runtime.on("ExecSync", pod="web").changes_answer(fail)
    node.runtime.on("ExecSync", pod="web").delays(3)
    node.runtime.on("StopContainer", pod="web").delays(6)
    before = node.count("ExecSync", pod="web")
    await node.run_until(lambda: node.count("ExecSync", pod="web") > before, within_s=4)
    await node.api.delete_pod("web", grace_s=0)
    await node.run_until(
        lambda: 1 in answers(node, "/tmp/readiness"), within_s=3, what="the probe fails"
    )
    patches = len(node.api.requests("PATCH", "/pods/web/status$"))
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=6 + limits.STOP_S,
        what="web has stopped",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, len(node.api.requests("PATCH", "/pods/web/status$")), patches, "statuses")
    counts = [node.count(m, pod="web") for m in ("RunPodSandbox", "StartContainer")]
    expect_equal(node, counts, [1, 1], "sandboxes and starts of web")
    expect_equal(node, node.count("StopContainer", pod="other"), 0, "stops of other")
