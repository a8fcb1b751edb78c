"""What a refused pod shows and does not get: neither a call, nor a second try, nor what it had."""

from typing import Any

from kubelet_conformance.cases.lifecycle.admission.refusals import REFUSED_S, refused
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART
OWN: tuple[str, ...] = ("Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers")
"""Conditions that a kubelet writes."""


def shown(node: Node, name: str) -> set[str]:
    """The fields of the pod's status, without those that only newer kubelets write."""
    return set((node.api.pod(name) or {})["status"]) - {"observedGeneration"}


@conformance(
    id="refused-for-good",
    rules=["LIFE-011.1", "LIFE-011.2", "LIFE-011.3", "LIFE-011.4", "LIFE-010.4", "LIFE-002.2"],
    needs=[API],
)
async def a_refused_pod_is_never_tried_again(node: Node) -> None:
    """A refused pod has a status of five fields; the runtime is asked for nothing, the event comes
    once, and policy Always changes nothing about it."""
    message = "Failed to admit pod as the OS field doesn't match node OS"
    plan = pod("web", os={"name": "windows"}, restartPolicy="Always")
    await refused(node, plan, "PodOSNotSupported", message)
    await node.run_for(3 * limits.HOUSEKEEPING_S + limits.STATUS_PASS_S)
    fields = {"phase", "reason", "message", "qosClass", "startTime"}
    expect_equal(node, shown(node, "web"), fields, "fields of the status")
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, (status["phase"], status["qosClass"]), ("Failed", "BestEffort"), "status")
    expect_equal(node, node.writes("web"), [], "changing calls for web")
    expect_equal(node, node.event_count("PodOSNotSupported", pod="web"), 1, "events")


@conformance(
    id="refused-after-restart",
    rules=["LIFE-011.2", "LIFE-010.5", "LIFE-202.3"],
    needs=[API, RESTART],
)
async def a_pod_that_ran_and_is_refused_loses_what_it_showed(node: Node) -> None:
    """When a restarted kubelet refuses a pod that ran, the status has neither containers nor
    addresses any more, and none of the kubelet's conditions; that of another client stays."""
    await node.api.create_pod(pod("old"))
    await api_running(node, "old")
    await node.run_for(2)  # creationTimestamps are whole seconds
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    mine = {"type": "example.com/mine", "status": "True"}
    conditions = [*(node.api.pod("web") or {})["status"]["conditions"], mine]
    await node.api.patch_pod("web", {"status": {"conditions": conditions}}, status=True)
    await node.kubelet.restart(maxPods=1)
    await node.run_until(
        lambda: "containerStatuses" not in shown(node, "web"),
        within_s=REFUSED_S,
        what="a status of web without containers",
    )
    left = shown(node, "web") & {"containerStatuses", "podIP", "podIPs", "hostIP", "hostIPs"}
    expect_equal(node, left, set(), "fields of a pod that runs")
    kinds = [c["type"] for c in (node.api.pod("web") or {})["status"].get("conditions") or []]
    expect(node, not set(OWN) & set(kinds), "no condition of the kubelet's", kinds)
    expect(node, "example.com/mine" in kinds, "the condition of another client", kinds)


@conformance(
    id="admit-sysctl-allowed",
    rules=["LIFE-222.1"],
    needs=[API],
    node_config={"allowedUnsafeSysctls": ["kernel.msg*", "net.core.somaxconn"]},
)
async def allowed_kernel_settings_are_accepted(node: Node) -> None:
    """Settings that are safe, or that the configuration allows by name or beginning, are accepted;
    any other one beside them is refused."""

    def asking(*names: str) -> dict[str, Any]:
        return {"securityContext": {"sysctls": [{"name": n, "value": "1"} for n in names]}}

    good = ("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies", "kernel.msgmax")
    await node.api.create_pod(pod("good", **asking(*good, "net.core.somaxconn")))
    await api_running(node, "good")
    text = 'forbidden sysctl: "net.core.rmem_max" not allowlisted'
    await refused(node, pod("bad", **asking(*good, "net.core.rmem_max")), "SysctlForbidden", text)


@conformance(id="admit-first-failure", rules=["LIFE-225.4", "LIFE-226.1"], needs=[API], alone=True)
async def of_several_failures_the_first_is_told(node: Node) -> None:
    """A pod that lacks CPU and memory, and does not match the node, is refused for the CPU."""
    much = {"requests": {"cpu": "100000", "memory": "1000Ti"}}
    plan = pod("web", container("main", resources=much), nodeSelector={"no": "such"})
    await node.api.create_pod(plan)
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=REFUSED_S)
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, status["reason"], "OutOfcpu", "reason")
    words = "Node didn't have enough resource: cpu, requested: 100000000, used: "
    expect(node, words in status["message"], words, status["message"])
