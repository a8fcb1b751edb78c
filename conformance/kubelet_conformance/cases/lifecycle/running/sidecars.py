"""Sidecars after their start: kept running, killed by probes, stopped after the regular
containers."""

import itertools
from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order, expect_spans
from kubelet_conformance.harness.manifests import ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, KILL = Feature.STATUS, Feature.OUTSIDE_KILL


def starts(node: Node, pod_name: str) -> list[str]:
    """The StartContainer calls of the pod, in order."""
    return [w for w in node.writes(pod_name) if w.startswith("StartContainer")]


@conformance(id="sidecar-crash-waits", rules=["LIFE-120", "BACK-001"], needs=[STATUS])
async def a_sidecar_that_keeps_failing_waits_like_any_container(node: Node) -> None:
    """A failing sidecar is restarted at once, then after 10 s; the main container is left alone."""
    work = in_turn(exits(1, after_s=1), exits(1, after_s=1), runs())
    await node.apply_static(pod("web", container("main"), init=[sidecar("side", work)]))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 3,
        within_s=limits.START_S + 2 * limits.NOTICE_S + limits.SYNC_ERROR_S + 2,
        what="a third start of side",
    )
    times = node.times_s("StartContainer", container="side")
    spans = [limits.restart_after(delay_s).after(1) for delay_s in (0, 10)]
    expect_spans(node, times, spans, "starts of a sidecar that lives 1 s")
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")


@conformance(id="sidecar-done-is-shown", rules=["LIFE-171", "LIFE-171.4"], needs=[STATUS])
async def a_sidecar_that_ended_well_is_shown_as_ended_while_it_waits(node: Node) -> None:
    """In its back-off a sidecar that exited 0 is shown as terminated, one that failed as waiting
    with the reason.

    The exception for exit 0 is made for all init containers, sidecars included. A back-off shows
    at the next sync of the pod; so that there is one in each, the two do not end together.
    """
    init = [sidecar("done", exits(0, after_s=3)), sidecar("failed", exits(1, after_s=1))]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(
        lambda: "waiting(CrashLoopBackOff)" in node.states("web", "failed"),
        within_s=limits.START_S + 4 * limits.NOTICE_S,
        what="failed waits for its restart",
    )
    await node.run_until(
        lambda: node.count("StartContainer", container="done") >= 3,
        within_s=10 + 4 * limits.NOTICE_S + limits.SYNC_ERROR_S,
        what="a third start of done",
    )
    states = node.states("web", "done")
    expect(node, "terminated(0)" in states, "a status that shows done as terminated(0)", states)
    expect(node, "waiting(CrashLoopBackOff)" not in states, "done never shown as waiting", states)


@conformance(id="sidecar-order-of-two", rules=["LIFE-120", "LIFE-121"], needs=[STATUS])
async def sidecars_start_in_their_order_and_init_containers_between_them(node: Node) -> None:
    """Sidecars and init containers start in the order of the spec: a sidecar must have started
    before the next one, a plain init container must have ended."""
    init = [sidecar("one"), container("setup", exits(0, after_s=1)), sidecar("two")]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(lambda: node.running("web", "one", "two", "main"), within_s=10)
    expected_starts = [f"StartContainer {name}/0" for name in ("one", "setup", "two", "main")]
    expect_equal(node, starts(node, "web"), expected_starts, "starts")


@conformance(id="sidecar-liveness", rules=["LIFE-121", "PROBE-034"], needs=[STATUS])
async def a_sidecar_that_fails_its_liveness_probe_is_restarted(node: Node) -> None:
    """A failing liveness probe stops the sidecar and starts it again, also with policy Never, and
    leaves the other containers alone."""
    side = sidecar("side", probes={"liveness": ExecProbe(until_s=2, failure_threshold=2)})
    await node.apply_static(pod("job", container("main"), init=[side], restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.START_S + 4 + limits.NOTICE_S,
        what="a second start of side",
    )
    expect_order(
        node,
        node.writes("job"),
        ["StartContainer main/0", "StopContainer side/0", "StartContainer side/1"],
        "side is stopped, then started again",
    )
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")


@conformance(id="sidecar-startup-failure", rules=["LIFE-120", "PROBE-034"], needs=[STATUS])
async def a_sidecar_that_never_starts_up_is_restarted_and_holds_up_the_rest(node: Node) -> None:
    """A sidecar whose startup probe fails is restarted, and nothing that comes after it starts
    before the probe has succeeded."""
    late = ExecProbe(from_s=60, failure_threshold=2)
    side = sidecar("side", probes={"startup": late})
    await node.apply_static(pod("web", container("main"), init=[side]))
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.START_S + 3 + limits.NOTICE_S,
        what="a second start of side",
    )
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")
    expect_equal(node, node.phase("web"), "Pending", "phase")


@conformance(
    id="sidecar-unready-pod", rules=["LIFE-183", "LIFE-181", "LIFE-175"], needs=[STATUS, KILL]
)
async def a_pod_is_ready_with_its_sidecars_only(node: Node) -> None:
    """A sidecar that is not ready keeps the pod unready, but the pod stays initialized."""
    side = sidecar("side", probes={"readiness": ExecProbe(until_s=4)})
    await node.apply_static(pod("web", container("main"), init=[side]))
    await node.run_until(
        lambda: node.condition("web", "Ready").get("status") == "True",
        within_s=limits.START_S + limits.NOTICE_S,
        what="Ready",
    )
    await node.run_until(
        lambda: node.condition("web", "Ready").get("status") == "False",
        within_s=4 + limits.NOTICE_S,
        what="not Ready",
    )
    message = node.condition("web", "Ready").get("message")
    expect_equal(node, message, "containers with unready status: [side]", "message of Ready")
    expect_equal(node, node.condition("web", "Initialized").get("status"), "True", "Initialized")
    expect_equal(node, node.phase("web"), "Running", "phase")


async def stop_of_sidecar(node: Node, *, main_takes_s: float, grace_s: int) -> Any:
    """The StopContainer of a sidecar whose pod is removed, and whose main container takes its time
    to stop."""
    main = container("main", runs(stops(0, after_s=main_takes_s)))
    await node.apply_static(pod("web", main, init=[sidecar("side")], grace_s=grace_s))
    await node.run_until(lambda: node.running("web", "main", "side"), within_s=8)
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="side"),
        within_s=min(main_takes_s, grace_s) + limits.STOP_S,
        what="StopContainer of side",
    )
    (stop,) = node.calls("StopContainer", container="side")
    return stop


@conformance(id="sidecar-grace-shared", rules=["LIFE-144", "LIFE-143"], needs=[STATUS])
async def a_sidecar_gets_what_the_main_containers_left_of_the_grace(node: Node) -> None:
    """A sidecar is stopped after the main containers, and the time that they took is missing from
    its grace period."""
    stop = await stop_of_sidecar(node, main_takes_s=3, grace_s=8)
    main_ended = node.ended_s(node.calls("StopContainer", container="main")[0])
    expect(node, node.time_s(stop) >= main_ended, "side is stopped after main has ended")
    expect(node, stop.request.timeout in (4, 5), "a timeout of about 5 s", stop.request.timeout)


@conformance(id="sidecar-out-of-grace", rules=["LIFE-144"], needs=[STATUS])
async def a_sidecar_does_not_wait_longer_than_its_grace(node: Node) -> None:
    """When a main container uses up the whole grace period, the sidecar is stopped then, with 2
    s."""
    stop = await stop_of_sidecar(node, main_takes_s=3600, grace_s=4)
    (first,) = node.calls("StopContainer", container="main")
    waited_s = node.time_s(stop) - node.time_s(first)
    expect(node, 3.5 <= waited_s <= 4.5 + node.slack_s, "side stopped 4 s after main", waited_s)
    expect_equal(node, stop.request.timeout, limits.MIN_STOP_TIMEOUT_S, "timeout of StopContainer")


@conformance(id="sidecar-stop-hangs", rules=["LIFE-144.3"], needs=[STATUS, Feature.FAULTS])
async def a_sidecar_is_stopped_while_the_stop_of_another_hangs(node: Node) -> None:
    """When StopContainer of a main container does not return, the sidecar is stopped at the end of
    the grace period all the same, with 2 s."""
    await node.apply_static(pod("web", container("main"), init=[sidecar("side")], grace_s=4))
    await node.run_until(lambda: node.running("web", "main", "side"), within_s=8)
    rule = node.runtime.on("StopContainer", container="main").hangs()
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="side"),
        within_s=4 + limits.STOP_S,
        what="StopContainer of side",
    )
    first, last = (node.calls("StopContainer", container=name)[0] for name in ("main", "side"))
    waited_s = node.time_s(last) - node.time_s(first)
    expect(node, 3.5 <= waited_s <= 4.5 + node.slack_s, "side stopped 4 s after main", waited_s)
    expect_equal(node, last.request.timeout, limits.MIN_STOP_TIMEOUT_S, "timeout of StopContainer")
    rule.release()


@conformance(id="sidecars-stop-in-turn", rules=["LIFE-144"], needs=[Feature.API])
async def each_sidecar_waits_for_the_one_after_it(node: Node) -> None:
    """Three sidecars of a deleted pod, each of which takes two seconds to end: the last one is
    stopped when the regular container has ended, each other when the one after it has; one that has
    ended before is waited for by nobody."""
    slow = runs(stops(0, after_s=2.0))
    init = [sidecar(name, slow) for name in ("s1", "s2", "s3")]
    await node.api.create_pod(pod("web", container("main"), init=init, grace_s=30))
    await node.wait_running("web", "main", "s1", "s2", "s3")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=6 + 4 * limits.STOP_S,
        what="the pod is gone",
    )
    calls = {c.container: c for c in node.calls("StopContainer", pod="web")}
    order = sorted(calls, key=lambda name: node.time_s(calls[name]))
    expect_equal(node, order, ["main", "s3", "s2", "s1"], "order of the stops")
    for first, then in itertools.pairwise(order):
        gap = node.time_s(calls[then]) - node.ended_s(calls[first])
        expect(node, gap >= -1e-3, f"{then} is stopped when {first} has ended", gap)
    span = node.time_s(calls["s1"]) - node.time_s(calls["s3"])
    expect(node, span >= 3.9, "the first one 4 s after the last one", span)


@conformance(
    id="sidecar-again-before-main",
    rules=["LIFE-130.6"],
    needs=[STATUS, KILL, Feature.RESTART],
)
async def a_dead_sidecar_starts_before_a_dead_main_container(node: Node) -> None:
    """When a starting kubelet finds a sidecar and a main container dead, and another one running,
    the sidecar is started first."""
    plan = pod("web", container("main"), container("calm"), init=[sidecar("side")])
    await node.apply_static(plan)
    await node.run_until(lambda: node.running("web", "side", "main", "calm"), within_s=8)
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    for name in ("main", "side"):
        await node.runtime.kill_container(name, pod="web")
    await node.kubelet.start()
    await node.run_until(
        lambda: all(node.count("StartContainer", container=n) == 2 for n in ("main", "side")),
        within_s=limits.START_S + limits.NOTICE_S,
        what="side and main start again",
    )
    order = ["CreateContainer side/1", "StartContainer side/1", "CreateContainer main/1"]
    expect_order(node, node.writes("web"), order, "side, then main")
