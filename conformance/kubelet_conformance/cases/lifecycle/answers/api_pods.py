"""Pods from the API server: deletion, terminal phases, and changes in place."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS


async def api_running(node: Node, name: str) -> None:
    """Run until the API shows the pod as Running."""
    await node.run_until(
        lambda: node.api.phase(name) == "Running",
        within_s=limits.START_S,
        what=f"pod {name} Running at the API",
    )


@conformance(
    id="api-pod-runs",
    rules=["LIFE-189", "STAT-020.1", "LIFE-184", "LIFE-189.1", "LIFE-070.3"],
    needs=[API],
)
async def an_api_pod_runs_and_its_status_is_written(node: Node) -> None:
    """A pod that is bound to the node starts, and its status appears at the API."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    status = (node.api.pod("web") or {})["status"]
    ready = {c["type"]: c["status"] for c in status["conditions"]}
    expected = dict.fromkeys(["Initialized", "Ready", "ContainersReady", "PodScheduled"], "True")
    expect(node, expected.items() <= ready.items(), f"conditions {expected}", ready)
    row = node.api.container("web", "main")
    expect(node, "running" in row["state"] and row["ready"], "main runs and is ready", row)


@conformance(
    id="api-delete",
    rules=[
        "LIFE-200",
        "STAT-030",
        "STAT-007.2",
        "SRC-066.1",
        "LIFE-002.3",
        "LIFE-031.6",
        "LIFE-200.1",
        "LIFE-200.2",
        "LIFE-036.2",
        "LIFE-001",
    ],
    needs=[API],
)
async def a_deleted_pod_is_stopped_then_removed_from_the_api(node: Node) -> None:
    """A deleted pod gets StopContainer with the deletion's grace period, then a terminal phase, and
    then it is removed from the API, with grace 0 and its UID as precondition."""
    await node.api.create_pod(pod("web", container("main", runs(stops(0, after_s=1))), grace_s=9))
    await api_running(node, "web")
    uid = (node.api.pod("web") or {})["metadata"]["uid"]
    await node.api.delete_pod("web", grace_s=5)
    deletion_body = node.api.requests("DELETE", "/pods/web$")[0].body
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=1 + limits.STOP_S + 2, what="pod removed"
    )
    stop_calls = node.calls("StopContainer", pod="web")
    expect_equal(node, [c.request.timeout for c in stop_calls], [5], "timeouts of StopContainer")
    sandbox = node.calls("StopPodSandbox", pod="web")
    expect(node, sandbox, "StopPodSandbox before the pod is removed")

    def removals() -> list[Any]:
        return [r for r in node.api.requests("DELETE", "/pods/web$") if r.body != deletion_body]

    await node.run_until(removals, within_s=limits.NOTICE_S, what="the answer to a DELETE")
    (removal,) = removals()
    fields = (removal.body.get("gracePeriodSeconds"), removal.body["preconditions"].get("uid"))
    expect_equal(node, fields, (0, uid), "grace period and UID in the kubelet's DELETE")
    patches = [r for r in node.api.requests("PATCH", "/pods/web/status") if r.seq < removal.seq]
    phases = [r.body["status"].get("phase") for r in patches]
    expect(node, {"Succeeded", "Failed"} & set(phases), "a terminal phase first", phases)


@conformance(
    id="api-delete-stubborn",
    rules=["LIFE-200", "LIFE-190", "STAT-022.6", "LIFE-189.3"],
    needs=[API],
)
async def a_pod_stays_at_the_api_until_its_containers_are_gone(node: Node) -> None:
    """While a container of a deleted pod ignores SIGTERM, the pod stays at the API and its phase is
    Running."""
    await node.api.create_pod(pod("web", container("main", ignores_term())))
    await api_running(node, "web")
    await node.api.delete_pod("web", grace_s=4)
    await node.run_for(2.5)
    expect_equal(node, node.api.phase("web"), "Running", "phase during the grace")
    await node.run_until(lambda: node.api.pod("web") is None, within_s=4 + limits.STOP_S)
    bodies = [r.body for r in node.api.requests("PATCH", "/pods/web/status")]
    expect(node, all(b.get("status") for b in bodies), "a difference in every patch", bodies)


@conformance(
    id="api-image-change", rules=["BACK-019", "LIFE-115", "LIFE-116", "LIFE-013.1"], needs=[API]
)
async def a_changed_image_restarts_the_container(node: Node) -> None:
    """When the spec names a new image, the container is stopped and one with that image is started,
    without a delay."""
    await node.api.create_pod(pod("web", container("main"), container("other")))
    await api_running(node, "web")
    changed = [dict((node.api.pod("web") or {})["spec"]["containers"][i]) for i in (0, 1)]
    changed[0]["image"] = OTHER_IMAGE
    await node.api.patch_pod("web", {"spec": {"containers": changed}})
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.START_S,
        what="a second start of main",
    )
    created = node.calls("CreateContainer", container="main")[1].request.config
    expect_equal(node, created.image.user_specified_image, OTHER_IMAGE, "image")
    expect_equal(node, node.count("StopContainer", container="other"), 0, "stops of other")
    expect_equal(node, node.count("RunPodSandbox"), 1, "sandboxes")


@conformance(
    id="active-deadline",
    rules=["LIFE-204.1", "LIFE-204.2", "LIFE-204.3", "LIFE-004.2", "LIFE-013.4"],
    needs=[API],
)
async def a_pod_past_its_active_deadline_fails(node: Node) -> None:
    """After activeDeadlineSeconds the pod is stopped and Failed with reason DeadlineExceeded; the
    time counts from the start of the pod, not from that of its newest container."""
    work = in_turn(exits(1, after_s=9), runs(stops(1)))
    created_s = node.now_s
    job = pod("job", container("main", work), grace_s=8, activeDeadlineSeconds=11)
    await node.api.create_pod(job)
    await api_running(node, "job")
    await node.run_until(
        lambda: node.api.phase("job") == "Failed", within_s=11 + 3 + limits.STOP_S, what="Failed"
    )
    status = (node.api.pod("job") or {})["status"]
    expect_equal(node, status.get("reason"), "DeadlineExceeded", "reason")
    await node.events_arrive()
    text = "Pod was active on the node longer than the specified deadline"
    told = {(e["type"], e["message"]) for e in node.events("DeadlineExceeded", pod="job")}
    expect_equal(node, told, {("Normal", text)}, "events DeadlineExceeded")
    steps = ["StartContainer main/1", "StopContainer main/1", "StopPodSandbox/0"]
    expect_order(node, node.writes("job"), steps, "a restart, then the stop")
    waited_s = node.times_s("StopContainer", pod="job")[0] - created_s
    # startTime is cut to whole seconds (STAT-006).
    late_s = 11 + limits.NOTICE_S + node.slack_s
    expect(
        node, 10 <= waited_s <= late_s, "StopContainer 11 s after the start", f"{waited_s:.1f} s"
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="job")]
    expect_equal(node, timeouts, [8], "timeout of StopContainer: the grace of the pod")


@conformance(id="active-deadline-success", rules=["LIFE-204", "LIFE-166"], needs=[API])
async def a_pod_past_its_active_deadline_fails_even_if_its_containers_succeed(node: Node) -> None:
    """A pod past its deadline is Failed even if all its containers exit 0 on SIGTERM, whatever its
    restartPolicy."""
    policies = ("Always", "OnFailure", "Never")
    for policy in policies:
        job = pod(policy.lower(), restartPolicy=policy, activeDeadlineSeconds=4)
        await node.api.create_pod(job)
    for policy in policies:
        await api_running(node, policy.lower())
    await node.run_until(
        lambda: all(node.api.phase(p.lower()) in ("Succeeded", "Failed") for p in policies),
        within_s=4 + 3 + limits.STOP_S,
        what="the end of all three pods",
    )
    await node.run_for(limits.HOUSEKEEPING_S)  # the last status of the pod may come behind it
    for policy in policies:
        status = (node.api.pod(policy.lower()) or {})["status"]
        status_fields = (status["phase"], status.get("reason"), status.get("message"))
        late = "Pod was active on the node longer than the specified deadline"
        expect_equal(node, status_fields, ("Failed", "DeadlineExceeded", late), f"end of {policy}")
        ended = node.api.container(policy.lower(), "main")["state"].get("terminated", {})
        expect_equal(node, ended.get("exitCode"), 0, f"exit code in {policy}")


@conformance(
    id="terminal-stays",
    rules=["STAT-029.2", "STAT-030.1", "LIFE-206"],
    needs=[API, Feature.RESTART],
)
async def a_finished_pod_stays_finished_over_a_kubelet_restart(node: Node) -> None:
    """A Succeeded pod is never started again, not by a restarted kubelet either."""
    await node.api.create_pod(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded", within_s=limits.START_S + limits.STOP_S
    )
    await node.kubelet.restart()
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    expect_equal(node, node.count("CreateContainer", pod="job"), 1, "containers made")
    expect_equal(node, node.api.phase("job"), "Succeeded", "phase")


@conformance(id="phase-from-outside", rules=["STAT-029.2", "LIFE-166"], needs=[API])
async def a_terminal_phase_at_the_api_is_final(node: Node) -> None:
    """A running pod that another client of the API marks as Failed is stopped, and stays Failed
    although its container exits 0."""
    plan = pod("web", container("main", runs(stops(0))), restartPolicy="OnFailure")
    await node.api.create_pod(plan)
    await api_running(node, "web")
    await node.api.patch_pod("web", {"status": {"phase": "Failed"}}, status=True)
    await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})  # leads to a sync
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.STOP_S,
        what="the pod is stopped",
    )
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "main").get("state", {}),
        within_s=limits.STATUS_PASS_S,
        what="the end of main at the API",
    )
    await node.run_for(limits.STATUS_PASS_S + 1)
    expect_equal(node, node.api.phase("web"), "Failed", "phase")
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")


@conformance(
    id="deleted-while-down",
    rules=["LIFE-202", "LIFE-200", "SRC-063", "LIFE-202.1"],
    needs=[API, Feature.RESTART],
)
async def a_pod_deleted_while_the_kubelet_was_down_is_stopped_with_its_grace(node: Node) -> None:
    """A restarted kubelet gives a pod that is being deleted the full grace period of its
    deletion."""
    await node.api.create_pod(pod("web", grace_s=9))
    await api_running(node, "web")
    await node.kubelet.stop()
    await node.api.delete_pod("web", grace_s=4)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=limits.START_S + limits.STOP_S
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [4], "timeouts of StopContainer")


@conformance(id="start-events", rules=["LIFE-240", "LIFE-241"], needs=[API], level=Level.SHOULD)
async def a_start_and_a_stop_tell_their_story_in_events(node: Node) -> None:
    """The start and the stop of a container are reported by the events Pulled, Created, Started and
    Killing."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.api.delete_pod("web", grace_s=2)
    await node.run_until(lambda: node.events("Killing", pod="web"), within_s=limits.STOP_S)
    reasons = [e["reason"] for e in node.events(pod="web")]
    expect_order(node, reasons, ["Pulled", "Created", "Started", "Killing"], "reasons of events")
    field = node.events("Started", pod="web")[0]["involvedObject"].get("fieldPath")
    expect_equal(node, field, "spec.containers{main}", "fieldPath")
