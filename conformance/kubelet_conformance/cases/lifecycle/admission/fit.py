"""What a node has room for, at the bounds: exact amounts, ports, affinity, taints."""

from typing import Any

from kubelet_conformance.cases.lifecycle.admission.refusals import refused
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
AFFINITY = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
TAINTS = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"


def with_port(name: str, address: str = "", protocol: str = "TCP") -> PodPlan:
    """A pod with port 8080 of the node at that address ("": all addresses)."""
    port: dict[str, Any] = {"containerPort": 80, "hostPort": 8080, "protocol": protocol}
    if address:
        port["hostIP"] = address
    return pod(name, container("main", ports=[port]))


@conformance(id="admit-ports-apart", rules=["LIFE-226.3"], needs=[API], alone=True)
async def host_ports_are_taken_by_address_and_protocol(node: Node) -> None:
    """The same port of another protocol or of another address is free; on all addresses it is not
    while one address has it."""
    await node.api.run_pods(
        with_port("one", "127.0.0.1"),
        with_port("two", "127.0.0.2"),
        with_port("udp", "127.0.0.1", "UDP"),
    )
    await refused(node, with_port("all"), "NodePorts", PORTS)
    await refused(node, with_port("again", "127.0.0.2"), "NodePorts", PORTS)


def with_affinity(name: str, key: str, operator: str, *values: str, by: str) -> PodPlan:
    """A pod that needs a node with such a label, or with `by="matchFields"` such a field."""
    rule: dict[str, Any] = {"key": key, "operator": operator}
    if values:
        rule["values"] = list(values)
    terms = {"nodeSelectorTerms": [{by: [rule]}]}
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return pod(name, affinity={"nodeAffinity": needed})


@conformance(id="admit-affinity", rules=["LIFE-226.1"], needs=[API])
async def the_required_affinity_is_asked_again(node: Node) -> None:
    """A pod whose required node affinity does not match this node is refused; one that asks for the
    node by its name, or for a label that it does not have, is admitted."""
    labels, fields = "matchExpressions", "matchFields"
    await node.api.run_pods(
        with_affinity("named", "metadata.name", "In", node.name, by=fields),
        with_affinity("without", "example.com/gpu", "DoesNotExist", by=labels),
    )
    for plan in (
        with_affinity("gpu", "example.com/gpu", "In", "yes", by=labels),
        with_affinity("other", "metadata.name", "NotIn", node.name, by=fields),
    ):
        await refused(node, plan, "NodeAffinity", AFFINITY)


@conformance(
    id="admit-taints",
    rules=["LIFE-226.4"],
    needs=[API],
    node_config={
        "registerWithTaints": [
            {"key": "example.com/out", "effect": "NoExecute", "value": "yes"},
            {"key": "example.com/full", "effect": "NoSchedule"},
        ]
    },
)
async def only_taints_that_end_pods_count(node: Node) -> None:
    """A pod that does not tolerate a taint NoExecute is refused; a taint NoSchedule is the
    scheduler's business."""
    await refused(node, pod("no"), "TaintToleration", TAINTS)
    tolerations = [{"key": "example.com/out", "operator": "Exists", "effect": "NoExecute"}]
    await node.api.run_pods(pod("yes", tolerations=tolerations))


@conformance(
    id="admit-exactly", rules=["LIFE-225.1", "LIFE-225.2"], needs=[API], node_config={"maxPods": 2}
)
async def a_pod_may_use_exactly_what_is_left(node: Node) -> None:
    """A pod that requests exactly the CPU of the node is admitted, one that requests 1m more than
    is left is not; nor is a third pod where two may run. A resource that the node does not know
    does not matter."""
    await node.run_until(lambda: node.api.allocatable("cpu"), within_s=limits.START_S)
    cpu = node.api.allocatable("cpu")
    amounts: dict[str, Any] = {
        "requests": {"cpu": cpu, "example.com/unknown": "1"},
        "limits": {"example.com/unknown": "1"},
    }
    await node.api.run_pods(pod("all", container("main", resources=amounts)))
    total = int(cpu) * 1000 if cpu.isdecimal() else int(cpu.removesuffix("m"))
    text = "Node didn't have enough resource: cpu, "
    text += f"requested: 1, used: {total}, capacity: {total}"
    more: dict[str, Any] = {"requests": {"cpu": "1m"}}
    await refused(node, pod("more", container("main", resources=more)), "OutOfcpu", text)
    await node.api.run_pods(pod("idle"))
    text = "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"
    await refused(node, pod("third"), "OutOfpods", text)
    expect_equal(node, node.count("RunPodSandbox"), 2, "sandboxes")
