"""Makes the content of the Node object from facts: labels, capacity, conditions. Pure.

Values have the JSON form of the API. Rules: NODE-003, NODE-020..022, NODE-030..033.
Upstream: pkg/kubelet/nodestatus/setters.go; kubelet_node_status.go: initialNode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct, field

from refkubelet.container_manager.cgroups.allocatable import shown
from refkubelet.cri.records import HandlerFeatures

NODE_INFO: Final = (  # every field the API wants, NODE-033
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
ATTACH_DETACH: Final = "volumes.kubernetes.io/controller-managed-attach-detach"

# type -> (status True: reason, message, event), (status False: the same)   NODE-020
PRESSURE_TEXTS: Final[Mapping[str, tuple[tuple[str, str, str], tuple[str, str, str]]]] = {
    "MemoryPressure": (
        (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
            "NodeHasSufficientMemory",
        ),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
    ),
    "PIDPressure": (
        (
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
            "NodeHasInsufficientPID",
        ),
        (
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
            "NodeHasSufficientPID",
        ),
    ),
}


class Condition(Protocol):
    """A pressure condition, as the eviction manager computes it."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


class NodeFacts(Struct, frozen=True):
    """The facts that do not change while the kubelet runs. Amounts: resource name -> nano units."""

    name: str  # of the Node
    internal_ips: tuple[str, ...] = ()
    """One, or one of each family; none: the status has a Hostname address only."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Set when the Node is registered (NODE-003); at adoption only those of `default_labels`."""
    taints: tuple[Mapping[str, str], ...] = ()
    """Each with key, value and effect; set only when the Node is registered."""
    provider_id: str = ""  # spec.providerID; "" for none
    attach_detach: bool = True
    """A controller, not this kubelet, attaches volumes; shown in an annotation of the Node."""
    capacity: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """All there is."""
    allocatable: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Capacity less reservations and hard eviction thresholds."""
    required: tuple[str, ...] = ()
    """The resources without whose capacity the node is not ready (NODE-022.3)."""
    info: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The fields of nodeInfo by name; missing texts are "" (NODE-033)."""
    kubelet_port: int = 0
    """The configured one, also where the kubelet has no server."""
    apparmor: bool = True
    """The kernel can enforce profiles (LIFE-227)."""


def default_labels(name: str, architecture: str) -> dict[str, str]:
    """The labels that every Node has (NODE-003). `architecture`: Go's name, as `amd64`."""
    return {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """`amounts`, in nano units, as quantities of the API."""
    return {name: shown(name, amount) for name, amount in sorted(amounts.items())}


def conditions(
    pressures: Sequence[Condition],
    not_ready: Sequence[str],
    previous: Sequence[Mapping[str, Any]],
    now: str,
) -> list[dict[str, Any]]:
    """The conditions of the Node: those of `previous` in their places, and what is missing of
    MemoryPressure, DiskPressure, PIDPressure and Ready, in this order (NODE-020..022). `not_ready`:
    why the node is not ready, empty if it is. lastTransitionTime changes only with the status."""
    under = {c.type for c in pressures if c.status == "True"}
    before = {c.get("type"): c for c in previous}
    own = {
        kind: _pressure(before.get(kind), kind, now, is_under=kind in under)
        for kind in PRESSURE_TEXTS
    }
    own["Ready"] = _ready(before.get("Ready"), not_ready, now)
    in_place = [own.get(str(c.get("type")), dict(c)) for c in previous]
    return [*in_place, *(row for kind, row in own.items() if kind not in before)]


def _pressure(
    before: Mapping[str, Any] | None, kind: str, now: str, *, is_under: bool
) -> dict[str, Any]:
    """The condition of that kind of pressure. While its status stays, only the heartbeat is new:
    what else somebody wrote into it stays, too."""
    status = str(is_under)
    if before is not None and before.get("status") == status:
        return {**before, "lastHeartbeatTime": now}
    reason, message, _ = PRESSURE_TEXTS[kind][0 if is_under else 1]
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _ready(before: Mapping[str, Any] | None, not_ready: Sequence[str], now: str) -> dict[str, Any]:
    """The condition Ready; of the one before it keeps lastTransitionTime, if the status stays."""
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    if not_ready:
        unique = list(dict.fromkeys(not_ready))
        message = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
        condition |= {"status": "False", "reason": "KubeletNotReady", "message": message}
    if before is not None and before.get("status") == condition["status"]:
        del condition["lastTransitionTime"]
        if before.get("lastTransitionTime"):
            condition["lastTransitionTime"] = before["lastTransitionTime"]
    return condition


def flip_events(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The reasons of the events for conditions with another status (NODE-021, NODE-024)."""
    old = {c.get("type"): c.get("status") for c in before}
    reasons: list[str] = []
    for condition in after:
        kind, status = condition["type"], condition["status"]
        if old.get(kind) == status:
            continue
        if kind in PRESSURE_TEXTS:
            reasons.append(PRESSURE_TEXTS[kind][0 if status == "True" else 1][2])
        elif kind in old:
            reasons.append("NodeReady" if status == "True" else "NodeNotReady")
    return reasons


def node_addresses(facts: NodeFacts) -> list[dict[str, str]]:
    """The addresses in the Node's status."""
    addresses = [{"type": "InternalIP", "address": ip} for ip in facts.internal_ips]
    return [*addresses, {"type": "Hostname", "address": facts.name}]


def runtime_fields(
    handlers: Mapping[str, HandlerFeatures], *, strict_groups: bool, declared: Sequence[str]
) -> dict[str, Any]:
    """The features of the runtime and of this kubelet, as fields of the status (NODE-035).

    `handlers`: the runtime's handlers by name, none before the runtime has answered.
    `strict_groups`: it supports the policy Strict of supplemental groups. `declared`: the features
    of this kubelet that pods may require.
    """
    fields: dict[str, Any] = {"declaredFeatures": list(declared)} if declared else {}
    if handlers:
        fields["features"] = {"supplementalGroupsPolicy": strict_groups}
        fields["runtimeHandlers"] = [
            {
                "name": name,
                "features": {
                    "recursiveReadOnlyMounts": can.recursive_read_only_mounts,
                    "userNamespaces": can.user_namespaces,
                },
            }
            for name, can in sorted(handlers.items())
        ]
    return fields


def initial_node(facts: NodeFacts, status: Mapping[str, Any]) -> dict[str, Any]:
    """The Node to create (NODE-003)."""
    metadata: dict[str, Any] = {"name": facts.name, "labels": dict(facts.labels)}
    if facts.attach_detach:
        metadata["annotations"] = {ATTACH_DETACH: "true"}
    spec: dict[str, Any] = {}
    if facts.taints:
        spec["taints"] = [dict(taint) for taint in facts.taints]
    if facts.provider_id:
        spec["providerID"] = facts.provider_id
    return {"metadata": metadata, "spec": spec, "status": dict(status)}
