"""Which pods are preempted when several could be, and what a victim that does not stop changes."""

from typing import Any

from fakecri import stops
from kubelet_conformance.cases.eviction.preemption.victims import (
    CRITICAL,
    GONE_S,
    NODE_CRITICAL,
    REFUSED_S,
    TWO_PODS,
    cpus_m,
    preempted,
    running,
    sized,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, conformance
from kubeobjects.quantity import NANO, parse_nano

API, FAULTS = Feature.API, Feature.FAULTS


def asks(name: str, cpu_m: int, memory_bytes: int, **spec: Any) -> PodPlan:
    """A pod with these requests."""
    requests = {"cpu": f"{cpu_m}m", "memory": str(memory_bytes)}
    main = container("main", runs(stops(1)), resources={"requests": requests})
    return pod(name, main, **spec)


@conformance(
    id="preempt-guaranteed-spares-burstable", rules=["PREE-005.2"], needs=[API], alone=True
)
async def what_a_guaranteed_victim_frees_spares_others(node: Node) -> None:
    """When a Guaranteed pod must be preempted anyway and frees enough, no Burstable pod is."""
    cpus = await cpus_m(node)
    guaranteed = sized("guaranteed", cpus * 50 // 100, limited=True)
    await node.api.run_pods(
        guaranteed, sized("one", cpus * 20 // 100), sized("two", cpus * 20 // 100)
    )
    await node.api.create_pod(sized("critical", cpus * 55 // 100, **CRITICAL))
    await running(node, "critical")
    expect_equal(node, preempted(node), ["guaranteed"], "victims")


@conformance(id="preempt-squares", rules=["PREE-006.1", "PREE-006.4"], needs=[API], alone=True)
async def a_victim_that_helps_with_everything_is_closer(node: Node) -> None:
    """When CPU and memory are short, a pod that frees about half of both comes closer than one that
    frees all of the CPU and no memory."""
    cpus = await cpus_m(node)
    memory = parse_nano(node.api.allocatable("memory")) // NANO
    shares = {"cpu": (50, 0), "both": (22, 22), "memory": (1, 37), "more": (1, 37)}
    for name, (of_cpu, of_memory) in shares.items():
        amounts = cpus * of_cpu // 100, max(memory * of_memory // 100, 1)
        await node.api.run_pods(asks(name, *amounts))
    missing = cpus * 76 // 100, memory * 54 // 100  # half of both is missing
    await node.api.create_pod(asks("critical", *missing, **CRITICAL))
    await running(node, "critical")
    expect_equal(node, preempted(node)[0], "both", "first victim")
    expect_equal(node, len(preempted(node)), 3, "victims")


@conformance(id="preempt-not-equals", rules=["PREE-003.2"], needs=[API], node_config=TWO_PODS)
async def critical_pods_of_one_priority_do_not_preempt_each_other(node: Node) -> None:
    """On a node full of critical pods another one of the same priority is refused, and one of a
    higher priority takes the place of one of them."""
    await node.api.run_pods(*(pod(name, **CRITICAL) for name in ("one", "two")))
    await node.api.create_pod(pod("three", **CRITICAL))
    await node.run_until(lambda: node.api.phase("three") == "Failed", within_s=REFUSED_S)
    reason = (node.api.pod("three") or {})["status"]["reason"]
    expect_equal(node, reason, "UnexpectedAdmissionError", "reason")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    await node.api.create_pod(pod("higher", **NODE_CRITICAL))
    await running(node, "higher")
    expect_equal(node, len(preempted(node)), 1, "victims")


@conformance(
    id="preempt-stop-hangs",
    rules=["PREE-007.6", "PREE-007.2"],
    needs=[API, FAULTS],
    node_config=TWO_PODS,
)
async def a_victim_that_does_not_stop_is_left_behind(node: Node) -> None:
    """When a victim has not stopped after 10 s, or 1.5 times its grace period if that is longer,
    the critical pod starts all the same."""
    victim = pod("victim", container("main", runs(stops(1))), grace_s=8)
    await node.api.run_pods(victim, sized("other", 1))
    rule = node.runtime.on("StopContainer", pod="victim").hangs()
    began_s = node.now_s
    await node.api.create_pod(pod("critical", **CRITICAL))
    await node.run_until(
        lambda: node.api.phase("critical") == "Running", within_s=12 + GONE_S, what="critical runs"
    )
    waited_s = node.times_s("RunPodSandbox", pod="critical")[0] - began_s
    in_time = 11.9 <= waited_s <= 12 + limits.NOTICE_S + node.slack_s
    expect(node, in_time, "the sandbox of the critical pod after 12 s", f"{waited_s:.2f} s")
    expect_equal(node, node.event_count("ExceededGracePeriod", pod="victim"), 1, "events")
    rule.release()
