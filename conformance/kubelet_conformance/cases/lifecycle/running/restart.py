"""What happens when containers or sandboxes end, and when the kubelet itself is restarted."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, KILL, RESTART = Feature.STATUS, Feature.OUTSIDE_KILL, Feature.RESTART


@conformance(
    id="killed-restarts",
    rules=["LIFE-003", "LIFE-114", "LIFE-132", "LIFE-003.1"],
    needs=[STATUS, KILL],
)
async def a_killed_container_is_replaced_in_the_same_sandbox(node: Node) -> None:
    """A container that was killed behind the kubelet's back is created again, as attempt 1, in the
    same sandbox."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1 and node.running("web"),
        within_s=limits.NOTICE_S,
        what="restartCount 1 and running",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    created = node.calls("CreateContainer", pod="web")
    expect_equal(node, [c.attempt for c in created], [0, 1], "attempts")
    expect_equal(
        node, created[1].request.pod_sandbox_id, created[0].request.pod_sandbox_id, "sandbox"
    )
    last = node.container("web", "main").get("lastState", {}).get("terminated", {})
    expect_equal(node, last.get("exitCode"), 137, "exit code in lastState")


@conformance(
    id="sandbox-lost",
    rules=["LIFE-101", "BACK-105", "LIFE-130"],
    needs=[STATUS, KILL],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}},
    since="1.35",
)
async def a_lost_sandbox_is_replaced_and_everything_starts_again(node: Node) -> None:
    """When the sandbox is stopped behind the kubelet's back, the pod gets a new one and starts
    again from its first init container."""
    init = [container("setup", exits(0))]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(lambda: node.running("web"), within_s=8)
    await node.runtime.stop_sandbox("web")
    # A kubelet that sees the dead container before the dead sandbox may first try the old one, and
    # then main waits in its back-off.
    await node.run_until(
        lambda: node.count("RunPodSandbox") == 2 and node.running("web"),
        within_s=8 + limits.restart_after(1).high_s,
        what="main runs in a new sandbox",
    )
    expect_order(node, node.writes("web"), ["StopPodSandbox/0", "RunPodSandbox/1"], "the sandboxes")
    new = node.calls("StartContainer", since_s=node.times_s("RunPodSandbox")[1])
    expect_equal(node, [c.container for c in new], ["setup", "main"], "starts in the new sandbox")


@conformance(
    id="never-started-lost",
    rules=["LIFE-111", "BACK-105"],
    level=Level.DETAIL,
    needs=[STATUS, KILL, Feature.FAULTS],
)
async def a_run_once_pod_that_could_not_start_stays_pending_without_its_sandbox(node: Node) -> None:
    """When a pod with policy Never loses its sandbox after its container failed to start, it gets
    no other sandbox; since no container has ever run, it has not finished either."""
    with node.runtime.on("StartContainer", container="main").fails("UNKNOWN", "no"):
        await node.apply_static(pod("job", restartPolicy="Never"))
        await node.run_until(
            lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
        )
        await node.run_for(limits.NOTICE_S)
        await node.runtime.stop_sandbox("job")
        await node.run_for(limits.NOTICE_S + limits.SYNC_ERROR_S)
    expect_equal(node, node.count("RunPodSandbox"), 1, "sandboxes")
    expect_equal(node, node.phase("job"), "Pending", "phase")


@conformance(
    id="status-clock-back",
    rules=["BACK-020", "CRI-081"],
    level=Level.DETAIL,
    needs=[STATUS, KILL, Feature.FAULTS],
    except_laws={"no-mistaken-call": "the older instance looks newer, so a number comes twice"},
)
async def the_newest_instance_is_the_one_created_last(node: Node) -> None:
    """The newest instance of a container is the one with the latest creation time.

    Here the runtime's clock went back before the second instance was made: the first one counts as
    the newest, so the kubelet makes another number 1, whose name is taken.
    """

    def minute_back(answer: Any) -> None:
        if answer.status.metadata.attempt == 1:
            answer.status.created_at -= 60 * 10**9

    main = container("main", in_turn(exits(1, after_s=2), runs()))
    with node.runtime.on("ContainerStatus", container="main").changes_answer(minute_back):
        await node.apply_static(pod("web", main))
        await node.run_until(
            lambda: node.count("CreateContainer", container="main") == 3,
            within_s=limits.START_S + 2 + limits.restart_after(10).high_s + limits.SYNC_ERROR_S,
            what="a third try to create main",
        )
    tries = node.calls("CreateContainer", container="main")
    expect_equal(node, [call.attempt for call in tries], [0, 1, 1], "attempts")
    expect(node, tries[2].error is not None, "an error: the name is taken", tries[2].error)


@conformance(
    id="run-once-succeeds",
    rules=["LIFE-164", "LIFE-124", "LIFE-114.5", "LIFE-036.1", "LIFE-036.4"],
    needs=[STATUS],
)
async def a_run_once_pod_that_exits_zero_succeeds(node: Node) -> None:
    """A pod with policy Never whose container exits 0 becomes Succeeded, and its sandbox is
    stopped."""
    await node.apply_static(
        pod("job", container("main", exits(0, after_s=1)), restartPolicy="Never")
    )
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=1 + limits.START_S, what="Succeeded"
    )
    await node.run_until(lambda: node.count("StopPodSandbox", pod="job"), within_s=limits.NOTICE_S)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("CreateContainer", pod="job"), 1, "containers made")
    expect_equal(node, node.count("StopContainer", pod="job"), 0, "StopContainer calls")
    state = node.container("job", "main").get("state", {}).get("terminated", {})
    expect_equal(node, (state.get("exitCode"), state.get("reason")), (0, "Completed"), "state")


@conformance(id="run-once-fails", rules=["LIFE-164", "LIFE-124", "LIFE-114.5"], needs=[STATUS])
async def a_run_once_pod_that_exits_nonzero_fails(node: Node) -> None:
    """A pod with policy Never whose container exits non-zero becomes Failed and stays so."""
    await node.apply_static(pod("job", container("main", exits(3)), restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") == "Failed", within_s=limits.START_S, what="Failed"
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("CreateContainer", pod="job"), 1, "runs")
    state = node.container("job", "main").get("state", {}).get("terminated", {})
    expect_equal(node, (state.get("exitCode"), state.get("reason")), (3, "Error"), "state")
    expect_equal(node, node.phase("job"), "Failed", "phase")


@conformance(
    id="on-failure", rules=["LIFE-124", "LIFE-164", "BACK-102.4", "BACK-105.4"], needs=[STATUS]
)
async def on_failure_restarts_until_success(node: Node) -> None:
    """With policy OnFailure a failing container runs again until it exits 0; then the pod is
    Succeeded."""
    work = in_turn(exits(1), exits(0))
    await node.apply_static(pod("job", container("main", work), restartPolicy="OnFailure"))
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=limits.START_S + 3, what="Succeeded"
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", pod="job"), 2, "runs")
    expect_equal(node, node.count("RunPodSandbox", pod="job"), 1, "sandboxes")


@conformance(id="one-ends-others-run", rules=["LIFE-162", "LIFE-164", "LIFE-161.3"], needs=[STATUS])
async def a_pod_runs_while_one_of_its_containers_does(node: Node) -> None:
    """A run-once pod stays Running while a container runs, and ends with the last."""
    both = container("short", exits(1)), container("long", exits(0, after_s=4))
    await node.apply_static(pod("job", *both, restartPolicy="Never"))
    await node.run_until(
        lambda: "terminated" in node.container("job", "short").get("state", {}), within_s=4
    )
    expect_equal(node, node.phase("job"), "Running", "phase")
    await node.run_until(lambda: node.phase("job") == "Failed", within_s=4 + limits.NOTICE_S)


@conformance(id="sidecar-restarts-always", rules=["LIFE-120", "BACK-104"], needs=[STATUS, KILL])
async def a_sidecar_restarts_whatever_the_policy(node: Node) -> None:
    """A sidecar that ends is started again, even in a pod with policy Never."""
    job = pod("job", container("main"), init=[sidecar("side")], restartPolicy="Never")
    await node.apply_static(job)
    await node.run_until(lambda: node.running("job", "main", "side"), within_s=8)
    await node.runtime.kill_container("side", pod="job")
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.NOTICE_S,
        what="a second start of side",
    )
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")


@conformance(id="sidecar-ends-with-main", rules=["LIFE-117", "LIFE-164"], needs=[STATUS])
async def sidecars_are_stopped_when_the_main_container_has_completed(node: Node) -> None:
    """When the last regular container of a run-once pod ends, its sidecars are stopped."""
    main = container("main", exits(0, after_s=2))
    await node.apply_static(pod("job", main, init=[sidecar("side")], restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=8 + limits.STOP_S, what="Succeeded"
    )
    expect_order(
        node,
        node.writes("job"),
        ["StartContainer main/0", "StopContainer side/0", "StopPodSandbox/0"],
        "the sidecar stops after main",
    )


@conformance(id="kubelet-restart-adopts", rules=["MIRR-008", "LIFE-010"], needs=[STATUS, RESTART])
async def a_restarted_kubelet_finds_its_pods_and_restarts_none(node: Node) -> None:
    """Stopping and starting the kubelet changes nothing in the runtime."""
    await node.apply_static(pod("web", container("main"), container("other")))
    await node.wait_running("web", "main", "other")
    uid = (node.pod("web") or {})["metadata"]["uid"]
    since = node.now_s
    await node.kubelet.restart()
    await node.wait_running("web", "main", "other")
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    expect_equal(node, node.writes("web", since_s=since), [], "changing calls after the restart")
    expect_equal(node, (node.pod("web") or {})["metadata"]["uid"], uid, "UID")
    expect_equal(node, node.container("web", "main").get("restartCount"), 0, "restartCount")


@conformance(id="kubelet-kill-adopts", rules=["MIRR-008", "LIFE-010"], needs=[STATUS, RESTART])
async def a_killed_kubelet_finds_its_pods_again(node: Node) -> None:
    """Killing and starting the kubelet changes nothing in the runtime, except that a container that
    ended meanwhile is restarted."""
    work = in_turn(exits(1, after_s=6), runs())
    await node.apply_static(pod("web", container("main"), container("other", work)))
    await node.wait_running("web", "main", "other")
    await node.kubelet.kill()
    since = node.now_s
    await node.run_for(7)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.container("web", "other").get("restartCount") == 1,
        within_s=limits.START_S,
        what="other restarted once",
    )
    writes = node.writes("web", since_s=since)
    expected_writes = ["CreateContainer other/1", "StartContainer other/1"]
    expect(node, writes == expected_writes, f"only {expected_writes}", writes)


@conformance(
    id="restart-count-kept",
    rules=["LIFE-132", "BACK-020.1", "LIFE-173"],
    needs=[STATUS, KILL, RESTART],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}},
    since="1.35",
)
async def the_restart_count_outlives_the_kubelet(node: Node) -> None:
    """A restarted kubelet shows the restart count of the one before, and counts on from there."""
    work = in_turn(exits(1), exits(1, after_s=1), runs())
    await node.apply_static(pod("web", container("main", work)))

    def restarts() -> int:
        return int(node.container("web", "main").get("restartCount", 0))

    await node.run_until(
        lambda: restarts() == 2 and node.running("web"),
        within_s=limits.START_S + limits.restart_after(1).high_s + 1 + 2 * limits.NOTICE_S,
        what="two restarts",
    )
    await node.kubelet.restart()
    await node.wait_running("web")
    expect_equal(node, restarts(), 2, "restartCount after the restart of the kubelet")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 4,
        within_s=limits.NOTICE_S + limits.restart_after(1).high_s,
        what="another start",
    )
    attempts = [c.attempt for c in node.calls("CreateContainer", container="main")]
    expect_equal(node, attempts, [0, 1, 2, 3], "attempts")
    await node.run_until(lambda: restarts() == 3, within_s=limits.NOTICE_S, what="three restarts")


@conformance(
    id="init-not-again",
    rules=["LIFE-120", "LIFE-121", "BACK-104.5"],
    needs=[STATUS],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}},
    since="1.35",
)
async def init_containers_that_succeeded_do_not_run_again(node: Node) -> None:
    """When all regular containers of a pod have crashed, they alone are started again, not the init
    containers."""
    init = [container(name, exits(0, after_s=0.5)) for name in ("first", "second")]
    crash = in_turn(exits(1), exits(1, after_s=1), runs())
    await node.apply_static(pod("web", container("a", crash), container("b", crash), init=init))
    await node.run_until(
        lambda: all(node.count("StartContainer", container=name) == 3 for name in ("a", "b")),
        within_s=limits.START_S + 4 + 3 * limits.restart_after(1).high_s,
        what="three starts of both",
    )
    await node.run_for(limits.NOTICE_S)
    start_counts = [node.count("StartContainer", container=name) for name in ("first", "second")]
    expect_equal(node, start_counts, [1, 1], "starts of the init containers")
    expect_equal(node, node.count("RunPodSandbox"), 1, "sandboxes")
