"""Static pods over time: edits, removals, and what happens while the kubelet is down."""

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART


def version(number: int, grace_s: int = 2, *, stop_takes_s: float = 0.0) -> PodPlan:
    """The pod `web` with a label, so that its content differs."""
    main = container("main", runs(stops(0, after_s=stop_takes_s)))
    return pod("web", main, grace_s=grace_s, metadata={"labels": {"version": str(number)}})


def sandbox_versions(node: Node) -> list[str]:
    """The labels of the sandboxes of `web`, in the order in which they were made."""
    return [c.request.config.labels.get("version", "") for c in node.calls("RunPodSandbox")]


@conformance(
    id="static-edit",
    rules=["MIRR-002", "MIRR-003", "SRC-031", "LIFE-034.1", "LIFE-034.2"],
    needs=[STATUS],
)
async def an_edited_manifest_replaces_the_pod(node: Node) -> None:
    """When a manifest is edited the old pod is stopped completely before the new one starts, from
    attempt 0."""
    await node.apply_static(version(1, stop_takes_s=1))
    await node.wait_running("web")
    await node.apply_static(version(2))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=1 + limits.STOP_S + limits.STATIC_SUCCESSOR_S,
        what="the second version starts",
    )
    expect_equal(node, sandbox_versions(node), ["1", "2"], "versions of the sandboxes")
    stopped = node.ended_s(node.calls("StopPodSandbox", pod="web")[0])
    new = node.times_s("RunPodSandbox", pod="web")[1]
    expect(node, new >= stopped, "RunPodSandbox after the old sandbox stopped", new - stopped)
    old, young = (node.calls("CreateContainer", pod="web")[i] for i in (0, 1))
    expect(node, old.uid != young.uid, "another UID", young.uid)
    expect_equal(node, young.attempt, 0, "attempt of the new pod's container")


async def started_times(node: Node, number: int, *, within_s: float) -> None:
    """Run until containers of `web` have been started that often."""
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == number,
        within_s=within_s,
        what=f"version {number} starts",
    )


@conformance(id="static-edit-spec", rules=["SRC-030", "SRC-031", "MIRR-002"], needs=[STATUS])
async def any_edit_of_the_spec_makes_another_pod(node: Node) -> None:
    """An edit that touches neither name, labels nor image of a pod still makes it another pod."""
    grace_s = 1
    plans = [
        pod("web", container("main", env=[{"name": "A", "value": "1"}]), grace_s=grace_s),
        pod("web", container("main", env=[{"name": "A", "value": "2"}]), grace_s=grace_s),
        pod("web", container("main", env=[{"name": "A", "value": "2"}]), grace_s=grace_s + 1),
    ]
    for number, plan in enumerate(plans, start=1):
        await node.apply_static(plan)
        within_s = limits.STOP_S + limits.STATIC_SUCCESSOR_S
        await started_times(node, number, within_s=within_s)
    uids = [c.uid for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, len(set(uids)), 3, "different UIDs")
    values = [c.request.config.envs for c in node.calls("CreateContainer", pod="web")]
    texts = [next(e.value for e in envs if e.key == "A") for envs in values]
    expect_equal(node, texts, [b"1", b"2", b"2"], "values of the variable A in the three pods")


@conformance(
    id="static-two-edits",
    rules=["MIRR-002.2", "MIRR-004.1", "MIRR-004.2", "LIFE-030", "LIFE-034.1", "LIFE-034.2"],
    needs=[STATUS],
)
async def of_several_edits_only_the_last_starts(node: Node) -> None:
    """Of several edits while the old pod stops only the last version ever reaches the runtime."""
    await node.apply_static(version(1, stop_takes_s=2, grace_s=5))
    await node.wait_running("web")
    for number in (2, 3, 4):
        await node.apply_static(version(number))
        await node.run_for(0.5)
    await node.run_until(
        lambda: "4" in sandbox_versions(node),
        within_s=2 + limits.STOP_S + limits.STATIC_SUCCESSOR_S,
        what="version 4 starts",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, sandbox_versions(node), ["1", "4"], "versions of the sandboxes")


@conformance(id="static-readded", rules=["MIRR-006", "LIFE-031.4"], needs=[STATUS])
async def a_manifest_put_back_while_its_pod_stops_runs_again(node: Node) -> None:
    """When a manifest is removed and put back while its pod stops, the pod ends and then runs again
    with the same UID."""
    plan = pod("web", container("main", runs(stops(0, after_s=2))), grace_s=6)
    await node.apply_static(plan)
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_for(1)
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=2 + limits.STOP_S + limits.START_S,
        what="the pod runs again",
    )
    first, second = (node.calls("CreateContainer", pod="web")[i] for i in (0, 1))
    expect_equal(node, second.uid, first.uid, "UID")
    stop_calls = node.calls("StopContainer", pod="web")
    expect(node, second.started_s >= stop_calls[0].ended_s, "the new start after the stop")


@conformance(id="static-rewritten-at-once", rules=["MIRR-006", "SRC-008"], needs=[STATUS])
async def a_manifest_written_again_at_once_runs_again(node: Node) -> None:
    """When a manifest is removed and written again with the same bytes within an instant, its pod
    is stopped and then runs again."""
    plan = pod("web", container("main", runs(stops(0, after_s=1))), grace_s=6)
    await node.apply_static(plan)
    await node.wait_running("web")
    await node.remove_static("web")
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.NOTICE_S + 1 + limits.STOP_S + limits.START_S,
        what="the pod runs again",
    )
    first, second = (node.calls("CreateContainer", pod="web")[i] for i in (0, 1))
    expect_equal(node, second.uid, first.uid, "UID")
    expect_equal(node, second.attempt, 1, "attempt")
    stop_calls = node.calls("StopContainer", pod="web")
    expect(node, second.started_s >= stop_calls[0].ended_s, "the new start after the stop")


@conformance(
    id="static-removed-while-down", rules=["MIRR-009", "LIFE-072"], needs=[STATUS, RESTART]
)
async def a_manifest_removed_while_the_kubelet_was_down(node: Node) -> None:
    """A restarted kubelet stops a pod whose manifest has been removed with the minimum grace
    period."""
    await node.apply_static(pod("web", container("main", ignores_term()), grace_s=25))
    await node.apply_static(pod("stays"))
    await node.wait_running("web")
    await node.wait_running("stays")
    await node.kubelet.stop()
    await node.remove_static("web")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.START_S + limits.HOUSEKEEPING_S + limits.STOP_S,
        what="StopPodSandbox of web",
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [2], "timeouts of StopContainer")
    expect_equal(node, node.count("StopContainer", pod="stays"), 0, "stops of the other pod")


@conformance(id="static-added-while-down", rules=["SRC-002"], needs=[STATUS, RESTART])
async def a_manifest_added_while_the_kubelet_was_down(node: Node) -> None:
    """A starting kubelet reads the manifest directory at once: the pod of a new manifest runs."""
    await node.kubelet.stop()
    await node.apply_static(pod("web"))
    await node.kubelet.start()
    await node.wait_running("web")


@conformance(id="static-leaves-pods", rules=["MIRR-035", "SRC-060"], needs=[STATUS])
async def a_removed_static_pod_leaves_the_list_of_pods(node: Node) -> None:
    """/pods lists static pods under the UID of their manifests, until the manifest is removed."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    uid = (node.pod("web") or {})["metadata"]["uid"]
    expect_equal(node, uid, node.calls("RunPodSandbox")[0].uid, "UID in /pods")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.pod("web") is None,
        within_s=limits.STOP_S + limits.HOUSEKEEPING_S,
        what="web left /pods",
    )


JOB = pod("job", container("main", exits(0)), restartPolicy="Never")


async def finished_job(node: Node) -> None:
    """Run a static pod whose container exits 0 once and for all, and wait for its end."""
    await node.apply_static(JOB)
    await node.run_until(
        lambda: node.phase("job") == "Succeeded" and node.count("StopPodSandbox", pod="job"),
        within_s=limits.START_S + limits.STOP_S,
        what="phase Succeeded and the sandbox stopped",
    )


@conformance(id="static-finished-stays", rules=["MIRR-007", "LIFE-206"], needs=[STATUS, RESTART])
async def a_finished_static_pod_is_found_finished(node: Node) -> None:
    """A restarted kubelet learns from the dead containers that a static pod has finished, and does
    not run it again."""
    await finished_job(node)
    before = node.count("CreateContainer")
    await node.kubelet.restart()
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=limits.START_S, what="Succeeded again"
    )
    await node.run_for(limits.NOTICE_S + limits.HOUSEKEEPING_S)
    expect_equal(node, node.count("CreateContainer"), before, "containers made")
    expect_equal(node, node.phase("job"), "Succeeded", "phase")


@conformance(id="static-finished-forgotten", rules=["MIRR-007.4"], needs=[STATUS, RESTART])
async def a_finished_static_pod_without_traces_runs_again(node: Node) -> None:
    """When the runtime has no trace of a finished static pod, a restarted kubelet runs it again."""
    await finished_job(node)
    await node.kubelet.stop()
    await node.runtime.forget("job")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StartContainer", pod="job") == 2,
        within_s=limits.START_S,
        what="a second run",
    )
    second = node.calls("RunPodSandbox", pod="job")[1]
    expect_equal(node, second.attempt, 0, "attempt of the new sandbox")


@conformance(id="static-finished-rewritten", rules=["MIRR-007"], needs=[STATUS])
async def a_finished_static_pod_written_again_at_once_stays_finished(node: Node) -> None:
    """When the manifest of a finished static pod is removed and written again at once, its last
    status is still known: it stays finished, even if all its containers have been removed."""
    await finished_job(node)
    await node.run_for(limits.STOP_S)
    await node.remove_static("job")
    await node.apply_static(JOB)
    await node.run_for(limits.NOTICE_S + limits.GC_PERIOD_S + limits.HOUSEKEEPING_S)
    expect_equal(node, node.count("CreateContainer"), 1, "containers made")
    expect_equal(node, node.phase("job"), "Succeeded", "phase")


@conformance(id="static-overdue-rewritten", rules=["MIRR-007"], needs=[STATUS])
async def a_static_pod_past_its_deadline_written_again(node: Node) -> None:
    """When the manifest of a static pod past its deadline is written again at once, the pod stays
    Failed; when it is written some seconds later, its time begins anew."""
    plan = pod("web", container("main", runs()), grace_s=2, activeDeadlineSeconds=3)

    async def failed_after(starts: int) -> None:
        await node.run_until(
            lambda: (
                node.count("StartContainer", pod="web") == starts and node.phase("web") == "Failed"
            ),
            within_s=2 * limits.START_S + 3 + limits.STOP_S,
            what=f"the pod has run {starts} times and failed",
        )
        await node.run_for(limits.STOP_S)

    await node.apply_static(plan)
    await failed_after(1)
    await node.remove_static("web")
    await node.apply_static(plan)
    await node.run_for(2 * limits.NOTICE_S)
    await failed_after(1)
    await node.remove_static("web")
    await node.run_for(limits.NOTICE_S + limits.HOUSEKEEPING_S)
    await node.apply_static(plan)
    await failed_after(2)


@conformance(
    id="static-half-started-rewritten",
    rules=["MIRR-007", "STAT-008", "STAT-010"],
    needs=[STATUS, Feature.FAULTS],
    node_config={"runtimeRequestTimeout": "5s"},
)
async def a_static_pod_that_ended_half_started_stays_as_it_ended(node: Node) -> None:
    """When a manifest with policy Never is written again after one container has ended and before
    the other was created, nothing more runs, and its status is that of its end."""
    plan = pod("web", container("a", exits(0)), container("b"), grace_s=2, restartPolicy="Never")
    with node.runtime.on("CreateContainer", container="b").hangs():
        await node.apply_static(plan)
        await node.run_until(lambda: node.count("CreateContainer", container="b"), within_s=10)
        await node.remove_static("web")
        await node.apply_static(plan)
        await node.run_for(5 + limits.STOP_S + limits.NOTICE_S)
    await node.run_for(limits.SYNC_ERROR_S + limits.GC_PERIOD_S)
    expect_equal(node, node.count("CreateContainer", container="b"), 1, "tries to make b")
    expect_equal(node, node.phase("web"), "Pending", "phase")
    statuses = (node.pod("web") or {})["status"]["containerStatuses"]
    codes = {c["name"]: (c["state"].get("terminated") or {}).get("exitCode") for c in statuses}
    expect_equal(node, codes, {"a": 0, "b": 137}, "exit codes")
