"""Ephemeral containers: added to a running pod, never restarted, stopped with the pod."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
RESYNC_S = 90.0 + limits.NOTICE_S  # LIFE-037: 60 s times [1, 1.5)
PID_TARGET, PID_CONTAINER, PID_POD = 3, 1, 0  # NamespaceMode


@conformance(id="ephemeral-starts", rules=["LIFE-112", "LIFE-174"], needs=[API])
async def an_ephemeral_container_joins_the_running_pod(node: Node) -> None:
    """An ephemeral container starts in the pod's sandbox and has a status; the other containers
    keep running."""
    web = pod("web")
    await node.api.create_pod(web)
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.debug(web, container("debug"))
    await node.run_until(
        lambda: "running" in node.api.container("web", "debug").get("state", {}),
        within_s=limits.START_S,
        what="debug runs",
    )
    row = node.api.container("web", "debug")
    expect_equal(node, (row.get("started"), row["ready"]), (None, False), "started, ready of debug")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(
    id="ephemeral-once", rules=["LIFE-112", "BACK-016", "LIFE-162", "LIFE-174.2"], needs=[API]
)
async def an_ephemeral_container_is_never_restarted(node: Node) -> None:
    """An ephemeral container that fails is not restarted, and the pod stays Running and ready."""
    web = pod("web")
    await node.api.create_pod(web)
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.debug(web, container("debug", exits(1)))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "debug").get("state", {}),
        within_s=limits.START_S + limits.NOTICE_S,
        what="debug has ended",
    )
    await node.run_for(2 * limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="debug"), 1, "starts of debug")
    status = (node.api.pod("web") or {})["status"]
    ready = {c["type"]: c["status"] for c in status["conditions"]}
    expect_equal(node, (status["phase"], ready["Ready"]), ("Running", "True"), "phase and Ready")


@conformance(
    id="ephemeral-removed", rules=["LIFE-112.3", "BACK-016.1"], needs=[API, Feature.STATUS]
)
async def an_ephemeral_container_that_was_removed_starts_anew(node: Node) -> None:
    """An ephemeral container that has ended, and that somebody removes from the runtime, starts
    once more: only an instance in the runtime keeps the kubelet from it."""
    web = pod("web")
    await node.api.create_pod(web)
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.debug(web, container("debug", exits(0, after_s=1)))
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "debug").get("state", {}),
        within_s=limits.START_S + limits.NOTICE_S,
        what="debug has ended",
    )
    await node.runtime.forget("web", "debug")
    await node.run_until(
        lambda: node.count("StartContainer", container="debug") == 2,
        within_s=RESYNC_S,
        what="debug starts once more",
    )


@conformance(id="ephemeral-target", rules=["LIFE-134"], needs=[API])
async def an_ephemeral_container_can_share_the_processes_of_another(node: Node) -> None:
    """An ephemeral container with a target is created in the target's PID namespace, without one in
    its own."""
    web = pod("web")
    await node.api.create_pod(web)
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.debug(web, container("debug"), target="main")
    await node.run_until(
        lambda: node.count("CreateContainer", container="debug"), within_s=limits.START_S
    )
    (creation,) = node.calls("CreateContainer", container="debug")
    spaces = creation.request.config.linux.security_context.namespace_options
    (main,) = node.calls("CreateContainer", container="main")
    expect_equal(node, spaces.pid, PID_TARGET, "pid namespace of debug")
    expect_equal(node, spaces.target_id, main.response.container_id, "target_id (of main)")
    own = main.request.config.linux.security_context.namespace_options
    expect_equal(node, (own.pid, own.target_id), (PID_CONTAINER, ""), "pid namespace of main")


@conformance(id="ephemeral-target-shared", rules=["LIFE-134.3"], needs=[API])
async def a_target_in_a_shared_namespace_changes_nothing(node: Node) -> None:
    """In a pod that shares one PID namespace an ephemeral container with a target is created in
    that of the pod, without a target ID."""
    web = pod("web", shareProcessNamespace=True)
    await node.api.create_pod(web)
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.api.debug(web, container("debug"), target="main")
    await node.run_until(
        lambda: node.count("CreateContainer", container="debug"), within_s=limits.START_S
    )
    (creation,) = node.calls("CreateContainer", container="debug")
    spaces = creation.request.config.linux.security_context.namespace_options
    namespace = (spaces.pid, spaces.target_id)
    expect_equal(node, namespace, (PID_POD, ""), "pid namespace and target of debug")


@conformance(id="ephemeral-target-missing", rules=["LIFE-134.4", "LIFE-134.3"], needs=[API])
async def an_ephemeral_container_does_not_start_before_its_target(node: Node) -> None:
    """An ephemeral container whose target was never made is not created: an event says so. Once
    the target is there it is created in the target's PID namespace."""
    setup = container("setup", exits(0, after_s=15))
    web = pod("web", container("main"), init=[setup])
    await node.api.create_pod(web)
    await node.run_until(
        lambda: "running" in node.api.container("web", "setup").get("state", {}),
        within_s=limits.START_S,
        what="setup runs",
    )
    await node.api.debug(web, container("debug"), target="main")
    await node.run_until(
        lambda: any("unable to find target container main" in e for e in failures(node)),
        within_s=limits.NOTICE_S,
        what="an event that says that main is not there",
    )
    expect_equal(node, node.count("CreateContainer", container="debug"), 0, "debugs made")
    await node.run_until(
        lambda: node.count("CreateContainer", container="debug"),
        within_s=15 + limits.START_S + limits.SYNC_ERROR_S,
        what="debug is made",
    )
    (main,) = node.calls("CreateContainer", container="main")
    (creation,) = node.calls("CreateContainer", container="debug")
    spaces = creation.request.config.linux.security_context.namespace_options
    namespace = (spaces.pid, spaces.target_id)
    expect_equal(node, namespace, (PID_TARGET, main.response.container_id), "namespace of debug")


def failures(node: Node) -> list[str]:
    """The messages of web's events Failed."""
    return [event["message"] for event in node.events("Failed", pod="web")]


@conformance(id="ephemeral-before-init", rules=["LIFE-112", "LIFE-113"], needs=[API])
async def an_ephemeral_container_does_not_wait_for_init_containers(node: Node) -> None:
    """An ephemeral container starts while an init container still runs."""
    setup = container("setup", exits(0, after_s=6))
    web = pod("web", container("main"), init=[setup])
    await node.api.create_pod(web)
    await node.run_until(
        lambda: "running" in node.api.container("web", "setup").get("state", {}),
        within_s=limits.START_S,
        what="setup runs",
    )
    await node.api.debug(web, container("debug"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"),
        within_s=6 + limits.START_S,
        what="main starts",
    )
    expected_starts = [f"StartContainer {name}/0" for name in ("setup", "debug", "main")]
    starts = [w for w in node.writes("web") if w.startswith("StartContainer")]
    expect_equal(node, starts, expected_starts, "starts")
    debug, main = (node.times_s("StartContainer", container=n)[0] for n in ("debug", "main"))
    expect(node, main - debug >= 2, "debug starts while setup runs", f"{main - debug:.2f} s before")


@conformance(id="ephemeral-stops", rules=["LIFE-117", "LIFE-143"], needs=[API])
async def an_ephemeral_container_does_not_keep_a_finished_pod(node: Node) -> None:
    """When the regular containers of a run-once pod have ended, the ephemeral container is stopped
    too."""
    job = pod("job", container("main", exits(0, after_s=5)), restartPolicy="Never")
    await node.api.create_pod(job)
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.api.debug(job, container("debug"))
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded",
        within_s=5 + limits.START_S + limits.STOP_S,
        what="phase Succeeded",
    )
    expect_order(
        node,
        node.writes("job"),
        ["StartContainer debug/0", "StopContainer debug/0", "StopPodSandbox/0"],
        "debug is stopped before the sandbox",
    )
    expect(node, node.count("StopContainer", container="main") == 0, "no StopContainer for main")
