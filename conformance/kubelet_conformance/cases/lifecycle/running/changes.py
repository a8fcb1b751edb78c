"""Changes of a running pod: images, updates that overtake one another, probes and policies."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from fakecri import stops
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import (
    IMAGE,
    OTHER_IMAGE,
    ExecProbe,
    PodPlan,
    container,
    hook,
    pod,
    sidecar,
)
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, FAULTS = Feature.API, Feature.FAULTS
CREATE_TAKES_S = 4.0
"""Longer than relists are apart (PLEG-001)."""


async def set_image(node: Node, name: str, image: str, *, init: bool = False) -> None:
    """Change the image of the first container of the pod, or with `init` of its first init
    container."""
    field = "initContainers" if init else "containers"
    listed = [dict(c) for c in (node.api.pod(name) or {})["spec"][field]]
    listed[0]["image"] = image
    await node.api.patch_pod(name, {"spec": {field: listed}})


def stop_messages(node: Node, name: str) -> list[str]:
    """The messages of the events Killing about the pod, in order."""
    return [event["message"] for event in node.events("Killing", pod=name)]


@conformance(id="image-change-never", rules=["LIFE-115.1", "LIFE-115.6", "LIFE-116"], needs=[API])
async def a_changed_image_restarts_the_container_of_a_run_once_pod_too(node: Node) -> None:
    """A container whose image changes is replaced whatever the policy is, in a pod with Never too,
    and the pod goes on running."""
    await node.api.create_pod(pod("job", container("main"), restartPolicy="Never"))
    await api_running(node, "job")
    await set_image(node, "job", OTHER_IMAGE)
    await node.run_until(
        lambda: node.count("StartContainer", pod="job") == 2,
        within_s=limits.START_S,
        what="a second start of main",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.api.phase("job"), "Running", "phase")
    expected_messages = ["Container main definition changed, will be restarted"]
    expect_equal(node, stop_messages(node, "job"), expected_messages, "messages of Killing")


@conformance(
    id="image-change-slow",
    rules=["LIFE-115.1", "LIFE-116", "STAT-008.1"],
    needs=[API, FAULTS, Feature.STATUS],
)
async def a_container_that_is_being_replaced_has_not_ended(node: Node) -> None:
    """A container whose image changes stops with exit code 0, in a pod that then would be over. The
    new one takes its time to start; the pod goes on running all the while, and shows it."""
    plan = pod("job", container("main", runs(stops(0))), restartPolicy="OnFailure")
    await node.api.create_pod(plan)
    await api_running(node, "job")
    with node.runtime.on("CreateContainer").delays(CREATE_TAKES_S):
        await set_image(node, "job", OTHER_IMAGE)
        await node.run_until(
            lambda: node.count("CreateContainer", pod="job") == 2,
            within_s=limits.START_S,
            what="a second creation of main",
        )
        await node.run_for(CREATE_TAKES_S)
    await node.run_until(
        lambda: (
            "running" in (status := node.api.container("job", "main"))["state"]
            and status["restartCount"] == 1
        ),
        within_s=limits.START_S,
        what="the new container is shown as running",
    )
    phases = {r.body["status"].get("phase") for r in node.api.requests("PATCH", "/pods/job/status")}
    expect(node, phases <= {None, "Running"}, "no phase but Running", phases)


@conformance(
    id="image-change-sidecar",
    rules=["LIFE-120.6", "LIFE-121.3"],
    needs=[API],
    bugs=[
        KnownBug("126525", "A sidecar whose image changes goes on with the old one", fixed="1.32")
    ],
)
async def a_sidecar_with_a_new_image_is_replaced_alone(node: Node) -> None:
    """A sidecar whose image changes is stopped and started again; the regular container runs on."""
    await node.api.create_pod(pod("web", init=[sidecar("side")]))
    await api_running(node, "web")
    await set_image(node, "web", OTHER_IMAGE, init=True)
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=limits.START_S,
        what="a second start of side",
    )
    await node.run_for(limits.NOTICE_S)
    config = node.calls("CreateContainer", container="side")[1].request.config
    expect_equal(node, config.image.user_specified_image, OTHER_IMAGE, "image of side")
    expect_equal(node, node.count("StopContainer", container="main"), 0, "stops of main")
    expected_messages = ["Init container side definition changed"]
    expect_equal(node, stop_messages(node, "web"), expected_messages, "messages of Killing")


@conformance(id="update-overtaken", rules=["LIFE-030.2", "LIFE-030.1"], needs=[API])
async def an_update_that_was_taken_back_meanwhile_does_nothing(node: Node) -> None:
    """While a sync of the pod is held up by a hook, its image is changed and changed back: only the
    last version counts, so the container is left alone."""
    slow = container("slow", hooks={"postStart": hook(takes_s=4)})
    await node.api.create_pod(pod("web", container("main"), slow))
    await node.run_until(
        lambda: node.count("ExecSync", container="slow") and node.api.pod("web"),
        within_s=limits.START_S,
        what="the hook of slow runs",
    )
    await set_image(node, "web", OTHER_IMAGE)
    await node.run_for(1)
    await set_image(node, "web", IMAGE)
    await node.run_for(4 + 2 * limits.NOTICE_S)
    hook_s = node.ended_s(node.calls("ExecSync", container="slow")[0])
    expect(node, hook_s > 0, "the hook has ended", hook_s)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")


@conformance(
    id="grace-shortened",
    rules=["LIFE-033.1", "LIFE-033.4", "LIFE-071.3", "LIFE-002.3", "LIFE-013.1"],
    needs=[API, FAULTS],
)
async def a_second_deletion_can_only_shorten_the_grace(node: Node) -> None:
    """When a stop has failed, the next one has the grace period of the last deletion if that is
    shorter."""
    await node.api.create_pod(pod("web", grace_s=40))
    await api_running(node, "web")
    for method in ("StopContainer", "StopPodSandbox"):
        node.runtime.on(method, pod="web").fails("UNKNOWN", "device busy", times=1)
    await node.api.delete_pod("web", grace_s=30)
    await node.run_until(lambda: node.count("StopPodSandbox"), within_s=limits.STOP_S)
    await node.api.delete_pod("web", grace_s=7)
    await node.run_until(
        lambda: node.count("StopContainer") == 2,
        within_s=limits.SYNC_ERROR_S + limits.STOP_S,
        what="a second StopContainer",
    )
    timeouts = [c.request.timeout for c in node.calls("StopContainer")]
    expect_equal(node, timeouts, [30, 7], "timeouts of StopContainer")
    message = node.events("FailedKillPod", pod="web")[0]["message"]
    expect(node, message.startswith("error killing pod: "), "error killing pod: ...", message)


def failing(name: str, policy: str, main: str, **fields: Any) -> PodPlan:
    """A pod with that policy and two containers; one fails its liveness probe after 2 s."""
    probes = {"liveness": ExecProbe(until_s=2)}
    both = container(main, probes=probes, **fields), container("other")
    return pod(name, *both, restartPolicy=policy)


@conformance(
    id="probe-own-policy",
    rules=["LIFE-115.5", "LIFE-115.6", "LIFE-115.2"],
    needs=[API],
    since="1.35",
)
async def after_a_failed_probe_the_policy_of_the_container_decides(node: Node) -> None:
    """A container that a probe has killed starts again if its own policy says so, and if it has
    none, that of the pod."""
    await node.api.create_pod(failing("always", "Always", "once", restartPolicy="Never"))
    await node.api.create_pod(failing("never", "Never", "again", restartPolicy="OnFailure"))
    await node.api.create_pod(failing("job", "Never", "main"))
    await node.run_until(
        lambda: (
            node.count("StartContainer", container="again") == 2
            and node.count("StopContainer", container="once")
            and node.count("StopContainer", container="main")
        ),
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S,
        what="all three are stopped, and again starts again",
    )
    await node.run_for(2 * limits.NOTICE_S)
    names = ("once", "main")
    start_counts = [node.count("StartContainer", container=name) for name in names]
    expect_equal(node, start_counts, [1, 1], "starts of once and main")
    expected_messages = {
        "always": "Container once failed liveness probe",
        "never": "Container again failed liveness probe, will be restarted",
        "job": "Container main failed liveness probe",
    }
    messages = {name: stop_messages(node, name)[0] for name in expected_messages}
    expect_equal(node, messages, expected_messages, "messages of Killing")


@conformance(id="stop-without-effect", rules=["LIFE-071.5"], needs=[API, FAULTS])
async def a_stop_without_effect_is_noticed(node: Node) -> None:
    """When StopContainer and StopPodSandbox succeed and the container runs on all the same, the pod
    is not done: they are called again, and the pod stays at the API until then."""

    nothing = {
        "StopContainer": cri.StopContainerResponse,
        "StopPodSandbox": cri.StopPodSandboxResponse,
    }
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    for method, answer in nothing.items():
        node.runtime.on(method, pod="web").answers(answer(), times=1)
    await node.api.delete_pod("web", grace_s=3)
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=2 * limits.SYNC_ERROR_S + limits.STOP_S,
        what="the pod is gone from the API",
    )
    steps = ["StopContainer main/0", "StopPodSandbox/0"] * 2
    expect_order(node, node.writes("web"), steps, "both stops, twice")
