"""How a pod stops: hooks, grace periods, and the order of containers, sidecars and sandbox."""

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, hook, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

STATUS = Feature.STATUS


def stop_timeouts(node: Node, container_name: str) -> list[int]:
    """The timeouts of the StopContainer calls for that container."""
    return [c.request.timeout for c in node.calls("StopContainer", container=container_name)]


async def stopped(node: Node, name: str, within_s: float) -> None:
    """Run until StopPodSandbox of the pod has returned."""
    await node.run_until(
        lambda: any(node.ended_s(c) >= 0 for c in node.calls("StopPodSandbox", pod=name)),
        within_s=within_s,
        what=f"StopPodSandbox of {name}",
    )


@conformance(
    id="stop-grace", rules=["LIFE-143", "MIRR-005", "LIFE-033", "LIFE-033.2"], needs=[STATUS]
)
async def removal_stops_with_the_grace_of_the_pod(node: Node) -> None:
    """A removed pod gets StopContainer with its own grace period, then StopPodSandbox."""
    await node.apply_static(pod("web", grace_s=7))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", limits.STOP_S)
    expect_equal(node, stop_timeouts(node, "main"), [7], "timeout of StopContainer")
    expect_order(
        node, node.writes("web"), ["StopContainer main/0", "StopPodSandbox/0"], "stop order"
    )
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")


@conformance(id="stop-default-grace", rules=["SRC-036", "LIFE-143"], needs=[STATUS])
async def without_a_grace_period_thirty_seconds_are_given(node: Node) -> None:
    """A pod without a grace period in its spec is stopped with 30 s."""
    await node.apply_static(pod("web", grace_s=None))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", limits.STOP_S)
    expect_equal(node, stop_timeouts(node, "main"), [30], "timeout of StopContainer")


@conformance(id="stop-minimum", rules=["LIFE-143"], needs=[STATUS])
async def stop_container_never_gets_less_than_two_seconds(node: Node) -> None:
    """A grace period of one second still gives StopContainer two."""
    await node.apply_static(pod("web", grace_s=1))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", limits.STOP_S)
    expect_equal(node, stop_timeouts(node, "main"), [2], "timeout of StopContainer")


@conformance(id="stop-stubborn", rules=["LIFE-143", "LIFE-071"], needs=[STATUS])
async def a_container_that_ignores_sigterm_lives_until_the_grace_ends(node: Node) -> None:
    """A container that ignores SIGTERM delays StopPodSandbox until the end of its grace period, and
    no longer."""
    await node.apply_static(pod("web", container("main", ignores_term()), grace_s=3))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", 3 + limits.STOP_S)
    stop = node.calls("StopContainer", container="main")[0]
    took = stop.ended_s - stop.started_s
    expect(node, 2.8 <= took <= 4.0 + node.slack_s, "StopContainer takes 3 s", f"{took:.2f} s")
    sandbox = node.times_s("StopPodSandbox", pod="web")[0]
    expect(node, sandbox >= node.ended_s(stop), "StopPodSandbox after StopContainer", sandbox)


@conformance(id="prestop-uses-grace", rules=["LIFE-143"], needs=[STATUS])
async def a_prestop_hook_shortens_the_grace(node: Node) -> None:
    """The seconds that a preStop hook takes are missing from the timeout of StopContainer."""
    web = container("main", hooks={"preStop": hook(takes_s=2)})
    await node.apply_static(pod("web", web, grace_s=8))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", 2 + limits.STOP_S)
    writes = ["ExecSync main/0", "StopContainer main/0", "StopPodSandbox/0"]
    expect_order(node, node.writes("web"), writes, "the preStop hook, then the stops")
    timeouts = stop_timeouts(node, "main")
    expect(node, timeouts in ([6], [5]), "StopContainer timeout of 8 - 2 s", timeouts)


@conformance(id="prestop-bounded", rules=["LIFE-143"], needs=[STATUS])
async def a_prestop_hook_is_waited_for_as_long_as_the_grace(node: Node) -> None:
    """A preStop hook that outlasts the grace period is not waited for any longer; StopContainer
    gets the minimum of 2 s."""
    web = container("main", hooks={"preStop": hook(takes_s=30)})
    await node.apply_static(pod("web", web, grace_s=2))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=2 + limits.STOP_S
    )
    hook_s = node.times_s("ExecSync", container="main")[0]
    stop_s = node.times_s("StopContainer", container="main")[0]
    waited = stop_s - hook_s
    late = 3.0 + node.slack_s
    expect(node, 1.9 <= waited <= late, "StopContainer 2 s after the hook began", f"{waited:.2f} s")
    expect_equal(node, stop_timeouts(node, "main"), [2], "timeout of StopContainer")


@conformance(id="prestop-failure-harmless", rules=["LIFE-143"], needs=[STATUS])
async def a_failing_prestop_hook_does_not_stop_the_stop(node: Node) -> None:
    """A preStop hook that fails is followed by StopContainer all the same."""
    web = container("main", hooks={"preStop": hook(exit_code=1)})
    await node.apply_static(pod("web", web, grace_s=3))
    await node.wait_running("web")
    await node.remove_static("web")
    await stopped(node, "web", limits.STOP_S)
    expect_equal(node, len(stop_timeouts(node, "main")), 1, "StopContainer calls")


@conformance(id="stop-parallel", rules=["LIFE-144"], needs=[STATUS])
async def containers_are_stopped_at_the_same_time(node: Node) -> None:
    """The regular containers of a pod are stopped together, not one after the other."""
    both = [container(name, ignores_term()) for name in ("one", "two")]
    await node.apply_static(pod("web", *both, grace_s=2))
    await node.wait_running("web", "one", "two")
    await node.remove_static("web")
    await stopped(node, "web", 2 + limits.STOP_S)
    first, two = (node.times_s("StopContainer", container=n)[0] for n in ("one", "two"))
    expect(node, abs(first - two) < 1.0, "both StopContainer within 1 s", f"{first:.2f}, {two:.2f}")


@conformance(id="sidecar-stops-last", rules=["LIFE-144"], needs=[STATUS])
async def sidecars_stop_after_the_main_containers_in_reverse_order(node: Node) -> None:
    """Sidecars are stopped after the regular containers, in the reverse order of their start."""
    main = container("main", runs(stops(0, after_s=1)))
    init = [
        sidecar("side1", runs(stops(0, after_s=0.5))),
        sidecar("side2", runs(stops(0, after_s=0.5))),
    ]
    await node.apply_static(pod("web", main, init=init, grace_s=10))
    await node.run_until(lambda: node.running("web", "main", "side1", "side2"), within_s=8)
    await node.remove_static("web")
    await stopped(node, "web", 3 + limits.STOP_S)
    stop_calls = [w for w in node.writes("web") if w.startswith("Stop")]
    expected = [f"StopContainer {n}/0" for n in ("main", "side2", "side1")] + ["StopPodSandbox/0"]
    expect_equal(node, stop_calls[:4], expected, "order of the stops")
    calls = {c.container: c for c in node.calls("StopContainer", pod="web")}
    for first, then in (("main", "side2"), ("side2", "side1")):
        ended_s, began_s = node.ended_s(calls[first]), node.time_s(calls[then])
        expect(node, ended_s <= began_s + 1e-3, f"{then} stops after {first}", (ended_s, began_s))


@conformance(
    id="stop-error-retried", rules=["LIFE-071", "LIFE-037"], needs=[STATUS, Feature.FAULTS]
)
async def a_failed_stop_is_tried_again(node: Node) -> None:
    """When container and sandbox cannot be stopped, the kubelet tries again until they are."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    node.runtime.on("StopContainer", container="main").fails("UNKNOWN", "device busy", times=1)
    node.runtime.on("StopPodSandbox", pod="web").fails("UNKNOWN", "device busy", times=1)
    await node.remove_static("web")
    await node.run_until(
        lambda: any(c.succeeded for c in node.calls("StopPodSandbox", pod="web")),
        within_s=limits.SYNC_ERROR_S + limits.STOP_S,
        what="StopPodSandbox without error",
    )
    stop_calls = node.calls("StopContainer", container="main")
    expect_equal(node, [bool(c.error) for c in stop_calls], [True, False], "StopContainer failed")
