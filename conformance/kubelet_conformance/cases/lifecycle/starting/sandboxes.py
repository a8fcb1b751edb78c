"""When a pod needs another sandbox, and when it must not get one."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, STATUS = Feature.API, Feature.STATUS
FAULTS, KILL = Feature.FAULTS, Feature.OUTSIDE_KILL
AGAIN_S = limits.START_S + limits.STOP_S + limits.SYNC_ERROR_S


@conformance(
    id="sandbox-twice",
    rules=["LIFE-101", "LIFE-130.1", "CRI-034.4", "BACK-105.1", "LIFE-104"],
    needs=[API],
    alone=True,
)
async def two_ready_sandboxes_become_one_new_one(node: Node) -> None:
    """A pod that has two READY sandboxes is stopped, both of them, and gets a new one with the next
    attempt."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    request = cri.RunPodSandboxRequest()
    request.CopyFrom(node.calls("RunPodSandbox", pod="web")[0].request)
    request.config.metadata.attempt = 1
    await node.runtime.direct.call("RunPodSandbox", request)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=AGAIN_S,
        what="main starts in a new sandbox",
    )
    attempts = [c.request.config.metadata.attempt for c in node.calls("RunPodSandbox", pod="web")]
    expect_equal(node, attempts, [0, 2], "attempts of the sandboxes that the kubelet has made")
    before_s = node.times_s("RunPodSandbox", pod="web")[1]
    stopped = {
        c.request.pod_sandbox_id
        for c in node.calls("StopPodSandbox", pod="web")
        if node.time_s(c) <= before_s
    }
    expect_equal(node, len(stopped), 2, "sandboxes stopped before that")
    expect_equal(node, len(node.events("SandboxChanged", pod="web")), 1, "events SandboxChanged")


@conformance(
    id="sandbox-without-address",
    rules=["LIFE-103", "CRI-034.5", "BACK-105.1", "LIFE-100"],
    needs=[STATUS, FAULTS],
    alone=True,
)
async def a_sandbox_without_an_address_is_replaced(node: Node) -> None:
    """A READY sandbox in the pod network that has no address is replaced; one in the host network
    is not."""

    def without_address(answer: Any) -> None:
        if answer.status.metadata.attempt == 0:
            answer.status.network.SetInParent()
            answer.status.network.ip = ""

    with node.runtime.on("PodSandboxStatus").changes_answer(without_address):
        await node.apply_static(pod("web"))
        await node.apply_static(pod("host", hostNetwork=True))
        await node.run_until(
            lambda: node.count("RunPodSandbox", pod="web") == 2 and node.running("web"),
            within_s=AGAIN_S,
            what="web runs in a second sandbox",
        )
        await node.run_for(2 * limits.NOTICE_S)
    expect_order(node, node.writes("web"), ["StopPodSandbox/0", "RunPodSandbox/1"], "sandboxes")
    sandbox_counts = [node.count("RunPodSandbox", pod=name) for name in ("web", "host")]
    expect_equal(node, sandbox_counts, [2, 1], "sandboxes of web and host")


@conformance(
    id="sandbox-network-mode",
    rules=["LIFE-102", "CRI-034.2", "BACK-105.1"],
    needs=[STATUS],
    alone=True,
)
async def a_sandbox_in_the_wrong_network_is_replaced(node: Node) -> None:
    """When a pod that keeps its UID moves into the host network, its sandbox is replaced."""
    with_uid = {"uid": "5c9e2b1a-0000-4000-8000-00000000e7a1"}
    await node.apply_static(pod("web", metadata=with_uid))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("web", metadata=with_uid, hostNetwork=True))
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=25 + AGAIN_S,  # the manifest directory is read every 20 s at the latest
        what="a second start of main",
    )
    creations = node.calls("RunPodSandbox", pod="web")
    expect_equal(node, [c.request.config.metadata.attempt for c in creations], [0, 1], "attempts")
    modes = [c.request.config.linux.security_context.namespace_options.network for c in creations]
    expect_equal(node, modes, [0, 2], "network modes: POD, then NODE")


@conformance(id="run-once-sandbox-lost", rules=["LIFE-111.2"], needs=[STATUS, KILL, FAULTS])
async def a_run_once_pod_gets_another_sandbox_only_if_nothing_was_made_in_the_first(
    node: Node,
) -> None:
    """A pod with policy Never that loses its sandbox is over once a container was created in it; if
    none was, it gets another sandbox and runs."""
    await node.apply_static(pod("over", restartPolicy="Never"))
    rule = node.runtime.on("CreateContainer", container="late").fails("UNKNOWN", "no space")
    await node.apply_static(pod("fresh", container("late"), restartPolicy="Never"))
    await node.run_until(
        lambda: node.running("over", "main") and node.count("CreateContainer", container="late"),
        within_s=limits.START_S,
        what="over runs, and late could not be created",
    )
    await node.run_for(limits.NOTICE_S)
    await node.runtime.stop_sandbox("over")
    await node.runtime.stop_sandbox("fresh")
    await node.run_for(limits.RELIST_S)
    rule.remove()
    await node.run_until(lambda: node.running("fresh", "late"), within_s=AGAIN_S)
    await node.run_for(limits.NOTICE_S)
    sandbox_counts = [node.count("RunPodSandbox", pod=name) for name in ("over", "fresh")]
    expect_equal(node, sandbox_counts, [1, 2], "sandboxes of over and fresh")
    expect(node, not node.running("over", "main"), "main does not run again", node.writes("over"))


@conformance(id="run-once-own-policy", rules=["LIFE-111.2"], needs=[STATUS, KILL], since="1.35")
async def a_run_once_pod_is_over_whatever_policy_its_container_has(node: Node) -> None:
    """A pod with policy Never that loses its sandbox gets no other, not for a container with policy
    Always of its own, either."""
    own = container("own", restartPolicy="Always")
    await node.apply_static(pod("over", container("main"), own, restartPolicy="Never"))
    await node.run_until(
        lambda: node.running("over", "main", "own"), within_s=limits.START_S, what="over runs"
    )
    await node.run_for(limits.NOTICE_S)
    await node.runtime.stop_sandbox("over")
    await node.run_for(AGAIN_S)
    expect_equal(node, node.count("RunPodSandbox", pod="over"), 1, "sandboxes of over")
    expect(node, not node.running("over", "own"), "own does not run again", node.writes("over"))


@conformance(id="sandbox-finished", rules=["BACK-105.4", "LIFE-111.3"], needs=[STATUS, FAULTS])
async def a_finished_pod_gets_no_other_sandbox(node: Node) -> None:
    """A pod whose sandbox loses its address in the moment in which its last regular container has
    succeeded, with only a sidecar left, is stopped and gets no other sandbox."""

    def without_address(answer: Any) -> None:
        answer.status.network.SetInParent()
        answer.status.network.ip = ""

    main = container("main", exits(0, after_s=6))
    job = pod("job", main, init=[sidecar("side")], restartPolicy="OnFailure")
    await node.apply_static(job)
    await node.wait_running("job", "main", "side")
    await node.run_for(limits.NOTICE_S)  # from here on the sandbox is asked for at the exit alone
    with node.runtime.on("PodSandboxStatus").changes_answer(without_address):
        await node.run_until(
            lambda: node.count("StopContainer", container="side"),
            within_s=6 + limits.NOTICE_S,
            what="the sidecar is stopped",
        )
        await node.run_until(
            lambda: node.phase("job") == "Succeeded", within_s=limits.STOP_S, what="Succeeded"
        )
    expect_equal(node, node.count("RunPodSandbox", pod="job"), 1, "sandboxes")
