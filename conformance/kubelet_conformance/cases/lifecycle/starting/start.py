"""How a pod starts: sandbox, init containers, sidecars, regular containers, in that order."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import IMAGE, ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn
from kubelet_conformance.registry import Feature, conformance

STATUS, API, FAULTS = Feature.STATUS, Feature.API, Feature.FAULTS


@conformance(id="start-order", rules=["LIFE-130", "LIFE-131", "LIFE-131.1"], needs=[STATUS])
async def containers_start_one_after_the_other_in_spec_order(node: Node) -> None:
    """The sandbox comes first, then each container is created and started, in spec order."""
    await node.apply_static(pod("web", container("b"), container("a"), container("c")))
    await node.wait_running("web", "a", "b", "c")
    expected_writes = ["RunPodSandbox/0"]
    for name in ("b", "a", "c"):
        expected_writes += [f"CreateContainer {name}/0", f"StartContainer {name}/0"]
    expect_equal(node, node.writes("web"), expected_writes, "the changing calls of a start")


@conformance(id="start-waits-for-start", rules=["LIFE-131"], needs=[STATUS, FAULTS])
async def the_next_container_waits_for_the_start_of_the_one_before(node: Node) -> None:
    """A container is created only after StartContainer of the one before it has returned."""
    node.runtime.on("StartContainer", container="one").delays(1.5)
    await node.apply_static(pod("web", container("one"), container("two")))
    await node.wait_running("web", "one", "two")
    started = node.ended_s(node.calls("StartContainer", container="one")[0])
    created = node.times_s("CreateContainer", container="two")[0]
    expect(node, created >= started, "CreateContainer two after StartContainer one", created)


@conformance(id="start-labels", rules=["LIFE-133", "LIFE-136"], needs=[STATUS])
async def sandbox_and_containers_carry_the_pod_labels(node: Node) -> None:
    """Sandbox and containers carry name, namespace and UID of their pod as labels."""
    await node.apply_static(pod("web", metadata={"labels": {"app": "shop"}}))
    await node.wait_running("web")
    uid = (node.pod("web") or {})["metadata"]["uid"]
    own = {
        "io.kubernetes.pod.name": f"web-{node.name}",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": uid,
    }
    sandbox = node.calls("RunPodSandbox", pod="web")[0].request.config
    expect_equal(node, dict(sandbox.labels), {**own, "app": "shop"}, "labels of the sandbox")
    created = node.calls("CreateContainer", pod="web")[0].request.config
    expected_labels = {**own, "io.kubernetes.container.name": "main"}
    expect_equal(node, dict(created.labels), expected_labels, "labels of the container")
    expect_equal(node, created.log_path, "main/0.log", "log path")
    ids = [c.response.image.id for c in node.calls("ImageStatus") if c.response is not None]
    expect(node, created.image.image in ids, f"image = an ID of {ids}", created.image.image)
    expect_equal(node, created.image.user_specified_image, IMAGE, "image of the spec")
    expect(
        node,
        sandbox.log_directory.endswith(f"/default_web-{node.name}_{uid}"),
        "log_directory = <logs>/<namespace>_<name>_<uid>",
        sandbox.log_directory,
    )


@conformance(
    id="init-order",
    rules=["LIFE-121", "LIFE-113", "LIFE-120", "LIFE-113.1", "LIFE-113.2", "LIFE-120.4"],
    needs=[STATUS],
)
async def init_containers_run_one_by_one_before_the_others(node: Node) -> None:
    """Init containers run one at a time until they succeed; regular containers start after the
    last."""
    init = [container("first", exits(0, after_s=1)), container("second", exits(0))]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(
        lambda: node.running("web"), within_s=limits.START_S + 4, what="main runs after init"
    )
    expected_starts = [f"StartContainer {name}/0" for name in ("first", "second", "main")]
    starts = [w for w in node.writes("web") if w.startswith("StartContainer")]
    expect_equal(node, starts, expected_starts, "starts")
    first, second = (node.times_s("StartContainer", container=n)[0] for n in ("first", "second"))
    expect(node, second - first >= 1.0, "second starts after the end of first", second - first)


@conformance(id="init-status", rules=["LIFE-170", "LIFE-161", "LIFE-171.3"], needs=[STATUS])
async def a_pod_with_running_init_containers_is_pending(node: Node) -> None:
    """While an init container runs, the pod is Pending and its regular containers wait with
    PodInitializing."""
    init = [container("setup", exits(0, after_s=3))]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.wait_running("web", "setup")
    expect_equal(node, node.phase("web"), "Pending", "phase")
    waiting = node.container("web", "main").get("state", {}).get("waiting", {})
    expect_equal(node, waiting.get("reason"), "PodInitializing", "reason of main")
    expect_equal(node, node.condition("web", "Initialized").get("status"), "False", "Initialized")
    await node.run_until(lambda: node.running("web"), within_s=3 + limits.START_S)
    expect_equal(node, node.condition("web", "Initialized").get("status"), "True", "Initialized")
    expect_equal(node, node.phase("web"), "Running", "phase")
    expect_equal(node, node.container("web", "setup").get("ready"), True, "ready of setup")


@conformance(id="init-failure-never", rules=["LIFE-160", "LIFE-120", "BACK-104"], needs=[STATUS])
async def a_failed_init_container_fails_a_run_once_pod(node: Node) -> None:
    """A failed init container makes a pod with policy Never Failed; nothing else starts."""
    init = [container("setup", exits(4))]
    await node.apply_static(pod("job", container("main"), init=init, restartPolicy="Never"))
    await node.run_until(
        lambda: node.phase("job") == "Failed", within_s=limits.START_S, what="phase Failed"
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")
    expect_equal(node, node.count("CreateContainer", container="setup"), 1, "runs of setup")


@conformance(id="init-retried", rules=["LIFE-120", "LIFE-124", "BACK-104.1"], needs=[STATUS])
async def a_failed_init_container_is_retried_on_failure(node: Node) -> None:
    """With policy OnFailure a failed init container runs again until it succeeds, then the pod goes
    on."""
    init = [container("setup", in_turn(exits(1), exits(0)))]
    await node.apply_static(pod("job", container("main"), init=init, restartPolicy="OnFailure"))
    await node.run_until(lambda: node.running("job"), within_s=limits.START_S + 5)
    expect_order(
        node,
        node.writes("job"),
        ["StartContainer setup/0", "StartContainer setup/1", "StartContainer main/0"],
        "the failed init container starts again, then main",
    )


@conformance(id="sidecar-first", rules=["LIFE-120", "LIFE-121"], needs=[STATUS])
async def a_sidecar_starts_before_and_stays_beside_the_main_container(node: Node) -> None:
    """A sidecar starts in its place among the init containers, and its end is not waited for."""
    init = [container("pre", exits(0)), sidecar("side"), container("post", exits(0))]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(lambda: node.running("web", "side", "main"), within_s=8)
    starts = [w for w in node.writes("web") if w.startswith("StartContainer")]
    expected_starts = [f"StartContainer {name}/0" for name in ("pre", "side", "post", "main")]
    expect_equal(node, starts, expected_starts, "starts")


@conformance(id="sidecar-startup-probe", rules=["PROBE-035", "LIFE-120"], needs=[STATUS])
async def what_follows_a_sidecar_waits_for_its_startup_probe(node: Node) -> None:
    """The container after a sidecar with a startup probe starts only when that probe has
    succeeded."""
    probe = ExecProbe(from_s=3, failure_threshold=30)
    init = [sidecar("side", probes={"startup": probe})]
    await node.apply_static(pod("web", container("main"), init=init))
    await node.run_until(lambda: node.running("web", "side", "main"), within_s=10)
    side = node.times_s("StartContainer", container="side")[0]
    main = node.times_s("StartContainer", container="main")[0]
    expect(node, main - side >= 3.0, "main 3 s after side, or later", f"{main - side:.2f} s")


@conformance(id="pods-independent", rules=["LIFE-030", "LIFE-034"], needs=[STATUS, FAULTS])
async def a_hanging_pod_does_not_hold_up_another(node: Node) -> None:
    """While RunPodSandbox of one pod hangs another pod starts."""
    hanging = node.runtime.on("RunPodSandbox", pod="stuck")
    await node.apply_static(pod("stuck"))
    rule = hanging.hangs()
    await node.run_until(lambda: node.pod("stuck"), within_s=limits.START_S)
    await node.apply_static(pod("free"))
    await node.wait_running("free")
    rule.release()
    await node.run_for(limits.NOTICE_S)
