"""The end of a pod where several things meet: deletion in a back-off, hooks beside other stops,
pods that are gone when the kubelet looks."""

from typing import Any

from fakecri import stops
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, hook, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
SHUTDOWN: dict[str, Any] = {
    "shutdownGracePeriod": "10s",
    "shutdownGracePeriodCriticalPods": "4s",
}

ONE_POD = {"maxPods": 1}
HOOK_S = 150
"""So long that the kubelet has reached the API server again, and cleaned up, before it ends."""
CRITICAL: dict[str, Any] = {"priority": 2000000000, "priorityClassName": "system-cluster-critical"}


def timeouts(node: Node, name: str) -> list[int]:
    """The timeouts of the StopContainer calls for that container."""
    return [c.request.timeout for c in node.calls("StopContainer", container=name)]


@conformance(
    id="removed-while-api-away",
    rules=["LIFE-039.3", "SRC-071", "LIFE-004.4", "LIFE-013.3"],
    needs=[API, STATUS, Feature.RESTART],
)
async def a_pod_removed_before_all_sources_are_seen_ends_with_its_own_grace(node: Node) -> None:
    """A static pod whose manifest is removed before the kubelet has reached the API server is
    stopped when that answers, with its preStop hook and its own grace period."""
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        main = container("main", hooks={"preStop": hook(takes_s=1)})
        await node.apply_static(pod("web", main, grace_s=9))
        await node.wait_running("web")
        await node.remove_static("web")
        await node.run_for(2 * limits.HOUSEKEEPING_S)
        expect_equal(node, node.count("StopContainer"), 0, "stops while the API is away")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=60 + limits.STOP_S,
        what="web stops when the API is back",
    )
    expect_equal(node, node.count("ExecSync", container="main"), 1, "runs of the hook")
    expect_equal(node, timeouts(node, "main"), [8], "timeout: the grace less the hook")


@conformance(
    id="gone-during-a-sync",
    rules=["LIFE-039.4", "LIFE-039.3"],
    needs=[API, STATUS, Feature.RESTART, Feature.VIRTUAL_TIME],
)
async def a_pod_that_is_gone_during_its_sync_is_stopped_after_that(node: Node) -> None:
    """A static pod that is removed before the kubelet has reached the API server, and whose
    postStart hook still runs when that answers, is not stopped before the hook has ended: the sync
    goes on."""
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        main = container("main", hooks={"postStart": hook(takes_s=HOOK_S)})
        await node.apply_static(pod("web", main, grace_s=9))
        await node.run_until(
            lambda: node.count("ExecSync", container="main"), within_s=limits.START_S
        )
        await node.remove_static("web")
        await node.run_for(2 * limits.HOUSEKEEPING_S)
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=HOOK_S + limits.NOTICE_S + limits.STOP_S,
        what="web is stopped",
    )
    (hook_run,) = node.calls("ExecSync", container="main")
    expect_equal(node, hook_run.error, None, "error of the hook")
    expect_order(
        node,
        node.writes("web"),
        ["StartContainer main/0", "StopContainer main/0", "StopPodSandbox/0"],
        "one start, one stop",
    )
    (stop,) = node.times_s("StopContainer", container="main")
    end_s = node.ended_s(hook_run)
    expect(node, stop >= end_s, "the stop after the end of the hook", f"{stop - end_s:.2f} s later")
    expect_equal(node, timeouts(node, "main"), [9], "timeouts of StopContainer")


@conformance(
    id="deleted-in-back-off",
    rules=["LIFE-171.1", "LIFE-164.1", "LIFE-114.1", "BACK-101.1"],
    needs=[API],
)
async def a_pod_deleted_in_its_back_off_shows_how_its_container_ended(node: Node) -> None:
    """A pod whose only container waits for its restart is Running; when it is deleted, the
    container is not started again, and is shown with its own exit code."""
    plan = pod(
        "web", container("main", exits(3, after_s=1)), metadata={"finalizers": ["example.com/look"]}
    )
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("restartCount") == 1
            and "running" not in node.api.container("web", "main")["state"]
        ),
        within_s=limits.START_S + 4 * limits.NOTICE_S,
        what="the end of the second instance",
    )
    expect_equal(node, node.api.phase("web"), "Running", "phase in the back-off")
    starts = node.count("StartContainer", container="main")
    await node.api.delete_pod("web", grace_s=2)
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.STOP_S, what="Failed"
    )
    await node.run_for(limits.NOTICE_S)
    ended = node.api.container("web", "main")["state"].get("terminated", {})
    expect_equal(node, (ended.get("exitCode"), ended.get("reason")), (3, "Error"), "end of main")
    expect_equal(node, node.count("StartContainer", container="main"), starts, "starts")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(id="delete-failed-phase", rules=["LIFE-200.3", "LIFE-200.4"], needs=[API])
async def a_deleted_pod_with_a_terminal_phase_stays_until_its_containers_are_gone(
    node: Node,
) -> None:
    """A pod that another client has marked as Failed, and that is deleted while its container still
    stops, gets its final DELETE only when that has stopped; it names the UID."""
    main = container("main", ignores_term())
    metadata = {"finalizers": ["example.com/look"]}
    await node.api.create_pod(pod("web", main, grace_s=14, metadata=metadata))
    await api_running(node, "web")
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    await node.api.patch_pod("web", {"status": {"phase": "Failed"}}, status=True)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})  # leads to a sync
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.STOP_S, what="StopContainer"
    )
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: deletes(node, "web"),
        within_s=14 + limits.STOP_S + limits.STATUS_PASS_S,
        what="a DELETE of the kubelet",
    )
    ended = [node.ended_s(c) >= 0 for c in node.calls("StopPodSandbox", pod="web")]
    expect(node, any(ended), "StopPodSandbox has ended before that", ended)
    options = deletes(node, "web")[0].body
    fields = (options.get("gracePeriodSeconds"), (options.get("preconditions") or {}).get("uid"))
    expect_equal(node, fields, (0, uid), "gracePeriodSeconds and UID in the DELETE")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


def deletes(node: Node, name: str) -> list[Any]:
    """The DELETE requests with a grace period of 0 for the pod: those of the kubelet."""
    requests = node.api.requests("DELETE", f"/pods/{name}$")
    return [request for request in requests if (request.body or {}).get("gracePeriodSeconds") == 0]


@conformance(id="sidecar-hook-at-once", rules=["LIFE-144.4", "LIFE-144.2"], needs=[STATUS])
async def the_hook_of_a_sidecar_runs_beside_the_stop_of_the_main_container(node: Node) -> None:
    """The preStop hook of a sidecar runs while the main container still stops; its StopContainer
    comes after that."""
    main = container("main", runs(stops(0, after_s=3.5)))  # the rest of the grace is whole seconds
    side = sidecar("side", hooks={"preStop": hook(takes_s=1)})
    await node.apply_static(pod("web", main, init=[side], grace_s=12))
    await node.run_until(lambda: node.running("web", "main", "side"), within_s=8)
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="side"), within_s=4 + limits.STOP_S
    )
    (run,) = node.calls("ExecSync", container="side")
    (stop,) = node.calls("StopContainer", container="main")
    (last,) = node.calls("StopContainer", container="side")
    began_s = node.time_s(run) - node.time_s(stop)
    expect(node, began_s <= 1 + node.slack_s, "the hook begins with the stop", f"{began_s:.2f} s")
    expect(node, node.time_s(last) >= node.ended_s(stop), "side stops after main", last)
    expect(node, last.request.timeout in (8, 9), "a timeout of 9 s, or 8", last.request.timeout)


@conformance(id="sidecar-before-main", rules=["LIFE-144.2"], needs=[STATUS])
async def a_sidecar_does_not_wait_for_containers_that_never_started(node: Node) -> None:
    """In a pod that is removed while an init container runs, the sidecar is stopped at once, with
    the full grace period."""
    init = [sidecar("side"), container("setup", runs())]
    await node.apply_static(pod("web", init=init, grace_s=9))
    await node.run_until(lambda: node.running("web", "side", "setup"), within_s=8)
    await node.run_for(limits.NOTICE_S)
    removed_s = node.now_s
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", container="side"), within_s=2 * limits.STOP_S
    )
    stop = node.calls("StopContainer", container="side")[0]
    waited_s = node.time_s(stop) - removed_s
    expect(node, waited_s <= limits.NOTICE_S + node.slack_s, "side stops at once", f"{waited_s} s")
    expect(node, stop.request.timeout in (8, 9), "timeout of 9 s", stop.request.timeout)


@conformance(
    id="shutdown-caps-hook",
    rules=["LIFE-143.2", "LIFE-143.3", "LIFE-033.4"],
    needs=[API, Feature.SHUTDOWN],
    node_config=SHUTDOWN,
)
async def the_grace_of_a_shutdown_bounds_the_hook_too(node: Node) -> None:
    """In a shutdown that gives 6 s, a preStop hook that takes 20 s is waited for 6 s; then the
    container is stopped with 2 s."""
    main = container("main", hooks={"preStop": hook(takes_s=20)})
    await node.api.create_pod(pod("web", main, grace_s=30))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    node.machine.shut_down()
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=6 + limits.STOP_S,
        what="StopContainer",
    )
    (run,) = node.calls("ExecSync", container="main")
    waited_s = node.times_s("StopContainer", pod="web")[0] - node.time_s(run)
    expect(node, 5.5 <= waited_s <= 6.5 + node.slack_s, "6 s for the hook", f"{waited_s:.2f} s")
    expect_equal(node, timeouts(node, "main"), [2], "timeout of StopContainer")


@conformance(id="sandbox-fails-late", rules=["LIFE-130.7"], needs=[API, FAULTS])
async def a_sandbox_that_fails_in_a_deleted_pod_is_nobodys_concern(node: Node) -> None:
    """When RunPodSandbox fails after the pod was deleted, no event tells of it, and the pod is
    removed from the API."""
    node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no network")
    node.runtime.on("RunPodSandbox").delays(4)
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.count("RunPodSandbox", pod="web"), within_s=limits.START_S)
    await node.run_for(1)
    await node.api.delete_pod("web", grace_s=2)
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=4 + limits.STOP_S + limits.STATUS_PASS_S,
        what="pod removed",
    )
    (run,) = node.calls("RunPodSandbox", pod="web")
    took_s = node.ended_s(run) - node.time_s(run)
    expect(node, run.error and took_s >= 3.9, "RunPodSandbox failed after 4 s", f"{took_s:.2f} s")
    expect_equal(node, len(node.events("FailedCreatePodSandBox", pod="web")), 0, "events of it")


@conformance(
    id="kill-waits-for-grace",
    rules=[
        "LIFE-040.1",
        "LIFE-040.2",
        "LIFE-187",
        "LIFE-190.1",
        "LIFE-225.3",
        "LIFE-031.8",
        "LIFE-036.3",
    ],
    needs=[API],
    node_config=ONE_POD,
)
async def a_kill_waits_longer_than_the_grace(node: Node) -> None:
    """A pod that makes room and takes 13 s of its 20 s to stop is waited for: the critical pod
    starts then, and no event says that it took too long."""
    slow = container("main", runs(stops(1, after_s=13)))
    await node.api.run_pods(pod("web", slow, grace_s=20))
    await node.api.create_pod(pod("critical", **CRITICAL))
    await node.run_until(lambda: node.count("StopContainer"), within_s=limits.STOP_S)
    await node.run_for(limits.STATUS_PASS_S + 1)
    status = (node.api.pod("web") or {})["status"]
    kinds = [condition["type"] for condition in status["conditions"]]
    expect_equal(node, status["phase"], "Running", "phase while web stops")
    expect(node, "DisruptionTarget" not in kinds, "no DisruptionTarget yet", kinds)
    await node.run_until(
        lambda: node.api.phase("critical") == "Running",
        within_s=13 + limits.START_S + limits.STOP_S,
        what="critical runs",
    )
    expect_equal(node, len(node.events("ExceededGracePeriod")), 0, "events ExceededGracePeriod")


@conformance(
    id="kill-given-up",
    rules=["LIFE-040.2", "LIFE-040.3", "LIFE-040.4", "LIFE-040.1"],
    needs=[API, FAULTS],
    node_config=ONE_POD,
)
async def a_kill_that_does_not_end_is_given_up(node: Node) -> None:
    """A pod that makes room and has not stopped after 10 s is not waited for any longer: an event
    says so, and the critical pod is admitted; the stop goes on."""
    await node.api.run_pods(pod("web", container("main", runs(stops(1))), grace_s=2))
    rule = node.runtime.on("StopContainer", pod="web").hangs()
    await node.api.create_pod(pod("critical", **CRITICAL))
    await node.run_until(lambda: node.count("StopContainer"), within_s=limits.STOP_S)
    began_s = node.now_s
    await node.run_until(
        lambda: node.events("ExceededGracePeriod", pod="web"),
        within_s=10 + limits.NOTICE_S,
        what="an event ExceededGracePeriod",
    )
    waited_s = node.now_s - began_s
    expect(node, waited_s >= 8, "10 s until it is given up", f"{waited_s:.1f} s")
    await node.run_until(
        lambda: node.api.phase("critical") == "Running",
        within_s=limits.START_S,
        what="critical runs",
    )
    rule.release()
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=2 * limits.STOP_S)
    expect_equal(node, node.count("StopContainer"), 1, "StopContainer calls")


@conformance(id="address-kept", rules=["LIFE-176.3", "LIFE-071.6"], needs=[STATUS])
async def the_address_of_a_pod_stays_in_every_status(node: Node) -> None:
    """From the moment a pod has an address every status shows it, also while and after it stops."""
    job = pod("job", container("main", exits(1, after_s=2)), restartPolicy="Never")
    await node.apply_static(job)
    await node.run_until(
        lambda: node.phase("job") == "Failed" and node.count("StopPodSandbox", pod="job"),
        within_s=limits.START_S + 2 + limits.STOP_S,
        what="the end of the pod",
    )
    await node.run_for(2 * limits.NOTICE_S)
    addresses = [status.get("podIP") for status in node.statuses("job")]
    from_first = addresses[next((i for i, ip in enumerate(addresses) if ip), len(addresses)) :]
    expect(node, from_first and len(set(from_first)) == 1, "one address in all statuses", addresses)


@conformance(
    id="restart-all-without-hooks", rules=["LIFE-125.2", "LIFE-143.3"], needs=[API], since="1.36"
)
async def a_restart_of_all_containers_runs_no_hook(node: Node) -> None:
    """When an exit restarts all containers, the others are stopped with 2 s and without their
    preStop hooks."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    boss = container(
        "boss",
        in_turn(exits(42, after_s=3), runs()),
        restartPolicy="Never",
        restartPolicyRules=[rule],
    )
    main = container("main", hooks={"preStop": hook(takes_s=1)})
    await node.api.create_pod(pod("web", boss, main, grace_s=9))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S + 3 + 3 * limits.NOTICE_S,
        what="a second start of main",
    )
    expect_equal(node, node.count("ExecSync", container="main"), 0, "runs of the hook")
    expect_equal(node, timeouts(node, "main"), [2], "timeout of StopContainer")
