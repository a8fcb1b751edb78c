"""What the kubelet makes of answers that are incomplete, and of the codes of errors."""

from collections.abc import Callable
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.cri.common import started, waiting
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, KILL = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.OUTSIDE_KILL


def without(*path: str) -> Callable[[Any], None]:
    """A change of an answer: the field at that path is unset."""

    def change(answer: Any) -> None:
        for name in path[:-1]:
            answer = getattr(answer, name)
        answer.ClearField(path[-1])

    return change


@conformance(
    id="cri-sandbox-status-incomplete", rules=["CRI-008.1", "CRI-008.6"], needs=[STATUS, FAULTS]
)
async def a_sandbox_status_that_lacks_something_is_not_believed(node: Node) -> None:
    """While the status of a sandbox has no UID, no name, no namespace, no id or no creation time,
    no container is created in it; afterwards the pod goes on in the same sandbox."""
    lacking = {
        "no-uid": without("status", "metadata", "uid"),
        "no-name": without("status", "metadata", "name"),
        "no-namespace": without("status", "metadata", "namespace"),
        "no-id": without("status", "id"),
        "no-time": without("status", "created_at"),
    }
    rules = [
        node.runtime.on("PodSandboxStatus", pod=name).changes_answer(change)
        for name, change in lacking.items()
    ]
    for name in lacking:
        await node.apply_static(pod(name))
    await node.run_until(
        lambda: all(node.count("PodSandboxStatus", pod=name) for name in lacking),
        within_s=limits.START_S,
        what="all sandboxes are looked at",
    )
    await node.run_for(limits.NOTICE_S)
    with_container = [name for name in lacking if node.count("CreateContainer", pod=name)]
    expect_equal(node, with_container, [], "pods with a container in such a sandbox")
    for rule in rules:
        rule.remove()
    await node.run_until(
        lambda: all(node.running(name) for name in lacking),
        within_s=2 * limits.SYNC_ERROR_S + limits.START_S,
        what="all run once the answers are whole",
    )
    sandboxes = {name: node.count("RunPodSandbox", pod=name) for name in lacking}
    expect_equal(node, set(sandboxes.values()), {1}, "sandboxes of each pod")


@conformance(
    id="cri-container-status-incomplete", rules=["CRI-008.2", "CRI-008.6"], needs=[STATUS, FAULTS]
)
async def a_container_status_that_lacks_something_is_not_believed(node: Node) -> None:
    """While the status of a container has no id, name, creation time, image or image_ref, its pod
    is not shown as running, and no second container is created; afterwards it is."""
    lacking = {
        "no-id": without("status", "id"),
        "no-name": without("status", "metadata", "name"),
        "no-time": without("status", "created_at"),
        "no-image": without("status", "image", "image"),
        "no-image-ref": without("status", "image_ref"),
    }
    rules = [
        node.runtime.on("ContainerStatus", pod=name).changes_answer(change)
        for name, change in lacking.items()
    ]
    for name in lacking:
        await node.apply_static(pod(name))
    await started(node, *lacking)
    await node.run_for(limits.NOTICE_S)
    running = [name for name in lacking if node.running(name)]
    expect_equal(node, running, [], "pods that are shown as running")
    for rule in rules:
        rule.remove()
    await node.run_until(
        lambda: all(node.running(name) for name in lacking),
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="all are shown as running once the answers are whole",
    )
    creations = {name: node.count("CreateContainer", pod=name) for name in lacking}
    expect_equal(node, set(creations.values()), {1}, "containers of each pod")


@conformance(
    id="cri-answers-without-ids",
    rules=["CRI-008.4", "CRI-008.6", "CRI-082.3"],
    needs=[API, STATUS, FAULTS],
    alone=True,
)
async def an_answer_without_an_id_is_an_error(node: Node) -> None:
    """RunPodSandbox or CreateContainer without an id in the answer has failed, with an event or a
    waiting reason; no later call names an empty id, and the pods run in the end."""
    node.runtime.on("RunPodSandbox", pod="box").changes_answer(without("pod_sandbox_id"), times=1)
    node.runtime.on("CreateContainer", pod="web").changes_answer(without("container_id"), times=1)
    await node.apply_static(pod("box"))
    await node.apply_static(pod("web"))
    await node.run_until(
        lambda: node.running("box") and node.running("web"),
        within_s=2 * limits.SYNC_ERROR_S + limits.START_S,
        what="both pods run in the end",
    )
    await node.run_until(
        lambda: node.events("FailedCreatePodSandBox", pod="box"), within_s=5, what="an event"
    )
    await node.run_until(lambda: node.events("Failed", pod="web"), within_s=5, what="an event")
    named = [c for c in node.calls("PodSandboxStatus") if not c.request.pod_sandbox_id]
    expect_equal(node, len(named), 0, "calls for a sandbox without an id")
    named = [c for c in node.calls("StartContainer") if not c.request.container_id]
    expect_equal(node, len(named), 0, "starts of a container without an id")
    named = [c for c in node.calls("CreateContainer") if not c.request.pod_sandbox_id]
    expect_equal(node, len(named), 0, "containers in a sandbox without an id")


@conformance(
    id="cri-image-answers-incomplete",
    rules=["CRI-008.3", "CRI-008.4"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def an_image_without_id_or_size_is_an_error(node: Node) -> None:
    """An image whose status has no size or no id keeps its container waiting with
    ImageInspectError; a pull that answers no reference with ErrImagePull. Nothing is created."""
    for name, field in (("no-size", "size"), ("no-id", "id")):
        with node.runtime.on("ImageStatus").changes_answer(without("image", field)):
            await node.apply_static(pod(name))
            await waiting(node, name, "main", "ImageInspectError")
            expect_equal(node, node.count("CreateContainer", pod=name), 0, f"creations of {name}")
    always = container("main", imagePullPolicy="Always", image=IMAGE)
    node.runtime.on("PullImage").answers(cri.PullImageResponse())
    await node.apply_static(pod("no-ref", always))
    await waiting(node, "no-ref", "main", "ErrImagePull")
    expect_equal(node, node.count("CreateContainer", pod="no-ref"), 0, "creations of no-ref")


@conformance(
    id="cri-status-with-one-condition",
    rules=["CRI-008.5", "CRI-130.1"],
    needs=[API, STATUS, FAULTS],
    alone=True,
)
async def a_status_with_one_condition_is_no_answer(node: Node) -> None:
    """A Status with one condition only counts as a failed call: nothing is known of the other one,
    so the last good answer holds for a while, and a new pod starts."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")

    def first_only(answer: Any) -> None:
        del answer.status.conditions[1:]

    calls_before = node.count("Status")
    with node.runtime.on("Status").changes_answer(first_only):
        await node.run_until(
            lambda: node.count("Status") > calls_before + 1, within_s=12, what="such answers"
        )
        await node.apply_static(pod("later"))
        await node.wait_running("later")


@conformance(
    id="cri-vanished-objects",
    rules=["CRI-009.1", "CRI-086.1", "CRI-082.3"],
    needs=[STATUS, FAULTS, KILL],
    alone=True,
)
async def what_vanishes_between_list_and_status_is_left_out(node: Node) -> None:
    """A sandbox and a container that are listed and whose status is NOT_FOUND count as gone: the
    rest of their pod is handled as usual."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2 and node.running("web"),
        within_s=limits.STOP_S + 2 * limits.SYNC_ERROR_S,
        what="main runs in a second sandbox",
    )
    old = node.calls("RunPodSandbox", pod="web")[0].response.pod_sandbox_id
    runtime = node.runtime.direct
    boxes = await runtime.call("ListPodSandbox", cri.ListPodSandboxRequest())
    rows = await runtime.call("ListContainers", cri.ListContainersRequest())
    old_rows = [row for row in boxes.items if row.id == old]
    with_it = [row for row in rows.containers if row.pod_sandbox_id == old]
    expect_equal(node, (len(old_rows), len(with_it)), (1, 1), "old sandboxes and containers")
    node.runtime.on("ListPodSandbox").changes_answer(lambda answer: answer.items.extend(old_rows))
    node.runtime.on("ListContainers").changes_answer(lambda a: a.containers.extend(with_it))
    await runtime.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=old))
    await node.run_for(limits.NOTICE_S)
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=limits.NOTICE_S + 2 * limits.SYNC_ERROR_S,
        what="main is replaced although an older one is not found",
    )


@conformance(id="cri-unreadable-container", rules=["CRI-086.2"], needs=[STATUS, FAULTS, KILL])
async def a_container_whose_status_cannot_be_read_is_not_gone(node: Node) -> None:
    """While the status of a container fails for another reason, nothing is started in its pod, not
    even what has ended; afterwards only that is replaced."""
    await node.apply_static(pod("web", container("silent"), container("main")))
    await node.wait_running("web", "silent", "main")
    await node.run_for(limits.NOTICE_S)
    before = node.writes("web")
    with node.runtime.on("ContainerStatus", container="silent").fails("UNKNOWN", "try later"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_for(2 * limits.NOTICE_S)
        expect_equal(node, node.writes("web"), before, "changing calls while a status fails")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="main is replaced",
    )
    expect_equal(node, node.count("CreateContainer", container="silent"), 1, "creations of silent")


@conformance(id="cri-unreadable-sandbox", rules=["CRI-086.2"], needs=[STATUS, FAULTS, KILL])
async def a_sandbox_whose_status_cannot_be_read_is_not_gone(node: Node) -> None:
    """While the status of a sandbox fails no other sandbox is made, and none is stopped."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    before = node.writes("web")
    with node.runtime.on("PodSandboxStatus", pod="web").fails("UNKNOWN", "try later"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_for(2 * limits.NOTICE_S)
        expect_equal(node, node.writes("web"), before, "changing calls while a status fails")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.SYNC_ERROR_S + limits.NOTICE_S,
        what="main is replaced",
    )


@conformance(
    id="cri-stops-of-gone-things", rules=["CRI-009.2", "CRI-023"], needs=[API, STATUS, FAULTS]
)
async def what_is_not_found_counts_as_stopped(node: Node) -> None:
    """NOT_FOUND from StopContainer and StopPodSandbox is success: the pod ends at once and is gone
    from the API."""
    await node.api.run_pods(pod("web"))
    for method in ("StopContainer", "StopPodSandbox"):
        node.runtime.on(method, pod="web").fails("NOT_FOUND", "no such one", times=1)
    await node.api.delete_pod("web")
    await node.run_until(lambda: node.count("StopPodSandbox", pod="web"), within_s=limits.STOP_S)
    first = node.calls("StopContainer", pod="web")[0]
    expect(node, first.error, "the first StopContainer is not found", first.error)
    again = node.count("StopContainer", pod="web")
    expect_equal(node, again, 1, "StopContainer calls before the sandbox is stopped")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=2 * limits.SYNC_ERROR_S + limits.STATUS_PASS_S,
        what="web is gone from the API",
    )
    await node.run_for(1)
    expect_equal(node, node.events("FailedKillPod"), [], "events of stops that failed")


@conformance(
    id="cri-stop-fails-otherwise",
    rules=["CRI-009.2", "LIFE-071"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def any_other_error_of_a_stop_is_a_failed_stop(node: Node) -> None:
    """A StopPodSandbox that fails for another reason is repeated, and the pod does not count as
    ended before."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    rule = node.runtime.on("StopPodSandbox", pod="web").fails("UNKNOWN", "network is busy")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web") >= 2,
        within_s=limits.STOP_S + limits.SYNC_ERROR_S,
        what="a second StopPodSandbox",
    )
    rule.remove()
    stops_before = node.count("StopPodSandbox", pod="web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web") > stops_before,
        within_s=2 * limits.SYNC_ERROR_S,
        what="the stop that succeeds",
    )
    last = node.calls("StopPodSandbox", pod="web")[-1]
    expect_equal(node, last.error, None, "error of the last StopPodSandbox")
