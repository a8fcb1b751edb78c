"""What is written to the Node object: its metadata, its status, its devices. Pure.

Rules: NODE-004, NODE-010, NODE-011, NODE-035, CG-084. Upstream: pkg/kubelet/kubelet_node_status.go:
reconcileExtendedResource, updateDefaultLabels, reconcileCMADAnnotationWithExistingNode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from refkubelet.container_manager.devices.inventory import Amounts
from refkubelet.container_manager.devices.registration import is_extended_resource
from refkubelet.model.quantity import NANO
from refkubelet.node.status import ATTACH_DETACH, NodeFacts

_ADOPTED_LABELS: Final = (
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)


def sent(status: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The status as a patch of the Node that showed `before`. It replaces the list of addresses;
    merged, it would keep addresses that the node no longer has (NODE-011). Volumes that nothing of
    this node uses any more are not shown as in use: as long as they are no controller detaches
    them (NODE-217.1)."""
    patch = {**status, "addresses": [*status["addresses"], {"$patch": "replace"}]}
    if before.get("volumesInUse") and not status.get("volumesInUse"):
        patch["volumesInUse"] = None
    return patch


def volumes_differ(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the Node shows other volumes as in use than it shall."""
    return (before.get("volumesInUse") or []) != (status.get("volumesInUse") or [])


def attached_in(status: Mapping[str, Any]) -> frozenset[str]:
    """The names in volumesAttached."""
    return frozenset(volume.get("name") or "" for volume in status.get("volumesAttached") or ())


def with_devices(facts: NodeFacts, amounts: Amounts) -> NodeFacts:
    """The facts with the present devices in capacity and allocatable."""
    return replace(
        facts,
        capacity={**facts.capacity, **_nano(amounts.capacity)},
        allocatable={**facts.allocatable, **_nano(amounts.allocatable)},
    )


def _nano(numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: number * NANO for name, number in numbers.items()}


def without_devices(status: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """`status` with amount 0 for the extended resources of `before`: those of an earlier machine of
    the same name do not count until their plugins register (upstream:
    reconcileExtendedResource)."""
    old = before.get("capacity") or {}
    none = {name: "0" for name in old if is_extended_resource(name)}
    return {
        **status,
        "capacity": {**none, **status["capacity"]},
        "allocatable": {**none, **status["allocatable"]},
    }


def adoption_patch(facts: NodeFacts, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The corrections to an existing Node's metadata; empty: none (NODE-004)."""
    labels = metadata.get("labels") or {}
    wrong = {
        key: facts.labels[key]
        for key in _ADOPTED_LABELS
        if key in facts.labels and labels.get(key) != facts.labels[key]
    }
    patch: dict[str, Any] = {"labels": wrong} if wrong else {}
    managed = (metadata.get("annotations") or {}).get(ATTACH_DETACH)
    if facts.attach_detach and managed != "true":
        patch["annotations"] = {ATTACH_DETACH: "true"}
    return patch


def without_heartbeat(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status without lastHeartbeatTime, which changes with every update."""
    rows = [
        {k: v for k, v in row.items() if k != "lastHeartbeatTime"}
        for row in status.get("conditions", ())
    ]
    return {**status, "conditions": rows}
