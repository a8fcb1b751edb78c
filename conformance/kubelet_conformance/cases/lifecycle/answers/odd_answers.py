"""Answers of the runtime that are rare: unknown states, users with names, missing features, a
runtime or a network that is not ready."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
STATUS_READ_S = 5.0  # LIFE-006: how often the runtime's Status is read
LONGEST_PAUSE_S = 5.0  # LIFE-006


@conformance(id="init-oom-killed", rules=["LIFE-120.8", "BACK-104.1"], needs=[STATUS, FAULTS])
async def an_init_container_that_ran_out_of_memory_has_failed(node: Node) -> None:
    """An init container that ended with exit code 0 and reason OOMKilled has failed: it runs again,
    and the next container starts after its success."""

    def out_of_memory(answer: Any) -> None:
        ended = answer.status.state == cri.CONTAINER_EXITED
        if ended and answer.status.metadata.attempt == 0:
            answer.status.reason = "OOMKilled"

    with node.runtime.on("ContainerStatus", container="setup").changes_answer(out_of_memory):
        await node.apply_static(pod("web", init=[container("setup", exits(0))]))
        await node.run_until(
            lambda: node.running("web"),
            within_s=limits.START_S + limits.restart_after(0).high_s + limits.NOTICE_S,
            what="main runs",
        )
    starts = [w for w in node.writes("web") if w.startswith("StartContainer")]
    expected_starts = ["StartContainer setup/0", "StartContainer setup/1", "StartContainer main/0"]
    expect_equal(node, starts, expected_starts, "starts")


@conformance(
    id="unknown-state",
    rules=["LIFE-114.4", "LIFE-120.10", "BACK-104.2", "LIFE-120.4"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def a_container_in_an_unknown_state_is_stopped_and_replaced(node: Node) -> None:
    """A container whose state the runtime does not know is stopped before the next attempt is made;
    an init container of a pod with Never is not run a second time: the pod ends."""

    def unknown(answer: Any) -> None:
        if answer.status.metadata.attempt == 0:
            answer.status.state = cri.CONTAINER_UNKNOWN

    await node.apply_static(pod("web"))
    await node.apply_static(
        pod("job", init=[container("setup", exits(0, after_s=60))], restartPolicy="Never")
    )
    await node.run_until(
        lambda: node.running("web") and node.running("job", "setup"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    rules = [
        node.runtime.on("ContainerStatus", container=name).changes_answer(unknown)
        for name in ("main", "setup")
    ]
    await node.kubelet.restart()
    await node.run_until(
        lambda: (
            node.count("StartContainer", pod="web") == 2 and node.count("StopPodSandbox", pod="job")
        ),
        within_s=limits.START_S + limits.STOP_S,
        what="a second start of main, and the end of job",
    )
    await node.run_for(limits.NOTICE_S)
    for rule in rules:
        rule.remove()
    order = ["StopContainer main/0", "CreateContainer main/1"]
    expect_order(node, node.writes("web"), order, "stop, then replacement")
    expect_equal(node, node.count("CreateContainer", container="setup"), 1, "creations of setup")


@conformance(id="non-root-by-name", rules=["LIFE-141.3"], needs=[STATUS, FAULTS], alone=True)
async def a_user_with_a_name_may_be_root(node: Node) -> None:
    """A container with runAsNonRoot whose image names a user without a number is not created; with
    a user in its spec it is."""

    def named(answer: Any) -> None:
        answer.image.ClearField("uid")
        answer.image.username = "nobody"

    careful = {"runAsNonRoot": True}
    both = (
        container("main", securityContext=careful),
        container("sure", securityContext={**careful, "runAsUser": 1000}),
    )
    with node.runtime.on("ImageStatus").changes_answer(named):
        await node.apply_static(pod("web", *both))
        await node.run_until(
            lambda: node.running("web", "sure"), within_s=limits.START_S, what="sure runs"
        )
        await node.run_until(
            lambda: (
                node.container("web", "main").get("state", {}).get("waiting", {}).get("message")
            ),
            within_s=limits.START_S + limits.NOTICE_S,
            what="main waits with a message",
        )
    waiting = node.container("web", "main")["state"]["waiting"]
    expect_equal(node, waiting["reason"], "CreateContainerConfigError", "reason")
    text = "container has runAsNonRoot and image has non-numeric user (nobody)"
    expect(node, waiting["message"].startswith(text), text, waiting["message"])
    expect_equal(node, node.count("CreateContainer", container="main"), 0, "creations of main")


@conformance(
    id="user-namespace-refused",
    rules=["LIFE-147.5", "LIFE-148.2"],
    needs=[API, FAULTS, Feature.USER_NAMESPACES, Feature.RESTART],
    since="1.33",
)
async def a_pod_does_not_run_without_the_users_it_asks_for(node: Node) -> None:
    """Where the runtime has no user namespaces, a pod with `hostUsers: false` gets no sandbox, and
    an event says why; a container that needs a recursively read-only mount is not created where
    the runtime has none."""

    def without(answer: Any) -> None:
        for handler in answer.runtime_handlers:
            handler.features.user_namespaces = False
            handler.features.recursive_read_only_mounts = False

    mount = {"name": "d", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": "Enabled"}
    deep = container("main", volumeMounts=[mount])
    with node.runtime.on("Status").changes_answer(without):
        await node.kubelet.restart()
        await node.api.create_pod(pod("web", hostUsers=False))
        await node.api.create_pod(pod("deep", deep, volumes=[{"name": "d", "emptyDir": {}}]))
        await node.run_until(
            lambda: node.events("FailedCreatePodSandBox", pod="web"),
            within_s=limits.START_S,
            what="an event that no sandbox can be made",
        )
        await node.run_until(
            lambda: node.events("Failed", pod="deep"), within_s=limits.START_S, what="deep fails"
        )
    expect_equal(node, node.count("CreateContainer", pod="deep"), 0, "creations in deep")
    text = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
    message = node.events("FailedCreatePodSandBox", pod="web")[0]["message"]
    expect(node, text in message, text, message)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")


def not_ready(kind: str) -> Any:
    """A change of the answer of Status: that condition is false."""

    def change(answer: Any) -> None:
        for condition in answer.status.conditions:
            if condition.type == kind:
                condition.status = False
                condition.message = "not yet"

    return change


@conformance(
    id="runtime-not-ready-later",
    rules=["LIFE-006.1", "LIFE-006.5", "CRI-130.1"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def no_pod_starts_while_the_runtime_says_that_it_is_not_ready(node: Node) -> None:
    """While RuntimeReady is false no new pod starts, and the ones that run are left alone."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    with node.runtime.on("Status").changes_answer(not_ready("RuntimeReady")):
        await node.run_for(STATUS_READ_S + 1)
        await node.apply_static(pod("later"))
        await node.run_for(12)
        expect_equal(node, node.count("RunPodSandbox", pod="later"), 0, "sandboxes of later")
    await node.run_until(
        lambda: node.running("later"),
        within_s=STATUS_READ_S + LONGEST_PAUSE_S + limits.START_S,
        what="later runs",
    )
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops of web")


@conformance(
    id="network-not-ready",
    rules=["LIFE-006.6", "LIFE-070.4", "CRI-130", "LIFE-004.1", "LIFE-013.4"],
    needs=[API, FAULTS],
    alone=True,
)
async def without_a_network_pods_in_the_host_network_start(node: Node) -> None:
    """While NetworkReady is false a pod in the host network starts; another gets no sandbox, an
    event says why, and it starts when the network is ready."""
    with node.runtime.on("Status").changes_answer(not_ready("NetworkReady")):
        await node.run_for(STATUS_READ_S + 1)
        await node.api.create_pod(pod("web"))
        await node.api.create_pod(pod("host", hostNetwork=True))
        await node.run_until(
            lambda: (
                node.count("StartContainer", pod="host")
                and node.events("NetworkNotReady", pod="web")
            ),
            within_s=limits.START_S,
            what="host starts, and an event says that web has no network",
        )
        message = node.events("NetworkNotReady", pod="web")[0]["message"]
        start = "network is not ready: container runtime network not ready: NetworkReady=false "
        expect(node, message.startswith(f"{start}reason:"), f"{start}...", message)
        expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes of web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web"),
        within_s=STATUS_READ_S + limits.START_S,
        what="web starts",
    )


@conformance(id="lists-fail-after-start", rules=["LIFE-038.1"], needs=[API, FAULTS], alone=True)
async def a_pod_is_not_synced_with_what_was_known_before_its_start(node: Node) -> None:
    """A change of a pod that has just started waits until the kubelet has seen what runs: while
    lists fail, no second sandbox and no second container are made."""
    await node.run_for(limits.NOTICE_S)
    await node.api.create_pod(pod("web"))
    with node.runtime.on("ListContainers").fails("UNKNOWN", "busy"):
        await node.run_until(
            lambda: node.count("StartContainer", pod="web"), within_s=limits.START_S
        )
        await node.api.patch_pod("web", {"metadata": {"labels": {"look": "again"}}})
        await node.run_for(2 * limits.NOTICE_S)
    await node.run_for(2 * limits.NOTICE_S)
    counts = [node.count(method, pod="web") for method in ("RunPodSandbox", "CreateContainer")]
    expect_equal(node, counts, [1, 1], "sandboxes and containers made")
