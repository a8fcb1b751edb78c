"""Preemption: which pods are stopped so that a critical pod fits on the node, and how (PREE-)."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term, runs
from kubelet_conformance.registry import Feature, Level, conformance
from kubeobjects.quantity import NANO, parse_nano

API = Feature.API
NODE_CRITICAL: dict[str, Any] = {
    "priority": 2000001000,
    "priorityClassName": "system-node-critical",
}
CRITICAL: dict[str, Any] = {"priority": 2000000000, "priorityClassName": "system-cluster-critical"}
TWO_PODS = {"maxPods": 2}
PREEMPTED = "Preempted in order to admit critical pod"
REFUSED_S = limits.START_S + limits.STATUS_PASS_S
GONE_S = limits.START_S + limits.STOP_S + limits.STATUS_PASS_S


def sized(name: str, cpu_m: int, *, limited: bool = False, **spec: Any) -> PodPlan:
    """A pod with a request, and with `limited` the same limits; its containers exit with an error
    when they are stopped."""
    amounts = {"cpu": f"{cpu_m}m", "memory": "8Mi"}
    resources = {"requests": amounts} | ({"limits": amounts} if limited else {})
    return pod(name, container("main", runs(stops(1)), resources=resources), **spec)


async def running(node: Node, name: str) -> None:
    """Run until the pod is Running, though others must be stopped first, and their events came."""
    await node.run_until(lambda: node.api.phase(name) == "Running", within_s=GONE_S, what=name)
    await node.events_arrive()


def preempted(node: Node) -> list[str]:
    """The names of the preempted pods, in order."""
    return [event["involvedObject"]["name"] for event in node.events("Preempting")]


async def cpus_m(node: Node) -> int:
    """The CPU that the node can give to pods, in millicores."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    return 1000 * parse_nano(node.api.allocatable("cpu")) // NANO


@conformance(
    id="preempt-one",
    rules=["PREE-001.4", "PREE-002.3", "PREE-005.3", "PREE-008.2", "LIFE-230"],
    needs=[API],
    node_config=TWO_PODS,
)
async def a_critical_pod_takes_the_place_of_another(node: Node) -> None:
    """On a full node an ordinary pod is stopped for a critical one, before the sandbox of the
    critical one is made."""
    await node.api.run_pods(pod("one", container("main", runs(stops(1)))), pod("two"))
    await node.api.create_pod(pod("critical", **CRITICAL))
    await running(node, "critical")
    victims = preempted(node)
    expect_equal(node, len(victims), 1, "victims")
    stop = node.calls("StopContainer", pod=victims[0])[0]
    sandbox = node.calls("RunPodSandbox", pod="critical")[0]
    expect(node, stop.ended_s <= sandbox.started_s, "the critical sandbox after the victim's end")


@conformance(
    id="preempt-status",
    rules=["PREE-007.1", "PREE-007.2", "PREE-007.3", "PREE-007.4", "PREE-007.5", "LIFE-230"],
    needs=[API],
    alone=True,
    node_config=TWO_PODS,
)
async def a_preempted_pod_says_why_it_ended(node: Node) -> None:
    """A preempted pod is Failed with reason, message and the condition DisruptionTarget, and is
    stopped with its own grace period."""
    victim = pod("web", container("main", ignores_term()), grace_s=4)
    await node.api.run_pods(victim, sized("large", 1, limited=True))
    await node.api.create_pod(pod("critical", **CRITICAL))
    await running(node, "critical")
    await node.run_until(lambda: node.api.phase("web") == "Failed", within_s=REFUSED_S)
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, (status["reason"], status["message"]), ("Preempting", PREEMPTED), "status")
    target = {c["type"]: c for c in status["conditions"]}.get("DisruptionTarget", {})
    target_fields = target.get("status"), target.get("reason"), target.get("message")
    text = "Pod was preempted by Kubelet to accommodate a critical pod."
    expect_equal(node, target_fields, ("True", "TerminationByKubelet", text), "DisruptionTarget")
    await node.events_arrive()
    event = node.events("Preempting")[0]
    expect_equal(node, (event["type"], event["message"]), ("Warning", PREEMPTED), "type, message")
    timeouts = [call.request.timeout for call in node.calls("StopContainer", pod="web")]
    expect_equal(node, timeouts, [4], "timeouts of StopContainer")
    lines = (await node.kubelet.get("/metrics")).text.splitlines()
    told = [line.split() for line in lines if line.startswith("kubelet_preemptions{")]
    expected = [('kubelet_preemptions{preemption_signal="pods"}', 1)]
    expect_equal(node, [(name, float(count)) for name, count in told], expected, "metrics")


@conformance(id="preempt-not-for-ordinary", rules=["PREE-001.2"], needs=[API], node_config=TWO_PODS)
async def an_ordinary_pod_is_refused_on_a_full_node(node: Node) -> None:
    """A pod whose priority is high but not a system priority is refused on a full node, and nothing
    is stopped for it."""
    await node.api.run_pods(pod("one"), pod("two"))
    await node.api.create_pod(pod("important", priority=1000000000))
    await node.run_until(lambda: node.api.phase("important") == "Failed", within_s=REFUSED_S)
    status = (node.api.pod("important") or {})["status"]
    expect_equal(node, status["reason"], "OutOfpods", "reason")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="preempt-best-effort-first",
    rules=["PREE-005.1", "PREE-005.2"],
    needs=[API],
    node_config={"maxPods": 3},
)
async def the_least_qos_class_ends_first(node: Node) -> None:
    """Of a Guaranteed, a Burstable and a BestEffort pod that would each free enough, the BestEffort
    one is preempted."""
    besteffort = pod("besteffort", container("main", runs(stops(1))))
    await node.api.run_pods(sized("guaranteed", 1, limited=True), sized("burstable", 1), besteffort)
    await node.api.create_pod(pod("critical", **CRITICAL))
    await running(node, "critical")
    expect_equal(node, preempted(node), ["besteffort"], "victims")


@conformance(
    id="preempt-closest", rules=["PREE-002.1", "PREE-006.1", "PREE-006.2"], needs=[API], alone=True
)
async def the_pod_that_comes_closest_ends(node: Node) -> None:
    """Of several pods of one QoS class the smallest one that frees enough is preempted."""
    cpus = await cpus_m(node)
    plans = [sized(name, cpus * share // 100) for name, share in SHARES.items()]
    await node.api.run_pods(*plans)
    await node.api.create_pod(sized("critical", cpus * 30 // 100, **CRITICAL))
    await running(node, "critical")
    expect_equal(node, preempted(node), ["middle"], "victims")


SHARES = {"small": 15, "large": 50, "middle": 25}  # percent of the node's CPUs; 20 are missing


@conformance(id="preempt-in-order", rules=["PREE-005.4", "PREE-007.1"], needs=[API], alone=True)
async def several_victims_end_one_after_the_other(node: Node) -> None:
    """When one QoS class alone does not free enough, Burstable pods are preempted before Guaranteed
    ones, one at a time."""
    cpus = await cpus_m(node)
    half = cpus * 45 // 100
    await node.api.run_pods(sized("guaranteed", half, limited=True), sized("burstable", half))
    await node.api.create_pod(sized("critical", cpus * 90 // 100, **CRITICAL))
    await running(node, "critical")
    expect_equal(node, preempted(node), ["burstable", "guaranteed"], "victims")
    first, second = (node.calls("StopContainer", pod=name)[0] for name in preempted(node))
    expect(node, first.ended_s <= second.started_s, "one stop has ended when the other begins")


@conformance(
    id="preempt-critical-by-priority", rules=["PREE-003"], needs=[API], node_config=TWO_PODS
)
async def a_critical_pod_ends_for_a_more_critical_one(node: Node) -> None:
    """A system-cluster-critical pod is preempted for a system-node-critical one."""
    work = container("main", runs(stops(1)))
    await node.api.run_pods(pod("cluster", work, **CRITICAL), pod("node", work, **NODE_CRITICAL))
    await node.api.create_pod(pod("new", **NODE_CRITICAL))
    await running(node, "new")
    expect_equal(node, preempted(node), ["cluster"], "victims")


@conformance(id="preempt-not-enough", rules=["PREE-004"], needs=[API], alone=True)
async def a_critical_pod_is_refused_where_no_room_can_be_made(node: Node) -> None:
    """A critical pod that is larger than the node is refused, and no pod is preempted for it."""
    cpus = await cpus_m(node)
    await node.api.run_pods(sized("web", cpus // 2))
    await node.api.create_pod(sized("critical", cpus + 7, **CRITICAL))
    await node.run_until(lambda: node.api.phase("critical") == "Failed", within_s=REFUSED_S)
    status = (node.api.pod("critical") or {})["status"]
    message = (
        "Pod was rejected: Unexpected error while attempting to recover from admission failure: "
        "preemption: error finding a set of pods to preempt: no set of running pods found to "
        "reclaim resources: [(res: cpu, q: 7), ]"
    )
    status_fields = status["reason"], status["message"]
    expect_equal(node, status_fields, ("UnexpectedAdmissionError", message), "status")
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="preempt-other-reason", rules=["PREE-001.3"], needs=[API], node_config=TWO_PODS)
async def no_pod_ends_for_one_that_is_refused_anyway(node: Node) -> None:
    """A critical pod that does not belong on this node is refused for that reason, and no pod is
    preempted for it."""
    await node.api.run_pods(pod("one"), pod("two"))
    await node.api.create_pod(pod("critical", nodeSelector={"no": "such"}, **CRITICAL))
    await node.run_until(lambda: node.api.phase("critical") == "Failed", within_s=REFUSED_S)
    expect_equal(
        node, (node.api.pod("critical") or {})["status"]["reason"], "NodeAffinity", "reason"
    )
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(
    id="preempt-static",
    rules=["PREE-001.4", "PREE-003.1", "PREE-008.1"],
    needs=[API],
    node_config=TWO_PODS,
)
async def a_static_pod_is_critical(node: Node) -> None:
    """An ordinary pod is preempted for a static one; pods that come later wait until it has
    stopped."""
    victim = pod("victim", container("main", ignores_term()), grace_s=4)
    await node.api.run_pods(victim, sized("other", 1))
    await node.apply_static(pod("static"))
    await node.run_until(lambda: preempted(node), within_s=limits.START_S, what="a preemption")
    await node.api.create_pod(pod("later"))
    await node.run_until(lambda: node.api.phase("later") == "Failed", within_s=GONE_S)
    expect_equal(node, preempted(node), ["victim"], "victims")
    stops = node.calls("StopContainer", pod="victim")
    expect(node, stops and stops[0].ended_s, "the victim has stopped when later is rejected")
    await running(node, "static")


@conformance(
    id="preempt-by-resize",
    rules=["PREE-009", "PLEG-012.1"],
    level=Level.DETAIL,
    needs=[API, Feature.CGROUPS],
    since="1.34",
)
async def a_critical_pod_that_grows_takes_the_place_of_another(node: Node) -> None:
    """When the resize of a critical pod does not fit, ordinary pods are preempted for it, too."""
    cpus = await cpus_m(node)
    critical = pod(
        "critical", container("main", runs(), resources=cpu(cpus * 20 // 100)), **CRITICAL
    )
    await node.api.run_pods(
        critical, sized("victim", cpus * 70 // 100), sized("small", cpus * 5 // 100)
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.resize_pod("critical", "main", cpu(cpus * 60 // 100))
    await node.run_until(lambda: node.events("ResizeCompleted"), within_s=GONE_S)
    expect_equal(node, preempted(node), ["victim"], "victims")
    expect_equal(node, node.count("StopContainer", pod="critical"), 0, "stops of the critical pod")


def cpu(amount_m: int) -> dict[str, dict[str, str]]:
    """A resize that requests so much CPU and nothing else."""
    return {"requests": {"cpu": f"{amount_m}m"}}
