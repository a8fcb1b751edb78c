"""The Node as the kubelet wants it, made from the Node as the API server has it. Pure.

The kubelet compares these two, and not what it wrote last: so it repairs what somebody else has
changed, and leaves alone what is not its own (NODE-015). What it does with each field:

- set anew each time: addresses, daemonEndpoints, images, runtimeHandlers, volumesInUse, and of
  nodeInfo the fields that it knows. What it does not tell any more is removed;
- set while the kubelet has something to tell, else left: features, declaredFeatures;
- capacity, allocatable: its own resources are set, those of others stay, and what they offer in
  capacity is allocatable, too;
- conditions: its own four are set, in their places; those of others stay;
- labels of system and architecture: set;
- everything else: left as it is.

Upstream: pkg/kubelet/kubelet_node_status.go: updateNode, setNodeStatus; nodestatus/setters.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubeobjects.quantity import NANO, QuantityError, parse_nano
from kubeobjects.resource_names import HUGE_PAGES, is_extended_resource
from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.node.status import (
    NODE_INFO,
    Condition,
    NodeFacts,
    conditions,
    node_addresses,
    quantities,
)

OF_THE_MACHINE: Final = ("kubernetes.io/os", "kubernetes.io/arch")
"""The labels that are put right with each update."""
PROVIDED_IP: Final = "alpha.kubernetes.io/provided-node-ip"
"""The annotation by which a kubelet tells a cloud provider its --node-ip; others remove it."""
_ALWAYS_TOLD: Final = ("images", "runtimeHandlers", "volumesInUse")
"""Fields of the status that are removed when the kubelet has nothing to tell there."""
NO_DEVICES: Final = Amounts({}, {})


class NodeReport(Struct, frozen=True):
    """What the kubelet has to tell of its node now."""

    facts: NodeFacts
    now: str  # as in the API
    pressures: Sequence[Condition] = ()
    not_ready: Sequence[str] = ()
    """Why the node is not ready; empty: it is."""
    devices: Amounts = NO_DEVICES
    fields: Mapping[str, Any] | None = None
    """Further fields of the status: of the runtime, images, volumesInUse."""


def updated_node(node: Mapping[str, Any], report: NodeReport) -> dict[str, Any]:
    """`node`, as JSON, with what the kubelet has to tell (NODE-015)."""
    metadata = dict(node.get("metadata") or {})
    labels = report.facts.labels
    own = {key: labels[key] for key in OF_THE_MACHINE if key in labels}
    if own:
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
    if "annotations" in metadata:
        notes = metadata["annotations"] or {}
        metadata["annotations"] = {key: notes[key] for key in notes if key != PROVIDED_IP}
    return {**node, "metadata": metadata, "status": updated_status(node.get("status"), report)}


def updated_status(status: Mapping[str, Any] | None, report: NodeReport) -> dict[str, Any]:
    """`status`, of a Node or None of a new one, with what the kubelet has to tell."""
    before, facts = status or {}, report.facts
    other_fields = {name: value for name, value in before.items() if name not in _ALWAYS_TOLD}
    capacity = {
        **amounts_of(before.get("capacity")),
        **facts.capacity,
        **_nano(report.devices.capacity),
    }
    allocatable = _allocatable(amounts_of(before.get("allocatable")), capacity, report)
    previous = before.get("conditions") or ()
    not_ready = [*report.not_ready, *_missing(facts.required, capacity)]
    return {
        **other_fields,
        **(report.fields or {}),
        "capacity": _shown(before.get("capacity"), capacity),
        "allocatable": _shown(before.get("allocatable"), allocatable),
        "conditions": conditions(report.pressures, not_ready, previous, report.now),
        "addresses": node_addresses(facts),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": facts.kubelet_port}},
        "nodeInfo": {
            **(before.get("nodeInfo") or {}),
            **dict.fromkeys(NODE_INFO, ""),
            **facts.info,
        },
    }


def _missing(required: Sequence[str], capacity: Mapping[str, int]) -> list[str]:
    """Why a node that lacks such resources is not ready (NODE-022.3)."""
    missing = [name for name in required if name not in capacity]
    text = f"missing node capacity for resources: {', '.join(missing)}"
    return [text] if missing else []


def amounts_of(texts: Mapping[str, Any] | None) -> dict[str, int]:
    """The amounts of a resource list, in nano units; texts that are no amounts are left out."""
    amounts = {}
    for name, text in (texts or {}).items():
        try:
            amounts[name] = parse_nano(str(text))
        except QuantityError:
            continue
    return amounts


def _allocatable(
    before: Mapping[str, int], capacity: Mapping[str, int], report: NodeReport
) -> dict[str, int]:
    """What of `capacity` pods can have (NODE-031). Of what the Node showed `before`, resources
    that are nobody's capacity any more are dropped if they are extended ones."""
    facts = report.facts
    reserved = {name: facts.capacity[name] - n for name, n in facts.allocatable.items()}
    if "memory" in reserved:
        reserved["memory"] -= pages_in(facts.capacity)
    previous = {n: a for n, a in before.items() if n in capacity or not is_extended_resource(n)}
    free = {name: max(0, amount - reserved.get(name, 0)) for name, amount in capacity.items()}
    free |= _nano(report.devices.allocatable)
    if "memory" in free:
        free["memory"] = max(0, free["memory"] - pages_in(capacity))
    return {**previous, **free}


def pages_in(amounts: Mapping[str, int]) -> int:
    """The memory of all huge pages, which counts as none of the ordinary memory."""
    return sum(amount for name, amount in amounts.items() if name.startswith(HUGE_PAGES))


def _shown(before: Mapping[str, Any] | None, amounts: Mapping[str, int]) -> dict[str, Any]:
    """`amounts` as quantities; where the Node shows the same amount, in the words it has there,
    and what is there and no amount as it is."""
    shown = amounts_of(before)
    same = {
        name: text for name, text in (before or {}).items() if shown.get(name) == amounts.get(name)
    }
    return {**quantities(amounts), **same}


def _nano(numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: number * NANO for name, number in numbers.items()}
