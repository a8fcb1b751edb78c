"""What the kubelet does when the runtime fails or an image cannot be used."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS = Feature.STATUS, Feature.FAULTS
RETRIED_S = limits.SYNC_ERROR_S + limits.START_S


def waiting_reason(node: Node, pod_name: str, name: str) -> str:
    """The reason of the container's waiting state; "" when it does not wait."""
    waiting = node.container(pod_name, name).get("state", {}).get("waiting") or {}
    return str(waiting.get("reason", ""))


@conformance(id="sandbox-retried", rules=["LIFE-130", "LIFE-037"], needs=[STATUS, FAULTS])
async def a_failed_sandbox_is_tried_again(node: Node) -> None:
    """When RunPodSandbox fails no container is created, and the sandbox is tried again within 15
    s."""
    node.runtime.on("RunPodSandbox", pod="web").fails("UNKNOWN", "no network", times=1)
    await node.apply_static(pod("web"))
    await node.run_until(lambda: node.running("web"), within_s=RETRIED_S, what="main runs")
    first, second = (node.calls("RunPodSandbox", pod="web")[i] for i in (0, 1))
    expect(node, first.error and second.succeeded, "RunPodSandbox fails once, then succeeds")
    expect_equal(node, node.count("CreateContainer", pod="web"), 1, "CreateContainer calls")
    pause = second.started_s - first.started_s
    expect(node, pause >= 9.9, "10 s between the calls of RunPodSandbox", f"{pause:.2f} s")


@conformance(id="create-error", rules=["LIFE-131", "LIFE-037"], needs=[STATUS, FAULTS])
async def a_container_that_cannot_be_created_waits_with_the_reason(node: Node) -> None:
    """A container whose CreateContainer fails waits with CreateContainerError, and is tried
    again."""
    rule = node.runtime.on("CreateContainer", container="main").fails("UNKNOWN", "no space")
    await node.apply_static(pod("web"))
    await node.run_until(
        lambda: waiting_reason(node, "web", "main") == "CreateContainerError",
        within_s=RETRIED_S,
        what="waiting with CreateContainerError",
    )
    expect_equal(node, node.phase("web"), "Pending", "phase")
    rule.remove()
    await node.run_until(lambda: node.running("web"), within_s=RETRIED_S, what="main runs")


@conformance(
    id="start-error", rules=["LIFE-131.2", "LIFE-131.3", "LIFE-114.3"], needs=[STATUS, FAULTS]
)
async def a_container_that_cannot_be_started_is_created_again(node: Node) -> None:
    """After a failed StartContainer the container is replaced by a new attempt; it is not
    stopped."""
    node.runtime.on("StartContainer", container="main").fails("UNKNOWN", "no such program", times=1)
    await node.apply_static(pod("web"))
    await node.run_until(lambda: node.running("web"), within_s=RETRIED_S, what="main runs")
    expect_order(
        node,
        node.writes("web"),
        ["CreateContainer main/0", "StartContainer main/0", "CreateContainer main/1"],
        "a new attempt after the failed start",
    )
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "StopContainer calls")


@conformance(id="one-cannot-start", rules=["LIFE-122", "LIFE-161.3"], needs=[STATUS, FAULTS])
async def a_container_that_cannot_start_does_not_hold_up_the_others(node: Node) -> None:
    """When one regular container cannot be created, the next ones start in the same sync."""
    node.runtime.on("CreateContainer", container="bad").fails("UNKNOWN", "no space")
    await node.apply_static(pod("web", container("bad"), container("good")))
    await node.run_until(lambda: node.running("web", "good"), within_s=limits.START_S)
    expect_equal(node, node.phase("web"), "Pending", "phase with a container never started")


@conformance(
    id="pull-error", rules=["LIFE-131", "BACK-205", "BACK-206", "LIFE-131.1"], needs=[STATUS]
)
async def a_missing_image_shows_as_pull_error(node: Node) -> None:
    """A container whose image cannot be pulled waits with ErrImagePull or ImagePullBackOff, and is
    not created."""
    bad = container("main", image=MISSING_IMAGE)
    await node.apply_static(pod("web", bad, container("other")))
    await node.run_until(
        lambda: waiting_reason(node, "web", "main") in ("ErrImagePull", "ImagePullBackOff"),
        within_s=RETRIED_S,
        what="waiting with ErrImagePull",
    )
    expect(node, node.running("web", "other"), "the other container runs")
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations")
    expect(node, node.count("PullImage") >= 1, "a try to pull")


@conformance(id="image-never", rules=["BACK-202"], needs=[STATUS])
async def policy_never_does_not_pull(node: Node) -> None:
    """With imagePullPolicy Never an absent image is not pulled: the container waits with
    ErrImageNeverPull."""
    never = container("main", image=MISSING_IMAGE, imagePullPolicy="Never")
    await node.apply_static(pod("web", never))
    await node.run_until(
        lambda: waiting_reason(node, "web", "main") == "ErrImageNeverPull",
        within_s=RETRIED_S,
        what="waiting with ErrImageNeverPull",
    )
    expect_equal(node, node.count("PullImage"), 0, "pulls")


@conformance(id="image-present", rules=["BACK-202"], needs=[STATUS])
async def a_present_image_is_not_pulled(node: Node) -> None:
    """With imagePullPolicy IfNotPresent a present image is looked up and not pulled."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    expect(node, node.count("ImageStatus") >= 1, "ImageStatus before the start")
    expect_equal(node, node.count("PullImage"), 0, "pulls")


@conformance(id="poststart-failure", rules=["LIFE-142"], needs=[STATUS])
async def a_failing_poststart_hook_kills_the_container(node: Node) -> None:
    """When the postStart hook fails the container is stopped; the next container waits for
    neither."""
    bad = container("main", hooks={"postStart": hook(exit_code=1)})
    await node.apply_static(pod("web", bad, container("next"), restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StopContainer", container="main"), within_s=limits.START_S
    )
    expect_order(
        node,
        node.writes("web"),
        ["StartContainer main/0", "ExecSync main/0", "StopContainer main/0"],
        "the hook, then the stop",
    )
    await node.run_until(lambda: node.running("web", "next"), within_s=limits.START_S)


@conformance(id="poststart-blocks", rules=["LIFE-142.1", "LIFE-131"], needs=[STATUS])
async def the_next_container_waits_for_the_poststart_hook(node: Node) -> None:
    """The next container is created after the postStart hook of the one before has ended."""
    slow = container("one", hooks={"postStart": hook(takes_s=2)})
    await node.apply_static(pod("web", slow, container("two")))
    await node.run_until(lambda: node.running("web", "one", "two"), within_s=2 + limits.START_S)
    ended = node.ended_s(node.calls("ExecSync", container="one")[0])
    created = node.times_s("CreateContainer", container="two")[0]
    expect(node, ended >= 0, "the hook has ended before two runs", ended)
    expect(node, created >= ended, "CreateContainer two after the hook", f"{created - ended:.2f} s")


@conformance(id="init-error", rules=["LIFE-121.1", "LIFE-120.4"], needs=[STATUS, FAULTS])
async def after_a_failed_init_container_only_the_first_is_tried(node: Node) -> None:
    """When the first init container could not be created, it alone is tried again; the second one
    is created when the first has succeeded, and runs once."""
    node.runtime.on("CreateContainer", container="first").fails("UNKNOWN", "no space", times=1)
    init = [container(name, exits(0, after_s=3)) for name in ("first", "second")]
    await node.apply_static(pod("web", init=init))
    await node.run_until(
        lambda: node.running("web"),
        within_s=2 * limits.START_S + limits.SYNC_ERROR_S + 2 * (3 + limits.NOTICE_S),
        what="main runs",
    )
    starts = [w for w in node.writes("web") if w.startswith("StartContainer")]
    order = ["StartContainer first/0", "StartContainer second/0", "StartContainer main/0"]
    expect_equal(node, starts, order, "starts")
    (first,), (second,) = (node.times_s("StartContainer", container=n) for n in ("first", "second"))
    expect(node, second - first >= 3, "second starts when first has ended", second - first)
