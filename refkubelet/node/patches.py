"""What is written to the Node object: the difference between what is there and what shall be. Pure.

Rules: NODE-004, NODE-010, NODE-011, NODE-015, CG-084. Upstream:
pkg/kubelet/kubelet_node_status.go: nodeStatusHasChanged, updateDefaultLabels,
reconcileCMADAnnotationWithExistingNode, reconcileExtendedResource, reconcileHugePageResource;
component-helpers/node/util/status.go: PatchNodeStatus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubeobjects.resource_names import HUGE_PAGES, is_extended_resource
from refkubelet.node.status import ATTACH_DETACH
from refkubelet.node.updated import amounts_of
from refkubelet.status.patch import diff_objects

ADOPTED_LABELS: Final = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)
"""The labels that a Node which is there already gets, if the kubelet would give them to a new
one."""
_RESOURCES: Final = ("capacity", "allocatable")


def node_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The strategic merge patch that makes `after` of `before`, without the spec; {}: there is no
    difference. It replaces a list of addresses; merged, it would keep addresses that the node no
    longer has (NODE-011)."""
    metadata = diff_objects(before.get("metadata") or {}, after.get("metadata") or {}, {})
    old, new = before.get("status") or {}, after.get("status") or {}
    status = diff_objects(old, new, {"conditions": "type"})
    if old.get("addresses") and "addresses" in status:
        status["addresses"] = [*new.get("addresses", ()), {"$patch": "replace"}]
    return {name: part for name, part in (("metadata", metadata), ("status", status)) if part}


def has_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the Node has to be written at once (NODE-010): something of the status differs but
    the heartbeats, or a label. Amounts are compared by what they are, conditions in any order, and
    what is empty is as what is not there."""
    old, new = before.get("status") or {}, after.get("status") or {}
    if any(_differs(name, old.get(name), new.get(name)) for name in old.keys() | new.keys()):
        return True
    labels = [(node.get("metadata") or {}).get("labels") for node in (before, after)]
    return _differs("labels", *labels)


def _differs(name: str, old: Any, new: Any) -> bool:
    """Whether a field of that name has another content: most have the very same."""
    return bool(old != new and _compared(name, old) != _compared(name, new))


def _compared(name: str, value: Any) -> Any:
    if name == "conditions":
        rows = [
            {key: each for key, each in row.items() if key != "lastHeartbeatTime"}
            for row in value or ()
        ]
        value = sorted(rows, key=lambda row: str(row.get("type")))
    elif name in _RESOURCES:
        value = {**(value or {}), **amounts_of(value)}
    return _without_empty(value) or None


def _without_empty(value: Any) -> Any:
    """`value` without fields that are empty texts, lists or objects, at every depth."""
    if isinstance(value, Mapping):
        fields = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in fields.items() if each not in (None, "", [], {})}
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value


def attached_in(status: Mapping[str, Any]) -> frozenset[str]:
    """The names in volumesAttached."""
    return frozenset(volume.get("name") or "" for volume in status.get("volumesAttached") or ())


def adopted_node(
    existing: Mapping[str, Any], initial: Mapping[str, Any], *, devices_are_lost: bool
) -> dict[str, Any]:
    """The Node `existing` with the little that a kubelet corrects when it finds one at its start,
    where it would have made `initial` (NODE-004). `devices_are_lost`: this machine is new, and
    knows nothing of the devices of an earlier one of that name."""
    status = dict(existing.get("status") or {})
    new = initial.get("status") or {}
    amounts = {name: dict(status.get(name) or new.get(name) or {}) for name in _RESOURCES}
    if devices_are_lost:
        lost = dict.fromkeys(filter(is_extended_resource, amounts["capacity"]), "0")
        amounts = {name: {**each, **lost} for name, each in amounts.items()}
    pages = {n for n in amounts["capacity"] if n.startswith(HUGE_PAGES)}
    for name in _RESOURCES:
        amounts[name] = _with_pages(amounts[name], new.get(name) or {}, pages)
    status |= {name: each for name, each in amounts.items() if each}
    metadata = _adopted_metadata(existing.get("metadata") or {}, initial.get("metadata") or {})
    return {**existing, "metadata": metadata, "status": status}


def _with_pages(
    amounts: Mapping[str, Any], own: Mapping[str, Any], pages: set[str]
) -> dict[str, Any]:
    """`amounts` with the sizes of huge pages of this machine, `own`, in place of `pages`, the
    sizes that the Node has. Equal amounts keep their texts."""
    shown_amounts, own_amounts = amounts_of(amounts), amounts_of(own)
    remaining = {name: amounts[name] for name in amounts if name not in pages or name in own}
    wrong = {
        name: own[name]
        for name in own
        if name.startswith(HUGE_PAGES) and shown_amounts.get(name) != own_amounts.get(name)
    }
    return {**remaining, **wrong}


def _adopted_metadata(there: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with the labels of `ADOPTED_LABELS`, empty ones removed, and the annotation of
    attaching and detaching as a new Node would have them."""
    own = new.get("labels") or {}
    labels = {**(there.get("labels") or {}), **{k: own[k] for k in ADOPTED_LABELS if k in own}}
    labels = {key: text for key, text in labels.items() if text or own.get(key) != ""}
    managed = (new.get("annotations") or {}).get(ATTACH_DETACH)
    annotations = {k: v for k, v in (there.get("annotations") or {}).items() if k != ATTACH_DETACH}
    if managed:
        annotations[ATTACH_DETACH] = managed
    parts = {"labels": labels, "annotations": annotations}
    return {**there, **{name: part for name, part in parts.items() if part or name in there}}
