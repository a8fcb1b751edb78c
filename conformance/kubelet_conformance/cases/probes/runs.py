"""When probes run: period, thresholds, the pause after a failure; and exec probes themselves."""

from itertools import pairwise

from kubelet_conformance.cases.probes.common import errors
from kubelet_conformance.cases.probes.effects import answers
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import Exec, ExecProbe, RunProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import has_file, ignores_term, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, API = Feature.STATUS, Feature.API
SHOULD = Level.SHOULD


def script(text: str, exit_code: int, **answer: str | float) -> Exec:
    """A shell script as a probe's command. `exit_code` and `answer` (fields of `Exec`) say what it
    does, for a fake runtime."""
    return Exec(("/bin/sh", "-c", text), exit_code, **answer)  # type: ignore[arg-type]


def probe_times_s(node: Node, path: str) -> list[float]:
    """The times at which the exec probe that looks at `path` ran."""
    calls = node.calls("ExecSync", container="main")
    return [node.time_s(c) for c in calls if c.request.cmd[-1] == path]


@conformance(id="probe-period", rules=["PROBE-005.1"], needs=[STATUS])
async def a_probe_runs_once_per_period(node: Node) -> None:
    """Runs of a probe begin periodSeconds apart, however long each takes."""
    probe = RunProbe(run=script("sleep 1; exit 0", 0, takes_s=1.0), period_s=2)
    main = container("main", probes={"liveness": probe})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("ExecSync", container="main") >= 5,
        within_s=limits.START_S + 5 * 2,
        what="five runs",
    )
    times = node.times_s("ExecSync", container="main")[:5]
    span = times[-1] - times[0]
    expect(node, abs(span - 8) <= 0.5 + node.slack_s / 4, "8 s for five runs", f"{span:.2f} s")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    expect(node, min(gaps) > 0.5, "gaps between runs of more than 0.5 s", gaps)


@conformance(
    id="probe-defaults", rules=["PROBE-003.1", "PROBE-003.5", "PROBE-062.1"], needs=[STATUS]
)
async def a_probe_without_numbers_has_the_defaults(node: Node) -> None:
    """Without numbers of its own a probe has a timeout of 1 s and a period of 10 s, in static pods
    too; its command is run without a shell."""
    main = container("main", livenessProbe={"exec": {"command": ["/bin/true"]}})
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("ExecSync", container="main") >= 2,
        within_s=limits.START_S + 2 * 10,
        what="two runs",
    )
    first, second = node.calls("ExecSync", container="main")[:2]
    expect_equal(node, first.request.timeout, 1, "timeout of ExecSync")
    expect_equal(node, list(first.request.cmd), ["/bin/true"], "command, without a shell")
    gap = node.time_s(second) - node.time_s(first)
    expect(node, 9 <= gap <= 10.5 + node.slack_s, "about 10 s between two runs", f"{gap:.2f} s")


@conformance(
    id="probe-below-threshold",
    rules=["PROBE-025.1", "PROBE-025.2", "PROBE-019.2", "PROBE-081.1", "PROBE-081.4"],
    needs=[API],
)
async def failures_below_the_threshold_change_nothing(node: Node) -> None:
    """Each failed run of a probe leaves one event, which names its type; with fewer failures in a
    row than failureThreshold nothing else happens: the container stays started and ready, and no
    status is written."""
    kinds = ("startup", "liveness", "readiness")
    gap = {"until_s": 8, "failure_threshold": 6}
    probes = {
        "startup": ExecProbe(from_s=3.5, failure_threshold=9),
        "liveness": ExecProbe(**gap),
        "readiness": ExecProbe(**gap),
    }
    back = [has_file(f"/tmp/{kind}", from_s=11.5) for kind in kinds[1:]]
    await node.api.create_pod(pod("web", container("main", runs(*back), probes=probes)))
    await node.run_until(
        lambda: node.api.container("web", "main").get("ready"),
        within_s=limits.START_S + 3 + 3,
        what="ready",
    )
    await node.run_for(limits.EVENTS_S)
    written = len(node.api.requests("PATCH", "/pods/web/status$"))
    await node.run_for(9)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")
    patches = len(node.api.requests("PATCH", "/pods/web/status$")) - written
    expect_equal(node, patches, 0, "writes of the status since main is ready")
    for kind in kinds:
        failed = sum(code != 0 for code in answers(node, f"/tmp/{kind}"))
        expect(node, failed >= 2, f"two failures of {kind} or more", failed)
        text = f"{kind.capitalize()} probe failed: "
        told = [e for e in node.events("Unhealthy", pod="web") if e["message"].startswith(text)]
        times = sum(event.get("count") or 1 for event in told)
        expect_equal(node, times, failed, f"events {text}")


@conformance(id="liveness-hold", rules=["PROBE-020.1", "PROBE-013"], needs=[STATUS])
async def a_container_that_is_being_killed_is_not_probed(node: Node) -> None:
    """When a liveness probe has failed for good, it does not run again until there is a new
    container."""
    main = container("main", ignores_term(), probes={"liveness": ExecProbe(until_s=1)})
    await node.apply_static(pod("web", main, grace_s=5))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 3 + 5 + limits.NOTICE_S,
        what="a second start",
    )
    stop = node.calls("StopContainer", container="main")[0]
    begun, ended = node.time_s(stop), node.ended_s(stop)
    expect(node, ended - begun >= 4.5, "StopContainer takes about 5 s", f"{ended - begun:.2f} s")
    between = [t for t in node.times_s("ExecSync", container="main") if begun < t < ended]
    expect_equal(node, between, [], "runs while the container is stopped")


@conformance(id="startup-hold", rules=["PROBE-020.2", "PROBE-013"], needs=[STATUS])
async def a_container_that_never_started_is_not_probed_while_it_is_killed(node: Node) -> None:
    """When a startup probe has failed for good, it does not run again until there is a new
    container."""
    probe = ExecProbe(from_s=90, failure_threshold=2)
    main = container("main", ignores_term(), probes={"startup": probe})
    await node.apply_static(pod("web", main, grace_s=5))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 3 + 5 + limits.NOTICE_S,
        what="a second start",
    )
    stop = node.calls("StopContainer", container="main")[0]
    begun, ended = node.time_s(stop), node.ended_s(stop)
    between = [t for t in node.times_s("ExecSync", container="main") if begun < t < ended]
    expect_equal(node, between, [], "runs while the container is stopped")


@conformance(id="probe-delay-again", rules=["PROBE-016", "PROBE-012"], needs=[STATUS])
async def the_initial_delay_counts_from_each_start(node: Node) -> None:
    """A restarted container is not probed for initialDelaySeconds either."""
    probe = ExecProbe(from_s=60, initial_delay_s=4, failure_threshold=1)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: node.count("StopContainer", container="main") == 2,
        within_s=2 * (limits.START_S + 4 + 2) + limits.NOTICE_S,
        what="a second stop",
    )
    second = node.ended_s(node.calls("StartContainer", container="main")[1])
    stop = node.time_s(node.calls("StopContainer", container="main")[1])
    # startedAt is cut to whole seconds in the status (STAT-006), so the delay may seem shorter.
    expect(node, stop - second >= 2.9, "4 s after the second start", f"{stop - second:.2f} s")


@conformance(id="readiness-at-once", rules=["PROBE-007"], level=SHOULD, needs=[STATUS])
async def readiness_runs_as_soon_as_the_container_has_started(node: Node) -> None:
    """The success of the startup probe triggers the readiness probe at once, whatever its
    period."""
    probes = {
        "startup": ExecProbe(from_s=2, failure_threshold=30),
        "readiness": ExecProbe(period_s=10),
    }
    await node.run_for(11)  # a young kubelet spreads the first runs over a period (PROBE-004)
    await node.apply_static(pod("web", container("main", probes=probes)))
    await node.run_until(
        lambda: node.container("web", "main").get("started") is True,
        within_s=limits.START_S + 2 + 2,
        what="the container is started",
    )
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=limits.NOTICE_S,
        what="ready",
    )
    gap = probe_times_s(node, "/tmp/readiness")[0] - probe_times_s(node, "/tmp/startup")[-1]
    expect(node, gap < 1 + node.slack_s / 4, "readiness within 1 s of startup", f"{gap:.2f} s")


@conformance(id="readiness-period-anew", rules=["PROBE-007"], level=SHOULD, needs=[API])
async def a_run_that_was_asked_for_begins_the_period_anew(node: Node) -> None:
    """A sync of a pod that is not ready runs its readiness probe at once; the next run comes a
    whole period later, not when it would have come without that."""
    await node.run_for(21)  # a young kubelet spreads the first runs over a period (PROBE-004)
    probes = {"readiness": ExecProbe(from_s=1000, period_s=20)}
    await node.api.create_pod(pod("web", container("main", probes=probes)))
    seen: list[float] = []

    async def next_run(within_s: float) -> float:
        """When the next run of the probe begins."""
        await node.run_until(
            lambda: len(probe_times_s(node, "/tmp/readiness")) > len(seen),
            within_s=within_s,
            what="a run of the readiness probe",
        )
        seen[:] = probe_times_s(node, "/tmp/readiness")
        return seen[-1]

    await next_run(limits.START_S + 20)
    await node.run_for(limits.NOTICE_S)
    seen[:] = probe_times_s(node, "/tmp/readiness")
    await next_run(20 + limits.NOTICE_S)
    await node.run_for(10)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"a-sync": "is asked for"}}})
    at_once_s = await next_run(limits.NOTICE_S)
    gap = await next_run(20 + limits.NOTICE_S) - at_once_s
    expect(node, 19.5 <= gap <= 21 + node.slack_s, "a period later", f"{gap:.2f} s")


@conformance(id="startup-once", rules=["PROBE-020", "PROBE-017"], needs=[STATUS])
async def a_startup_probe_that_succeeded_runs_no_more(node: Node) -> None:
    """After the startup probe has succeeded only the liveness probe runs, until there is a new
    container."""
    probes = {"startup": ExecProbe(), "liveness": ExecProbe()}
    await node.apply_static(pod("web", container("main", probes=probes)))
    await node.run_until(
        lambda: probe_times_s(node, "/tmp/liveness"), within_s=limits.START_S + 3, what="liveness"
    )
    await node.run_for(3)
    expect_equal(node, len(probe_times_s(node, "/tmp/startup")), 1, "runs of the startup probe")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: len(probe_times_s(node, "/tmp/startup")) == 2,
        within_s=limits.START_S + 3,
        what="a run for the new container",
    )


@conformance(id="exec-variables", rules=["PROBE-062"], needs=[STATUS])
async def commands_of_probes_know_the_variables_as_they_are_written(node: Node) -> None:
    """In the command of a probe `$(A)` becomes the value of the container's variable A, one with
    valueFrom becomes empty, and everything else stays."""
    words = ["echo", "$(A)", "$(B)", "$(C)", "$$(A)", "$A"]
    env = [
        {"name": "A", "value": "one"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    probe = RunProbe(run=Exec(("echo", "one", "", "$(C)", "$(A)", "$A")))
    main = container(
        "main", env=env, readinessProbe={**probe.manifest("readiness"), "exec": {"command": words}}
    )
    await node.apply_static(pod("web", main))
    await node.run_until(
        lambda: node.count("ExecSync", container="main"), within_s=limits.START_S + 2
    )
    command = list(node.calls("ExecSync", container="main")[0].request.cmd)
    expect_equal(node, command, list(probe.run.command), "command")


@conformance(id="exec-output", rules=["PROBE-064", "PROBE-081", "PROBE-063"], needs=[API])
async def the_event_of_a_failed_exec_probe_has_its_output(node: Node) -> None:
    """The event about a failed exec probe has the command's standard output, then its standard
    error."""
    run = script("echo err >&2; echo out; exit 3", 3, stdout="out\n", stderr="err\n")
    await node.api.create_pod(
        pod("web", container("main", probes={"readiness": RunProbe(run=run)}))
    )
    await node.run_until(lambda: node.events("Unhealthy", pod="web"), within_s=limits.START_S + 2)
    event = node.events("Unhealthy", pod="web")[0]
    expect_equal(node, event["message"], "Readiness probe failed: out\nerr\n", "message")


@conformance(id="exec-timeout", rules=["PROBE-063", "PROBE-065", "CRI-009.4"], needs=[API])
async def an_exec_probe_that_takes_too_long_has_failed(node: Node) -> None:
    """A command that takes longer than timeoutSeconds is a failure, and the event names the
    timeout."""
    run = script("sleep 5; exit 0", 0, takes_s=5.0)
    probe = RunProbe(run=run, timeout_s=1)
    await node.api.create_pod(pod("web", container("main", probes={"liveness": probe})))
    await node.run_until(
        lambda: node.count("StopContainer", container="main"),
        within_s=limits.START_S + 4 + limits.NOTICE_S,
        what="the container stopped",
    )
    await node.run_until(lambda: node.events("Unhealthy", pod="web"), within_s=limits.NOTICE_S)
    text = 'command timed out: "/bin/sh -c sleep 5; exit 0" timed out after 1s'
    event = node.events("Unhealthy", pod="web")[0]
    expect_equal(node, event["message"], f"Liveness probe failed: {text}", "message")


@conformance(id="exec-timeout-given", rules=["PROBE-062.1", "PROBE-063.1"], needs=[STATUS])
async def an_exec_probe_may_take_its_time(node: Node) -> None:
    """A command that takes longer than a second but not as long as timeoutSeconds succeeds;
    ExecSync carries the timeout."""
    run = script("sleep 2; exit 0", 0, takes_s=2.0)
    probe = RunProbe(run=run, timeout_s=7)
    await node.apply_static(pod("web", container("main", probes={"readiness": probe})))
    await node.run_until(
        lambda: node.container("web", "main").get("ready") is True,
        within_s=limits.START_S + 2 + 2,
        what="ready",
    )
    timeouts = {c.request.timeout for c in node.calls("ExecSync", container="main")}
    expect_equal(node, timeouts, {7}, "timeouts of ExecSync")


@conformance(
    id="exec-error", rules=["PROBE-060", "PROBE-018", "PROBE-063"], needs=[API, Feature.FAULTS]
)
async def a_broken_exec_call_is_no_failure(node: Node) -> None:
    """An ExecSync that fails is tried three times at once and then forgotten: an error is no
    failure, and nothing is killed."""
    main = container("main", probes={"liveness": ExecProbe(period_s=3)})
    with node.runtime.on("ExecSync").fails("INTERNAL", "no such thing"):
        await node.api.create_pod(pod("web", main))
        await node.run_until(
            lambda: node.count("ExecSync", container="main") >= 6,
            within_s=limits.START_S + 2 * 3 + 1,
            what="six tries",
        )
    times = node.times_s("ExecSync", container="main")[:6]
    expect(node, times[2] - times[0] < 0.8, "three tries within 0.8 s", times)
    expect(node, times[3] - times[2] > 2, "the fourth more than 2 s after the third", times)
    await node.run_until(lambda: node.events("Unhealthy", pod="web"), within_s=limits.NOTICE_S)
    text = "rpc error: code = Internal desc = no such thing"
    first = node.events("Unhealthy", pod="web")[0]["message"]
    expect(node, first in errors(node, text), f"Liveness probe errored ... {text}", first)
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")


@conformance(
    id="exec-hangs",
    rules=["PROBE-063.4", "PROBE-063.2"],
    needs=[API, Feature.FAULTS],
    node_config={"runtimeRequestTimeout": "5s"},
)
async def a_runtime_that_does_not_answer_is_waited_for_a_while(node: Node) -> None:
    """An ExecSync without an answer has failed for the probe when its timeout and that of a request
    to the runtime have passed, no sooner and no later; the event names the timeout of the probe."""
    probe = RunProbe(run=script("exit 0", 0), timeout_s=2)
    with node.runtime.on("ExecSync", container="main").hangs():
        await node.api.create_pod(pod("web", container("main", probes={"liveness": probe})))
        await node.run_until(
            lambda: node.count("StopContainer", container="main"),
            within_s=limits.START_S + 2 + 2 + 5 + limits.NOTICE_S,
            what="main is stopped",
        )
    waited_s = node.times_s("StopContainer", container="main")[0]
    waited_s -= node.times_s("ExecSync", container="main")[0]
    fits = 6.9 <= waited_s <= 7 + 1 + node.slack_s
    expect(node, fits, "the stop about 7 s after the call", f"{waited_s:.2f} s")
    text = 'command timed out: "/bin/sh -c exit 0" timed out after 2s'
    await node.run_until(lambda: node.events("Unhealthy", pod="web"), within_s=limits.NOTICE_S)
    event = node.events("Unhealthy", pod="web")[0]
    expect_equal(node, event["message"], f"Liveness probe failed: {text}", "message")


@conformance(id="liveness-event", rules=["PROBE-034.1", "PROBE-034.4", "LIFE-115"], needs=[API])
async def a_liveness_kill_says_so(node: Node) -> None:
    """The event Killing, no warning, says that the container failed its liveness probe and will be
    restarted."""
    main = container("main", probes={"liveness": ExecProbe(until_s=1)})
    await node.api.create_pod(pod("web", main))
    await node.run_until(
        lambda: node.events("Killing", pod="web"), within_s=limits.START_S + 3 + limits.NOTICE_S
    )
    text = "Container main failed liveness probe, will be restarted"
    event = node.events("Killing", pod="web")[0]
    expect_equal(node, (event["type"], event["message"]), ("Normal", text), "type and message")
    path = event["involvedObject"].get("fieldPath")
    expect_equal(node, path, "spec.containers{main}", "fieldPath")


@conformance(id="startup-event", rules=["PROBE-034", "PROBE-037", "LIFE-115.3"], needs=[API])
async def a_startup_kill_says_so_and_has_its_own_grace(node: Node) -> None:
    """With policy Never a container whose startup probe fails is not restarted; it gets the grace
    period of the probe, even a longer one."""
    probe = ExecProbe(from_s=60, grace_s=7)
    main = container("main", probes={"startup": probe})
    calm = container("calm")  # without it the whole pod would be stopped
    await node.api.create_pod(pod("web", main, calm, grace_s=3, restartPolicy="Never"))
    await node.run_until(
        lambda: node.events("Killing", pod="web"), within_s=limits.START_S + 2 + limits.NOTICE_S
    )
    text = "Container main failed startup probe"
    expect_equal(node, node.events("Killing", pod="web")[0]["message"], text, "message")
    await node.run_until(
        lambda: node.calls("StopContainer", container="main"), within_s=limits.NOTICE_S
    )
    stop = node.calls("StopContainer", container="main")[0]
    expect_equal(node, stop.request.timeout, 7, "timeout of StopContainer")


@conformance(id="readiness-thresholds", rules=["PROBE-019", "PROBE-033"], needs=[STATUS])
async def readiness_changes_at_its_thresholds(node: Node) -> None:
    """A container becomes ready at the successThreshold-th success in a row, and unready at the
    failureThreshold-th failure in a row, no sooner and no later."""
    probe = ExecProbe(from_s=5, until_s=15, period_s=3, success_threshold=2, failure_threshold=3)
    await node.apply_static(pod("web", container("main", probes={"readiness": probe})))

    def ready() -> bool:
        return node.container("web", "main").get("ready") is True

    await node.run_until(ready, within_s=limits.START_S + 5 + 2 * 3 + limits.NOTICE_S, what="ready")
    succeeded = [code for code in answers(node, "/tmp/readiness") if code == 0]
    expect_equal(node, len(succeeded), 2, "successes when ready")
    since = node.now_s
    await node.run_until(
        lambda: not ready(), within_s=15 + 3 * 3 + limits.NOTICE_S, what="not ready"
    )
    failed = [
        node.time_s(call)
        for call in node.calls("ExecSync", since_s=since)
        if call.response is not None and call.response.exit_code != 0
    ]
    # What has become unready is probed once more at once (PROBE-007).
    within_s = failed[-1] - failed[0]
    third = 3 <= len(failed) <= 4 and within_s < 2.5 * 3
    expect(node, third, "three or four failures, within 7.5 s, when it becomes unready", failed)


@conformance(id="liveness-flapping", rules=["PROBE-026", "PROBE-019"], needs=[STATUS])
async def failures_count_in_a_row_only(node: Node) -> None:
    """Failures with a success between them do not add up to failureThreshold."""
    gap = has_file("/tmp/liveness", from_s=5.5, until_s=8)  # then again, for good
    work = runs().also(gap).also(has_file("/tmp/liveness", from_s=10.5))
    probe = ExecProbe(until_s=3, failure_threshold=4)
    await node.apply_static(pod("web", container("main", work, probes={"liveness": probe})))
    await node.wait_running("web")
    await node.run_for(12)
    failures = [code for code in answers(node, "/tmp/liveness") if code != 0]
    expect(node, len(failures) >= 4, "four failures or more", len(failures))
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops")
