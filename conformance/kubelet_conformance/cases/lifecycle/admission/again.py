"""A restarted kubelet asks admission about its pods again: about those that run, by their age, and
not about those that have ended."""

from kubecri.v1 import api_pb2 as cri

from fakecri import stops
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART


@conformance(id="readmitted-by-age", rules=["LIFE-010.1", "LIFE-010.5"], needs=[API, RESTART])
async def after_a_restart_the_youngest_pod_does_not_fit_any_more(node: Node) -> None:
    """When the kubelet is started again with room for one pod, the older of two running pods stays,
    whatever their names are; the younger is rejected and stopped."""
    await node.api.create_pod(pod("zoe"))
    await api_running(node, "zoe")
    await node.run_for(2)  # creationTimestamps are whole seconds
    await node.api.create_pod(pod("adam", container("main", runs(stops(1)))))
    await api_running(node, "adam")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.restart(maxPods=1)
    await node.run_until(
        lambda: node.api.phase("adam") == "Failed" and node.count("StopPodSandbox", pod="adam"),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="adam is Failed and stopped",
    )
    await node.run_for(limits.NOTICE_S)
    pod_names = [event["involvedObject"]["name"] for event in node.events("OutOfpods")]
    expect_equal(node, pod_names, ["adam"], "pods that an event OutOfpods is about")
    expect_equal(node, node.api.phase("zoe"), "Running", "phase of zoe")
    expect_equal(node, node.count("StopContainer", pod="zoe"), 0, "stops of zoe")


@conformance(
    id="finished-takes-no-room",
    rules=["LIFE-010.3", "LIFE-203.2", "LIFE-206", "LIFE-031.2"],
    needs=[API, RESTART],
    node_config={"maxPods": 2},
)
async def a_finished_pod_takes_no_room_before_and_after_a_restart(node: Node) -> None:
    """A pod that has succeeded makes room for the next one. A restarted kubelet with less room does
    not ask about it again, also if nothing of it is left in the runtime: it is not stopped again,
    not rejected and not run again."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.run_for(2)  # creationTimestamps are whole seconds
    await node.api.create_pod(pod("job", container("main", exits(0)), restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded", within_s=limits.START_S + limits.STOP_S
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.create_pod(pod("late"))
    await api_running(node, "late")
    await node.kubelet.stop()
    container_id = node.calls("StartContainer", pod="job")[0].request.container_id
    request = cri.RemoveContainerRequest(container_id=container_id)
    await node.runtime.direct.call("RemoveContainer", request)
    before = node.writes("job")
    await node.kubelet.start(maxPods=1)
    await node.run_for(limits.START_S + limits.STATUS_PASS_S)
    after = [w for w in node.writes("job")[len(before) :] if not w.startswith("Remove")]
    expect_equal(node, after, [], "changing calls for job after the restart")
    status = (node.api.pod("job") or {})["status"]
    expect_equal(node, (status["phase"], status.get("reason")), ("Succeeded", None), "end of job")
    expect_equal(node, node.api.phase("web"), "Running", "phase of web")
    expect(node, node.count("StopContainer", pod="web") == 0, "web is not stopped")
