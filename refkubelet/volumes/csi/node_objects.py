"""What CSINode and Node say of CSI drivers. Pure.

Rules: NODE-216.3 to .6. Upstream: pkg/volume/csi/nodeinfomanager/nodeinfomanager.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

NODE_IDS: Final = "csi.volume.kubernetes.io/nodeid"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_PLUGINS: Final = (
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/azure-file",
    "kubernetes.io/cinder",
    "kubernetes.io/gce-pd",
    "kubernetes.io/portworx-volume",
    "kubernetes.io/vsphere-volume",
)
"""The plug-ins of earlier kubelets whose volumes CSI drivers now serve."""
MAX_COUNT: Final = 2**31 - 1


class NodeInfoError(Exception):
    """The cluster cannot be told of a driver; the text is the kubelet's."""


class DriverOnNode(Struct, frozen=True):
    """A driver as it told of itself. `max_volumes`: 0 is no limit."""

    name: str
    node_id: str
    max_volumes: int = 0
    topology: Mapping[str, str] = field(default_factory=dict)


def new_csi_node(node_name: str, node_uid: str) -> dict[str, Any]:
    """CSINode without drivers."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid}
    return with_migrated(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node_name, "ownerReferences": [owner]},
            "spec": {"drivers": []},
        }
    )


def is_owned_by(csi_node: Mapping[str, Any], node_name: str, node_uid: str) -> bool:
    """Whether CSINode is of the Node with that UID, not of an earlier one."""
    owners = (csi_node.get("metadata") or {}).get("ownerReferences") or []
    owner = ("Node", node_name, node_uid)
    return any((o.get("kind"), o.get("name"), o.get("uid")) == owner for o in owners)


def with_migrated(csi_node: Mapping[str, Any]) -> dict[str, Any]:
    """CSINode with the annotation of migrated plug-ins."""
    metadata = csi_node.get("metadata") or {}
    before = (metadata.get("annotations") or {}).get(MIGRATED) or ""
    if sorted(before.split(",")) == list(MIGRATED_PLUGINS):
        return dict(csi_node)
    annotations = {**(metadata.get("annotations") or {}), MIGRATED: ",".join(MIGRATED_PLUGINS)}
    return {**csi_node, "metadata": {**metadata, "annotations": annotations}}


def with_driver(csi_node: Mapping[str, Any], driver: DriverOnNode) -> dict[str, Any]:
    """CSINode with the driver at the end of the list; as it is if it says the same already."""
    entry: dict[str, Any] = {"name": driver.name, "nodeID": driver.node_id}
    if driver.max_volumes > 0:
        entry["allocatable"] = {"count": min(driver.max_volumes, MAX_COUNT)}
    entry["topologyKeys"] = sorted(driver.topology) or None
    drivers = (csi_node.get("spec") or {}).get("drivers") or []
    if any(_normal(d) == _normal(entry) for d in drivers):
        return with_migrated(csi_node)
    return with_migrated(_with_drivers(csi_node, [*_others(drivers, driver.name), entry]))


def without_driver(csi_node: Mapping[str, Any], driver: str) -> dict[str, Any]:
    """CSINode without the driver."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or []
    if all(d.get("name") != driver for d in drivers):
        return dict(csi_node)
    return _with_drivers(csi_node, _others(drivers, driver))


def driver_patch(node: Mapping[str, Any], driver: DriverOnNode) -> dict[str, Any]:
    """What the Node lacks of the driver's node ID and topology. Raises `NodeInfoError`."""
    metadata = node.get("metadata") or {}
    ids, labels = _node_ids(metadata), metadata.get("labels") or {}
    for key, value in driver.topology.items():
        if labels.get(key, value) != value:
            raise NodeInfoError(
                f'detected topology value collision: driver reported "{key}":"{value}" but '
                f'existing label is "{key}":"{labels[key]}"'
            )
    patch: dict[str, Any] = {}
    if ids.get(driver.name) != driver.node_id:
        patch["annotations"] = _annotation({**ids, driver.name: driver.node_id})
    if any(labels.get(key) != value for key, value in driver.topology.items()):
        patch["labels"] = dict(driver.topology)
    return {"metadata": patch} if patch else {}


def removal_patch(node: Mapping[str, Any], driver: str) -> dict[str, Any]:
    """What takes the driver out of the Node's annotation. Raises `NodeInfoError`."""
    ids = _node_ids(node.get("metadata") or {})
    if driver not in ids:
        return {}
    remaining = {name: node_id for name, node_id in ids.items() if name != driver}
    return {"metadata": {"annotations": _annotation(remaining) if remaining else {NODE_IDS: None}}}


def _annotation(ids: Mapping[str, str]) -> dict[str, str]:
    return {NODE_IDS: json.dumps(ids, sort_keys=True, separators=(",", ":"))}


def _node_ids(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The node IDs by driver. Raises `NodeInfoError` for what is no such annotation."""
    text = (metadata.get("annotations") or {}).get(NODE_IDS) or "{}"
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError) as error:
        ids = error
    if not isinstance(ids, dict) or not all(isinstance(v, str) for v in ids.values()):
        raise NodeInfoError(f'failed to parse node\'s "{NODE_IDS}" annotation value ("{text}")')
    return ids


def _normal(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        "topologyKeys": sorted(entry.get("topologyKeys") or ()),
        "allocatable": (entry.get("allocatable") or {}).get("count"),
    }


def _others(drivers: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [driver for driver in drivers if driver.get("name") != name]


def _with_drivers(csi_node: Mapping[str, Any], drivers: list[dict[str, Any]]) -> dict[str, Any]:
    return {**csi_node, "spec": {**(csi_node.get("spec") or {}), "drivers": drivers}}
