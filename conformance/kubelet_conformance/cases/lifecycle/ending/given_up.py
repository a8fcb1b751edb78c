"""The end of pods that are not at rest: that wait for a volume, have just begun to stop, or have
lost a sidecar."""

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.static.url import CONFIG, PERIOD_S, WEB
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, hook, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART = Feature.API, Feature.STATUS, Feature.RESTART


@conformance(
    id="deleted-while-it-waits", rules=["LIFE-031.10", "LIFE-070.9", "LIFE-036.4"], needs=[API]
)
async def a_pod_that_waits_for_a_volume_ends_at_once(node: Node) -> None:
    """A pod whose ConfigMap is missing has no sandbox, and an event says why; when it is deleted,
    it is gone soon, and not only when the wait for the volume is over."""
    volume = {"name": "settings", "configMap": {"name": "missing"}}
    mount = {"name": "settings", "mountPath": "/etc/settings"}
    main = container("main", volumeMounts=[mount])
    await node.api.create_pod(pod("web", main, volumes=[volume]))
    await node.run_until(
        lambda: node.events("FailedMount", pod="web"),
        within_s=limits.START_S + limits.NOTICE_S,
        what="an event that the volume cannot be mounted",
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=2 + limits.STOP_S + limits.HOUSEKEEPING_S,
        what="the pod is gone",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")


@conformance(id="end-is-announced", rules=["LIFE-071.1", "LIFE-013.1"], needs=[API], since="1.35")
async def the_status_knows_of_the_end_while_containers_stop(node: Node) -> None:
    """While the container of a deleted pod still stops, the status was made from the object with
    the deletion: its observedGeneration says so."""
    await node.api.create_pod(pod("web", container("main", ignores_term()), grace_s=12))
    await api_running(node, "web")
    before = (node.api.pod("web") or {})["status"].get("observedGeneration")
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.STOP_S, what="the stop"
    )
    await node.run_for(limits.NOTICE_S)
    web = node.api.pod("web") or {}
    generation = web["metadata"]["generation"]
    expect(node, generation > before, "a new generation of the object", generation)
    seen = web["status"].get("observedGeneration")
    expect_equal(node, seen, generation, "observedGeneration while main stops")


@conformance(
    id="forced-end-runs-the-hook", rules=["LIFE-033.3", "LIFE-201.1"], needs=[API], alone=True
)
async def a_pod_deleted_by_force_has_a_second(node: Node) -> None:
    """A pod that is deleted with a grace of 0 has one of 1 s: its preStop hook is run, waited for
    that long, and StopContainer follows with the least timeout."""
    main = container("main", hooks={"preStop": hook(takes_s=20)})
    await node.api.create_pod(pod("web", main, grace_s=25))
    await api_running(node, "web")
    await node.api.delete_pod("web", grace_s=0)
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=1 + limits.STOP_S,
        what="StopContainer",
    )
    expect_equal(node, node.count("ExecSync", container="main"), 1, "runs of the hook")
    (stop,) = node.calls("StopContainer", pod="web")
    waited_s = node.time_s(stop) - node.times_s("ExecSync", container="main")[0]
    late_s = 2 + node.slack_s
    expect(node, 0.9 <= waited_s <= late_s, "the stop 1 s after the hook began", f"{waited_s:.2f}")
    expect_equal(node, stop.request.timeout, limits.MIN_STOP_TIMEOUT_S, "timeout")


@conformance(id="dead-sidecar-at-the-end", rules=["LIFE-117.1", "LIFE-117.2"], needs=[API, RESTART])
async def a_dead_sidecar_does_not_start_again_when_the_pod_ends(node: Node) -> None:
    """Of a pod that a starting kubelet finds with its main container succeeded and one of two
    sidecars dead, the other sidecar is stopped, and the dead one is not started again."""
    init = [sidecar("brief", exits(1, after_s=6)), sidecar("calm")]
    main = container("main", exits(0, after_s=7))
    await node.api.create_pod(pod("job", main, init=init, restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.run_for(8)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=limits.START_S + limits.STOP_S + limits.STATUS_PASS_S,
        what="Succeeded",
    )
    expect_equal(node, node.count("StopContainer", container="calm"), 1, "stops of calm")
    expect_equal(node, node.count("CreateContainer", container="brief"), 1, "creations of brief")


@conformance(
    id="same-name-told",
    rules=["LIFE-002.6", "SRC-024"],
    needs=[API, *WEB],
    node_config=CONFIG,
)
async def a_second_pod_of_the_same_name_is_left_out_with_a_warning(node: Node) -> None:
    """Of two pods of the same name in a list one runs, and an event about the other says that it is
    left out."""
    twin = pod("web", metadata={"labels": {"v": "2"}})
    node.serve_pods(pod("web"), twin, pod("next"))
    await node.run_until(
        lambda: node.events("FailedValidation") and node.running("next"),
        within_s=PERIOD_S + limits.START_S + limits.NOTICE_S,
        what="a warning about the second one, and the next one runs",
    )
    (event, *_) = node.events("FailedValidation")
    expect_equal(node, event["type"], "Warning", "type of the event")
    expect(node, "from http due to" in event["message"], "the source in it", event["message"])
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes of web")


@conformance(
    id="same-uid-after-its-end", rules=["LIFE-039.1", "LIFE-036.2"], needs=[STATUS], alone=True
)
async def a_pod_that_was_removed_long_ago_runs_again(node: Node) -> None:
    """A static pod with a UID of its own that was removed, and has ended, runs again when its
    manifest comes back: nothing is remembered of it."""
    metadata = {"uid": "11111111-2222-3333-4444-666666666666"}
    plan = pod("web", container("main", runs()), metadata=metadata)
    await node.apply_static(plan)
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"), within_s=2 + limits.STOP_S
    )
    await node.run_for(3 * limits.HOUSEKEEPING_S)
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.START_S + limits.NOTICE_S,
        what="a second start",
    )


@conformance(
    id="failed-from-outside-while-away",
    rules=["LIFE-031.2", "LIFE-031.6", "LIFE-166.4"],
    needs=[API, RESTART],
)
async def a_pod_that_failed_at_the_api_meanwhile_is_stopped(node: Node) -> None:
    """A running pod that another client has marked as Failed while the kubelet was away is stopped
    by the next one, with its own grace period, and not started again."""
    await node.api.create_pod(pod("web", grace_s=7))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.api.patch_pod("web", {"status": {"phase": "Failed"}}, status=True)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.START_S + limits.STOP_S,
        what="web is stopped",
    )
    timeouts = [call.request.timeout for call in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [7], "timeouts of StopContainer")
    await node.run_for(limits.STATUS_PASS_S)
    expect_equal(node, node.api.phase("web"), "Failed", "phase")
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
