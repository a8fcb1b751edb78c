"""The empty object of each kind: the fields that the API server writes even where nothing is set.

They come from Go, which leaves out neither empty structs nor required fields. Bookmarks have them,
and nobody gets to own one of them by creating an object (`managedFields`).
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.registry import Resource

_NODE_INFO: Final = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)
ZERO_VALUES: Final[dict[str, dict[str, Any]]] = {
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Node": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
        },
    },
    "Namespace": {"spec": {}, "status": {}},
    "Event": {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "PersistentVolume": {"spec": {}, "status": {}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Lease": {"spec": {}},
    "ResourceClaim": {"spec": {"devices": {}}, "status": {}},
    "RuntimeClass": {"handler": ""},
    "PriorityClass": {"value": 0},
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": None}},
    "VolumeAttachment": {
        "spec": {"attacher": "", "source": {}, "nodeName": ""},
        "status": {"attached": False},
    },
    "CertificateSigningRequest": {"spec": {"request": None, "signerName": ""}, "status": {}},
}
"""What the objects of bookmarks have beside kind, apiVersion and metadata, as kube-apiserver 1.36.2
sends them: the fields that Go encodes even when they are empty. A client must not take such an
object for a real one (SRC-051)."""


def empty_object(resource: Resource) -> dict[str, Any]:
    """The empty object of that resource."""
    metadata: dict[str, Any] = {}
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    copied: dict[str, Any] = copy_json({**obj, **ZERO_VALUES.get(resource.kind, {})})
    return copied
