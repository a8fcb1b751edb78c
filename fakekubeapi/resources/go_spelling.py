"""Parts of objects as refusals show them: the JSON of Go's internal types, which have other field
names than the API, each field even where nothing is in it, and an order of their own. Pure; facts
of Kubernetes 1.36.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final

Object = Mapping[str, Any]
_SOURCES: Final = (
    *("GCEPersistentDisk", "AWSElasticBlockStore", "HostPath", "Glusterfs", "NFS", "RBD"),
    *("Quobyte", "ISCSI", "FlexVolume", "Cinder", "CephFS", "FC", "Flocker", "AzureFile"),
    *("VsphereVolume", "AzureDisk", "PhotonPersistentDisk", "PortworxVolume", "ScaleIO"),
    *("Local", "StorageOS", "CSI"),
)
"""The sources of persistent volumes, in the order in which they are shown."""
_CSI: Final = (
    ("Driver", "driver", ""),
    ("VolumeHandle", "volumeHandle", ""),
    ("ReadOnly", "readOnly", False),
    ("FSType", "fsType", ""),
)
_CSI_SECRETS: Final = (
    *("ControllerPublishSecretRef", "NodeStageSecretRef", "NodePublishSecretRef"),
    *("ControllerExpandSecretRef", "NodeExpandSecretRef"),
)
_KNOWN: Final = frozenset(("hostPath", "local", "csi"))
"""The sources whose fields are known here."""


def node_driver(driver: Object) -> dict[str, Any]:
    """A driver of a CSINode. How many volumes it takes may change and is not shown."""
    return {
        "Name": driver.get("name", ""),
        "NodeID": driver.get("nodeID", ""),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def attachment_spec(spec: Object) -> dict[str, Any]:
    """The spec of a VolumeAttachment."""
    source = spec["source"]
    inline = source.get("inlineVolumeSpec")
    return {
        "Attacher": spec["attacher"],
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": None if inline is None else _volume_spec(inline),
        },
        "NodeName": spec["nodeName"],
    }


def sources_differ(old: Object, new: Object) -> str:
    """How the sources of two persistent volumes' specs differ, line by line; "" where one of them
    is of a kind whose fields are not known here."""
    if not _kinds(old) <= _KNOWN or not _kinds(new) <= _KNOWN:
        return ""
    return _differ(volume_sources(old), volume_sources(new))


def claims_differ(old: Object, new: Object) -> str:
    """How the specs of two claims differ, line by line."""
    return _differ(claim_spec(old), claim_spec(new))


def _differ(old: Object, new: Object) -> str:
    was, now = (json.dumps(value, indent=1).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(was, now, lineterm=""))[2:]  # without the names of files
    return "".join(f"{line}\n" for line in lines)


def claim_spec(spec: Object) -> dict[str, Any]:
    """The spec of a claim, of whose selector and data source only the names are known here."""
    resources = spec["resources"]
    return {
        "AccessModes": spec.get("accessModes"),
        "Selector": spec.get("selector"),
        "Resources": {
            "Limits": resources.get("limits"),
            "Requests": resources.get("requests"),
        },
        "VolumeName": spec.get("volumeName", ""),
        "StorageClassName": spec.get("storageClassName"),
        "VolumeMode": spec.get("volumeMode"),
        "DataSource": spec.get("dataSource"),
        "DataSourceRef": spec.get("dataSourceRef"),
        "VolumeAttributesClassName": spec.get("volumeAttributesClassName"),
    }


def volume_sources(spec: Object) -> dict[str, Any]:
    """All the sources that a persistent volume could have; but one are null."""
    host, local, csi = spec.get("hostPath"), spec.get("local"), spec.get("csi")
    shown = dict.fromkeys(_SOURCES)
    if host is not None:
        shown["HostPath"] = {"Path": host.get("path", ""), "Type": host.get("type")}
    if local is not None:
        shown["Local"] = {"Path": local.get("path", ""), "FSType": local.get("fsType")}
    if csi is not None:
        shown["CSI"] = _csi_source(csi)
    return shown


def _kinds(spec: Object) -> set[str]:
    named = {name.lower() for name in _SOURCES}
    return {key for key in spec if key.lower() in named}


def _csi_source(source: Object) -> dict[str, Any]:
    shown = {name: source.get(field, empty) for name, field, empty in _CSI}
    attributes = source.get("volumeAttributes")
    shown["VolumeAttributes"] = attributes and dict(sorted(attributes.items()))
    for name in _CSI_SECRETS:
        secret = source.get(name[0].lower() + name[1:])
        if secret is not None:
            secret = {"Name": secret.get("name", ""), "Namespace": secret.get("namespace", "")}
        shown[name] = secret
    return shown


def _volume_spec(spec: Object) -> dict[str, Any]:
    """The spec of a volume inside of a VolumeAttachment, which has few of a PersistentVolume's
    fields."""
    return {
        "Capacity": None,
        **volume_sources(spec),
        "AccessModes": spec.get("accessModes"),
        "ClaimRef": None,
        "PersistentVolumeReclaimPolicy": spec.get("persistentVolumeReclaimPolicy", ""),
        "StorageClassName": spec.get("storageClassName", ""),
        "MountOptions": spec.get("mountOptions"),
        "VolumeMode": spec.get("volumeMode"),
        "NodeAffinity": None,
        "VolumeAttributesClassName": spec.get("volumeAttributesClassName"),
    }
