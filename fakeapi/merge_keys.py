"""Which lists of pods, nodes and their neighbours are merged by key, and by which key.

A strategic merge patch treats a list without a row here as one value (tolerations, taints,
containerStatuses, images, projected sources, ...). A row names the key of the elements; "" marks
a list of plain strings merged as a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Merged:
    """A list merged element by element: `key` identifies one, `element` is their type's name."""

    key: str
    element: str = ""


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
    "Service": {**_META, "spec": "ServiceSpec"},
    "ServiceSpec": {"ports": Merged("port")},
    "ServiceAccount": {
        **_META,
        "secrets": Merged("name"),
        "imagePullSecrets": Merged("name"),
    },
}


def fields_of(type_name: str) -> Mapping[str, Field]:
    """The rows of a type; a kind without rows still merges its metadata."""
    return TYPES.get(type_name, _META if type_name[:1].isupper() else {})
