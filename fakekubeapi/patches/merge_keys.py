"""Which lists of pods, nodes and other kinds a strategic merge patch merges by key, and which key.

A list that is not in `TYPES` is one value and is replaced (tolerations, taints, containerStatuses,
images, projected sources, ...). The key "" marks a list of plain strings, merged as a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Merged:
    """A list that is merged element by element."""

    key: str
    """The field that identifies an element; "": the elements are plain strings."""
    element: str = ""
    """The name of the elements' type in `TYPES`; "": it has no lists of this kind."""


Field = Merged | str
"""A merged list, or the name of the type of a nested object."""

_META: Final[Mapping[str, Field]] = {"metadata": "ObjectMeta"}

TYPES: Final[Mapping[str, Mapping[str, Field]]] = {
    "ObjectMeta": {"ownerReferences": Merged("uid"), "finalizers": Merged("")},
    "Pod": {**_META, "spec": "PodSpec", "status": "PodStatus"},
    "PodSpec": {
        "containers": Merged("name", "Container"),
        "initContainers": Merged("name", "Container"),
        "ephemeralContainers": Merged("name", "Container"),
        "volumes": Merged("name"),
        "imagePullSecrets": Merged("name"),
        "hostAliases": Merged("ip"),
        "topologySpreadConstraints": Merged("topologyKey"),
        "resourceClaims": Merged("name"),
        "schedulingGates": Merged("name"),
    },
    "Container": {
        "env": Merged("name"),
        "ports": Merged("containerPort"),
        "volumeMounts": Merged("mountPath"),
        "volumeDevices": Merged("devicePath"),
    },
    "PodStatus": {
        "conditions": Merged("type"),
        "podIPs": Merged("ip"),
        "hostIPs": Merged("ip"),
        "resourceClaimStatuses": Merged("name"),
    },
    "Node": {**_META, "spec": "NodeSpec", "status": "NodeStatus"},
    "NodeSpec": {"podCIDRs": Merged("")},
    "NodeStatus": {"conditions": Merged("type"), "addresses": Merged("type")},
    "Namespace": {**_META, "status": "NamespaceStatus"},
    "NamespaceStatus": {"conditions": Merged("type")},
    "Service": {**_META, "spec": "ServiceSpec", "status": "ServiceStatus"},
    "ServiceSpec": {"ports": Merged("port")},
    "ServiceStatus": {"conditions": Merged("type")},
    "PersistentVolumeClaim": {**_META, "status": "PersistentVolumeClaimStatus"},
    "PersistentVolumeClaimStatus": {"conditions": Merged("type")},
    "ResourceClaim": {**_META, "status": "ResourceClaimStatus"},
    "ResourceClaimStatus": {"reservedFor": Merged("uid")},
    "ServiceAccount": {
        **_META,
        "secrets": Merged("name"),
        "imagePullSecrets": Merged("name"),
    },
    "CSINode": {**_META, "spec": "CSINodeSpec"},
    "CSINodeSpec": {"drivers": Merged("name")},
}


def fields_of(type_name: str) -> Mapping[str, Field]:
    """The fields of a type that are merged in a special way. A kind that is not in `TYPES` has its
    metadata; any other unknown type has none."""
    return TYPES.get(type_name, _META if type_name[:1].isupper() else {})
