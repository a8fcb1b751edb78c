"""Hooks and their events: how often each comes, in which order, and what comes again with the next
instance."""

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS = Feature.API, Feature.FAULTS


def hooks_run(node: Node, name: str) -> int:
    """How often the hook of that name has been run."""
    calls = node.calls("ExecSync")
    return sum(call.request.cmd[-1].rpartition("# ")[2] == name for call in calls)


@conformance(id="started-before-its-hook", rules=["LIFE-131.4", "LIFE-142.1"], needs=[API])
async def the_start_is_told_before_the_hook_has_ended(node: Node) -> None:
    """The event Started follows StartContainer, while the postStart hook still runs; each instance
    has its own hook and its own events Created and Started."""
    hooks = {"postStart": hook(takes_s=6, name="first")}
    work = in_turn(exits(1, after_s=12), runs())
    await node.api.create_pod(pod("web", container("main", work, hooks=hooks)))
    await node.run_until(
        lambda: node.events("Started", pod="web"), within_s=limits.START_S, what="event Started"
    )
    (run,) = node.calls("ExecSync")
    expect(node, node.now_s < node.time_s(run) + 6, "told while the hook runs", node.now_s)
    expect_equal(node, node.event_count("Created", pod="web"), 1, "events Created")
    await node.run_until(
        lambda: node.event_count("Started", pod="web") == 2,
        within_s=12 + limits.START_S + limits.SYNC_ERROR_S,
        what="Started again",
    )
    await node.run_until(lambda: hooks_run(node, "first") == 2, within_s=limits.NOTICE_S)
    expect_equal(node, node.event_count("Created", pod="web"), 2, "events Created")


@conformance(id="started-before-a-failed-hook", rules=["LIFE-131.4", "LIFE-142"], needs=[API])
async def a_failed_hook_takes_no_event_away(node: Node) -> None:
    """A container whose postStart hook fails was created and started all the same: the events say
    so, then that the hook failed, then that the container is stopped for it."""
    hooks = {"postStart": hook(takes_s=1, exit_code=1)}
    main = container("main", hooks=hooks)
    await node.api.create_pod(pod("web", main, restartPolicy="Never", grace_s=2))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed" or node.api.phase("web") == "Succeeded",
        within_s=1 + limits.START_S + limits.STOP_S + limits.NOTICE_S,
        what="the end of the pod",
    )
    await node.events_arrive()
    reasons = ("Created", "Started", "FailedPostStartHook", "Killing")
    counts = {reason: node.event_count(reason, pod="web") for reason in reasons}
    expect_equal(node, counts, dict.fromkeys(reasons, 1), "events")
    (killing,) = node.events("Killing", pod="web")
    expect_equal(node, killing["message"], "FailedPostStartHook", "message of Killing")


@conformance(id="prestop-once", rules=["LIFE-143.8", "LIFE-033.4"], needs=[API])
async def a_hook_runs_once_for_a_stop(node: Node) -> None:
    """The preStop hook of each container runs once when the pod is deleted, whatever comes
    meanwhile: another deletion, changes of the pod, the death of another container."""
    hooks = {"preStop": hook(takes_s=5, name="last")}
    other_hooks = {"preStop": hook(takes_s=5, name="other")}
    plan = pod(
        "web",
        container("main", hooks=hooks),
        container("other", hooks=other_hooks),
        container("third"),
        grace_s=20,
    )
    await node.api.create_pod(plan)
    await node.wait_running("web", "main", "other", "third")
    await node.api.delete_pod("web")
    await node.run_until(lambda: hooks_run(node, "last"), within_s=limits.STOP_S)
    await node.api.delete_pod("web", grace_s=20)
    await node.api.patch_pod("web", {"metadata": {"annotations": {"note": "x"}}})
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=5 + 3 * limits.STOP_S,
        what="the pod is gone",
    )
    hook_runs = {name: hooks_run(node, name) for name in ("last", "other")}
    expect_equal(node, hook_runs, {"last": 1, "other": 1}, "runs of the hooks")
    expect_equal(node, node.count("StopContainer", container="main"), 1, "stops of main")
    expect_equal(node, node.event_count("Killing", pod="web"), 3, "events Killing")


@conformance(id="prestop-again", rules=["LIFE-143.8", "LIFE-071.3"], needs=[API, FAULTS])
async def a_stop_that_failed_runs_the_hook_again(node: Node) -> None:
    """When StopContainer has failed, the next try runs the preStop hook again, and the grace period
    begins anew."""
    hooks = {"preStop": hook(takes_s=2, name="last")}
    main = container("main", ignores_term(), hooks=hooks)
    await node.api.create_pod(pod("web", main, grace_s=6))
    await node.wait_running("web")
    node.runtime.on("StopContainer", pod="web").fails("UNKNOWN", "device busy", times=1)
    node.runtime.on("StopPodSandbox", pod="web").fails("UNKNOWN", "device busy", times=1)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="main") == 2,
        within_s=2 * (2 + limits.STOP_S) + limits.SYNC_ERROR_S,
        what="a second StopContainer",
    )
    expect_equal(node, hooks_run(node, "last"), 2, "runs of the hook")
    timeouts = [call.request.timeout for call in node.calls("StopContainer")]
    expect_equal(node, timeouts, [4, 4], "timeouts of StopContainer")


@conformance(
    id="prestop-after-restart",
    rules=["LIFE-202.1", "LIFE-202.2", "LIFE-143.1"],
    needs=[API, Feature.RESTART],
)
async def a_restarted_kubelet_runs_the_hook_again(node: Node) -> None:
    """A pod whose preStop hook ran when the kubelet was killed is stopped by the next kubelet with
    the whole grace period of its deletion: the hook runs again, and its seconds are missing."""
    main = container("main", ignores_term(), hooks={"preStop": hook(takes_s=4, name="last")})
    await node.api.create_pod(pod("web", main, grace_s=30))
    await node.wait_running("web")
    await node.api.delete_pod("web", grace_s=12)
    await node.run_until(lambda: hooks_run(node, "last"), within_s=limits.STOP_S)
    await node.run_for(2)
    await node.kubelet.kill()
    await node.run_for(3)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopContainer", container="main"),
        within_s=4 + limits.START_S + limits.STOP_S,
        what="main is stopped",
    )
    expect_equal(node, hooks_run(node, "last"), 2, "runs of the hook")
    timeouts = [call.request.timeout for call in node.calls("StopContainer")]
    expect_equal(node, timeouts, [8], "timeouts of StopContainer: the grace less the hook")
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=8 + limits.STOP_S, what="the pod is gone"
    )


@conformance(id="deleted-while-away", rules=["LIFE-015.7"], needs=[API, Feature.RESTART])
async def a_pod_that_ended_before_the_start_is_put_away(node: Node) -> None:
    """A deleted pod whose containers have ended, but which the kubelet could not remove from the
    API before it ended itself, is removed by the next one: nothing of it is started."""
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=2))), grace_s=5))
    await node.api.create_pod(pod("other"))
    await node.wait_running("web")
    await node.wait_running("other")
    await node.api.delete_pod("web")
    with node.api.fails("DELETE", "/pods/web$", status=500):
        await node.run_until(
            lambda: node.api.phase("web") in ("Succeeded", "Failed"),
            within_s=5 + 2 * limits.STOP_S + limits.STATUS_PASS_S,
            what="web has ended",
        )
        await node.run_for(limits.NOTICE_S)
        await node.kubelet.stop()
    expect(node, node.api.pod("web"), "web is still there")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.START_S + limits.STATUS_PASS_S + 2 * limits.HOUSEKEEPING_S + 10,
        what="the pod is gone",
    )
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts of web")
    expect_equal(node, node.count("StopContainer", pod="other"), 0, "stops of other")
