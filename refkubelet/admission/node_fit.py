"""Whether a pod belongs on this node. Pure.

Operating system and policy of supplemental groups (LIFE-224), then what the scheduler has asked
before: selector and affinity, name, host ports, taints (LIFE-226). Static pods, and pods bound to
the node by hand, are asked these questions here only. Last, whether the node has room for new pods:
the eviction manager says what it is short of.
Upstream: pkg/kubelet/lifecycle/predicate.go and the scheduler's plugins NodeAffinity, NodeName,
NodePorts, TaintToleration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from refkubelet.admission.admit_handler import Rejection
from refkubelet.model.objects import Node, Pod
from refkubelet.model.pod import (
    is_critical,
    is_static,
    labels,
    sidecars,
    tolerates,
    uses_host_network,
)
from refkubelet.model.qos import qos_class

AFFINITY: Final = "NodeAffinity"
NO_MATCH: Final[Mapping[str, str]] = MappingProxyType(
    {
        AFFINITY: "node(s) didn't match Pod's node affinity/selector",
        "NodeName": "node(s) didn't match the requested node name",
        "NodePorts": "node(s) didn't have free ports for the requested pod ports",
        "TaintToleration": "node(s) had taints that the pod didn't tolerate",
    }
)
MEMORY_PRESSURE: Final = "MemoryPressure"
MEMORY_TAINT: Final = "node.kubernetes.io/memory-pressure"
EVICTED: Final = "Evicted"  # the reason of evictions, and of refusals under pressure
ANY_ADDRESS: Final = "0.0.0.0"
NODE_OS: Final = "linux"
OS_LABEL: Final = "kubernetes.io/os"
HostPort = tuple[str, str, int]  # address, protocol, port


class NodeView(Struct, frozen=True):
    """What the checks need of the Node. `taints`: (key, value, effect)."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    taints: tuple[tuple[str, str, str], ...] = ()
    strict_groups: bool = False  # the runtime can keep to supplementalGroupsPolicy Strict


def node_view(node: Node) -> NodeView:
    """The view of a Node object."""
    meta, spec = node.metadata, node.spec
    taints = (spec.taints if spec is not None else None) or ()
    return NodeView(
        (meta.name if meta is not None else None) or "",
        (meta.labels if meta is not None else None) or {},
        tuple((taint.key, taint.value or "", taint.effect) for taint in taints),
    )


def operating_system(pod: Pod) -> Rejection | None:
    """LIFE-224: refuses a pod that is for another operating system, by its label (a label, no
    selector) or by the field `os`."""
    if labels(pod).get(OS_LABEL, NODE_OS) != NODE_OS:
        text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", text)
    named = pod.spec.os.name if pod.spec.os is not None else NODE_OS
    if named != NODE_OS:
        text = "Failed to admit pod as the OS field doesn't match node OS"
        return Rejection("PodOSNotSupported", text)
    return None


def supplemental_groups(pod: Pod, view: NodeView) -> Rejection | None:
    """LIFE-224: refuses the policy Strict where the runtime does not know it."""
    context = pod.spec.securityContext
    if context is None or context.supplementalGroupsPolicy != "Strict" or view.strict_groups:
        return None
    text = "SupplementalGroupsPolicy=Strict is not supported in this node"
    return Rejection("SupplementalGroupsPolicyNotSupported", text)


def mismatches(pod: Pod, others: Iterable[Pod], view: NodeView) -> tuple[Rejection, ...]:
    """Every check that fails, in this order: affinity, name, ports, NoExecute taints (LIFE-226)."""
    checks = (
        (AFFINITY, matches_affinity(pod, view)),
        ("NodeName", pod.spec.nodeName in (None, "", view.name)),
        ("NodePorts", ports_are_free(pod, others)),
        ("TaintToleration", is_static(pod) or tolerates_all(pod, view)),
    )
    return tuple(
        Rejection(name, f"Predicate {name} failed: {NO_MATCH[name]}")
        for name, passed in checks
        if not passed
    )


def matches_affinity(pod: Pod, node: NodeView) -> bool:
    """The labels match nodeSelector, and at least one term of the required node affinity."""
    spec = pod.spec
    selector = spec.nodeSelector or {}
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = spec.affinity.nodeAffinity if spec.affinity is not None else None
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity else None
    return required is None or matches_terms(required.nodeSelectorTerms, node)


def matches_terms(terms: Iterable[Any], node: NodeView) -> bool:
    """At least one of these terms of a node selector matches the node."""
    return any(_term(term, node) for term in terms)


def _term(term: Any, node: NodeView) -> bool:
    """Every expression and field of a term matches; an empty term matches nothing."""
    fields = {"metadata.name": node.name}
    requirements = [(rule, node.labels) for rule in term.matchExpressions or ()]
    requirements += [(rule, fields) for rule in term.matchFields or ()]
    return bool(requirements) and all(_requirement(rule, values) for rule, values in requirements)


def _requirement(rule: Any, values: Mapping[str, str]) -> bool:
    value, listed = values.get(rule.key), rule.values or ()
    match rule.operator:
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, listed, greater=rule.operator == "Gt")
        case _:
            return False


def _compares(value: str | None, wanted: Iterable[str], *, greater: bool) -> bool:
    try:
        (limit,) = (int(text) for text in wanted)
        number = int(value or "")
    except ValueError:
        return False
    return number > limit if greater else number < limit


def ports_are_free(pod: Pod, active: Iterable[Pod]) -> bool:
    """No other active pod has one of the pod's host ports, on the same address or on all."""
    wanted = tuple(host_ports(pod))
    if not wanted:
        return True
    busy = [port for other in active for port in host_ports(other)]
    return not any(_collide(port, used) for port in wanted for used in busy)


def host_ports(pod: Pod) -> Iterator[HostPort]:
    """The host ports of the containers that stay: regular ones and sidecars."""
    for container in (*pod.spec.containers, *sidecars(pod)):
        for port in container.ports or ():
            number = port.hostPort or (port.containerPort if uses_host_network(pod) else 0)
            if number:
                yield port.hostIP or ANY_ADDRESS, port.protocol or "TCP", number


def _collide(one: HostPort, other: HostPort) -> bool:
    same_address = one[0] == other[0] or ANY_ADDRESS in (one[0], other[0])
    return same_address and one[1:] == other[1:]


def tolerates_all(pod: Pod, node: NodeView) -> bool:
    """Every NoExecute taint of the node is tolerated."""
    return all(
        tolerates(pod, key, value, effect)
        for key, value, effect in node.taints
        if effect == "NoExecute"
    )


def admit_under_pressure(pod: Pod, conditions: Sequence[str]) -> Rejection | None:
    """The refusal of a new pod under pressure conditions; None: admitted (EVIC-110, EVIC-111).
    `conditions`: the pressure conditions that are True.

    Critical pods are always admitted. If memory pressure is the only condition, so are pods that
    are not BestEffort and pods that tolerate its taint; all other pods are refused.
    Upstream: pkg/kubelet/eviction/eviction_manager.go: Admit.
    """
    if not conditions or is_critical(pod):
        return None
    if list(conditions) == [MEMORY_PRESSURE] and (
        qos_class(pod) != "BestEffort" or tolerates(pod, MEMORY_TAINT, "", "NoSchedule")
    ):
        return None
    return Rejection(EVICTED, f"The node had condition: [{' '.join(conditions)}]. ")
