"""Lists of the runtime: their order means nothing, and what they say of images and disks."""

from collections.abc import Callable
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.cri.common import started
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

STATUS, FAULTS, RESTART = Feature.STATUS, Feature.FAULTS, Feature.RESTART
KILL, STREAMS = Feature.OUTSIDE_KILL, Feature.STREAMED_LISTS


def ordered(field: str, *, newest_first: bool) -> Callable[[Any], None]:
    """A change of a list: sorted by creation."""

    def change(answer: Any) -> None:
        rows = sorted(getattr(answer, field), key=lambda r: r.created_at, reverse=newest_first)
        answer.ClearField(field)
        getattr(answer, field).extend(rows)

    return change


async def in_order(node: Node, *, newest_first: bool) -> None:
    """Run a pod that has a second sandbox and containers in both, with lists in that order, and
    restart the kubelet: nothing is made anew."""
    for method, field in (("ListPodSandbox", "items"), ("ListContainers", "containers")):
        node.runtime.on(method).changes_answer(ordered(field, newest_first=newest_first))
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.running("web") and node.container("web", "main").get("restartCount") == 1,
        within_s=limits.START_S + limits.NOTICE_S,
        what="the second run of main",
    )
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.running("web") and node.count("RunPodSandbox", pod="web") == 2,
        within_s=limits.STOP_S + 2 * limits.SYNC_ERROR_S,
        what="main runs in a second sandbox",
    )
    before = node.writes("web")
    await node.kubelet.restart()
    await node.run_for(limits.START_S + limits.HOUSEKEEPING_S)
    later = [w for w in node.writes("web")[len(before) :] if not w.startswith("Remove")]
    expect_equal(node, later, [], "changing calls after the restart of the kubelet")
    status = node.container("web", "main")
    expect_equal(node, status.get("restartCount"), 2, "restart count")
    expect_equal(node, "running" in status.get("state", {}), True, "main is shown as running")


@conformance(id="cri-lists-newest-first", rules=["CRI-081"], needs=[STATUS, FAULTS, RESTART, KILL])
async def a_list_may_begin_with_the_newest(node: Node) -> None:
    """The newest record of a pod is found by its time, in lists that begin with the newest."""
    await in_order(node, newest_first=True)


@conformance(id="cri-lists-oldest-first", rules=["CRI-081"], needs=[STATUS, FAULTS, RESTART, KILL])
async def a_list_may_begin_with_the_oldest(node: Node) -> None:
    """The same in lists that begin with the oldest."""
    await in_order(node, newest_first=False)


@conformance(
    id="cri-lost-address",
    rules=["CRI-035.2", "CRI-034.3", "LIFE-176", "LIFE-176.2"],
    needs=[STATUS, FAULTS, KILL],
)
async def a_sandbox_that_is_not_ready_gives_no_address(node: Node) -> None:
    """A sandbox that is lost is replaced although the runtime still tells its address, which has no
    say: variables of a container that starts in its successor have the new address."""

    def kept(answer: Any) -> None:
        if answer.status.state == cri.SANDBOX_NOTREADY:
            answer.status.network.ip = "192.0.2.200"

    node.runtime.on("PodSandboxStatus").changes_answer(kept)
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    await node.apply_static(pod("web", container("main", env=env)))
    await started(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.STOP_S + 2 * limits.SYNC_ERROR_S,
        what="a container in a second sandbox",
    )
    await node.run_for(limits.NOTICE_S)
    address = (node.pod("web") or {})["status"]["podIP"]
    variables = node.calls("CreateContainer", pod="web")[1].request.config.envs
    value = next(each.value for each in variables if each.key == "IP")
    expect_equal(node, value if isinstance(value, str) else value.decode(), address, "IP")


@conformance(
    id="cri-dead-sandbox-no-address", rules=["CRI-035.2"], needs=[STATUS, FAULTS, RESTART, KILL]
)
async def a_dead_sandbox_gives_no_address(node: Node) -> None:
    """A kubelet that was restarted does not show the address of a sandbox that is not READY, nor
    that of an older one that is."""
    addresses = {0: "192.0.2.200", 1: "192.0.2.201"}

    def kept(answer: Any) -> None:
        answer.status.network.ip = addresses[answer.status.metadata.attempt]
        if answer.status.metadata.attempt == 0:
            answer.status.state = cri.SANDBOX_READY

    work = container("main", exits(0, after_s=3))  # the first run ends with its sandbox
    await node.apply_static(pod("job", work, restartPolicy="OnFailure"))
    await node.wait_running("job")
    await node.runtime.stop_sandbox("job")
    await node.run_until(
        lambda: node.phase("job") == "Succeeded",
        within_s=2 * limits.STOP_S + 2 * limits.SYNC_ERROR_S,
        what="Succeeded in a second sandbox",
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("RunPodSandbox", pod="job"), 2, "sandboxes")
    node.runtime.on("PodSandboxStatus").changes_answer(kept)
    await node.kubelet.restart()
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=2 * limits.START_S, what="Succeeded"
    )
    await node.run_for(limits.NOTICE_S)
    address = (node.pod("job") or {})["status"].get("podIP")
    expect(node, address not in addresses.values(), "no address of a sandbox of before", address)


STREAMED: dict[str, Any] = {"featureGates": {"CRIListStreaming": True}}
LISTS = ("ListPodSandbox", "ListContainers", "ListImages")


def lists(node: Node) -> dict[str, int]:
    """How often the runtime was asked for each list in one answer."""
    return {method: node.count(method) for method in LISTS}


@conformance(
    id="cri-lists-streamed", rules=["CRI-151", "CRI-150.1"], needs=[STATUS, KILL, STREAMS],
    node_config=STREAMED, since="1.36",
)  # fmt: skip
async def lists_come_in_several_messages(node: Node) -> None:
    """With the gate CRIListStreaming sandboxes, containers and images are listed as streams only,
    and what happens in the runtime is noticed as ever."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.running("web") and node.container("web", "main").get("restartCount") == 1,
        within_s=limits.START_S + limits.NOTICE_S,
        what="the second run of main",
    )
    expect_equal(node, lists(node), dict.fromkeys(LISTS, 0), "lists in one answer")
    expect(node, node.count("StreamContainers") > 0, "StreamContainers is called")


@conformance(
    id="cri-lists-not-streamed", rules=["CRI-151.1"], needs=[STATUS, FAULTS, STREAMS],
    node_config=STREAMED, since="1.36",
)  # fmt: skip
async def a_runtime_without_streams_is_asked_once(node: Node) -> None:
    """One streamed list that is UNIMPLEMENTED is asked for in one answer at once, and no list of
    sandboxes or containers is streamed again; those of images are."""
    rule = node.runtime.on("StreamContainers").fails("UNIMPLEMENTED", "unknown method", times=1)
    await node.run_until(
        lambda: node.count("ListContainers"), within_s=limits.START_S, what="ListContainers"
    )
    await node.run_for(1)  # lists that were under way beside the one that failed
    rule.remove()
    containers, sandboxes = node.count("StreamContainers"), node.count("StreamPodSandboxes")
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(60)
    expect_equal(node, node.count("StreamContainers"), containers, "calls of StreamContainers")
    expect_equal(node, node.count("StreamPodSandboxes"), sandboxes, "calls of StreamPodSandboxes")
    expect_equal(node, node.count("ListImages"), 0, "lists of images in one answer")


@conformance(
    id="cri-lists-stream-fails", rules=["CRI-151.2"], needs=[STATUS, FAULTS, STREAMS],
    node_config=STREAMED, since="1.36",
)  # fmt: skip
async def a_stream_that_fails_is_asked_for_again(node: Node) -> None:
    """Another error of a streamed list is the error of that list: nothing is started anew, and
    lists go on as streams."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    before = node.writes("web")
    with node.runtime.on("StreamContainers").fails("INTERNAL", "broken off"):
        await node.run_for(30)
    failed = node.count("StreamContainers")
    await node.run_for(30)
    expect_equal(node, node.writes("web")[len(before) :], [], "changing calls")
    expect_equal(node, node.count("ListContainers"), 0, "lists in one answer")
    expect(node, node.count("StreamContainers") > failed, "StreamContainers is called again")
