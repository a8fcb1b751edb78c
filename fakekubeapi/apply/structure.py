"""Which parts of an object can be owned on their own: its shape. Pure.

The API gives each list and map a type. A list is atomic (owned as a whole) unless it is a set (each
value has an owner) or a map (each element has one, found by its keys); an object is granular (each
field has an owner) unless it is atomic. The field types are lightkube's; what they do not tell is
in the tables below: `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` of the API's
OpenAPI document.
"""

from __future__ import annotations

import functools
import importlib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

_SET: Final[tuple[str, ...]] = ()
_LISTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "ObjectMeta": {"finalizers": _SET, "ownerReferences": ("uid",)},
    "PodSpec": {
        "containers": ("name",),
        "initContainers": ("name",),
        "ephemeralContainers": ("name",),
        "volumes": ("name",),
        "imagePullSecrets": ("name",),
        "hostAliases": ("ip",),
        "resourceClaims": ("name",),
        "schedulingGates": ("name",),
        "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    },
    "Container": {
        "env": ("name",),
        "ports": ("containerPort", "protocol"),
        "volumeMounts": ("mountPath",),
        "volumeDevices": ("devicePath",),
    },
    "ResourceRequirements": {"claims": ("name",)},
    "ContainerRestartRuleOnExitCodes": {"values": _SET},
    "PodStatus": {
        "conditions": ("type",),
        "podIPs": ("ip",),
        "resourceClaimStatuses": ("name",),
    },
    "NodeSpec": {"podCIDRs": _SET},
    "NodeStatus": {"conditions": ("type",), "addresses": ("type",)},
    "NamespaceStatus": {"conditions": ("type",)},
    "ServiceSpec": {"ports": ("port", "protocol")},
    "ServiceStatus": {"conditions": ("type",)},
    "ServiceAccount": {"secrets": ("name",)},
    "PersistentVolumeClaimStatus": {"conditions": ("type",)},
    "ResourceClaimStatus": {
        "devices": ("driver", "device", "pool", "shareID"),
        "reservedFor": ("uid",),
    },
    "AllocatedDeviceStatus": {"conditions": ("type",)},
    "CSIDriverSpec": {"volumeLifecycleModes": _SET},
    "CSINodeSpec": {"drivers": ("name",)},
    "CertificateSigningRequestStatus": {"conditions": ("type",)},
}
"""The lists of a type that are no atoms: their keys; none: a set."""
_SAME_LISTS: Final = {"EphemeralContainer": "Container"}
_KEY_DEFAULTS: Final = {"protocol": "TCP", "containerPort": 0, "port": 0}
"""What a key is when the element does not have it; "" for others."""
_NO_DEFAULTS: Final = {
    ("ServiceAccount", "secrets"): "name",
    ("ResourceClaimStatus", "devices"): "shareID",
}
"""Keys of lists that are nothing when the element does not have them."""
_ATOMIC: Final = frozenset(
    (
        *("ConfigMapKeySelector", "FileKeySelector", "LabelSelector", "LocalObjectReference"),
        *("NodeSelector", "NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference"),
        *("OwnerReference", "ResourceFieldSelector", "SecretKeySelector", "SecretReference"),
        "TypedLocalObjectReference",
    )
)
"""The types whose objects are owned as a whole."""
_ATOMIC_FIELDS: Final = frozenset(
    (("PodSpec", "nodeSelector"), ("Scheduling", "nodeSelector"), ("ServiceSpec", "selector"))
)
_GRANULAR_FIELDS: Final = frozenset((("PersistentVolumeSpec", "claimRef"),))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value, or a list or object that is owned as a whole."""


@dataclass(frozen=True, slots=True)
class Open:
    """A value of no declared type: objects are granular, all else is owned as a whole."""


@dataclass(frozen=True, slots=True)
class SetOf:
    """A list of plain values, each of which has an owner."""


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with keys that are no fields, such as labels."""

    values: Shape


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose elements are found by these fields of theirs."""

    keys: Mapping[str, Any]
    """Each key -> what it is when the element does not have it; None: then it is no key."""
    elements: Shape

    def keys_of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that an element has, or has by default. Raises: KeyError with `keys` where it
        has none of them."""
        found = {key: item.get(key, default) for key, default in self.keys.items()}
        present = {key: one for key, one in found.items() if one is not None}
        if not present:
            raise KeyError(tuple(self.keys))
        return present


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with declared fields."""

    model: Any
    """lightkube's type of it."""

    def field(self, name: str) -> Shape | None:
        """The shape of a field; None: it is not declared."""
        return _fields(self.model).get(name)


Shape = Leaf | Open | SetOf | MapOf | Keyed | Struct
LEAF: Final = Leaf()
OPEN: Final = Open()


@functools.cache
def shape_of(module: str, kind: str) -> Struct:
    """The shape of the objects of a kind; `module`: where lightkube has its type
    (`resources.core_v1`)."""
    resource = getattr(importlib.import_module(f"lightkube.{module}"), kind)
    return Struct(resource)


def is_atomic(model: Any) -> bool:
    """Whether the objects of a lightkube type are owned as a whole."""
    return model.__name__ in _ATOMIC


def topology(owner: str, name: str, wanted: Any) -> dict[str, Any]:
    """What OpenAPI says of the parts of a field of the type `owner`: its `x-kubernetes-list-type`,
    `-list-map-keys` and `-map-type`."""
    if (owner, name) in _ATOMIC_FIELDS:
        return {"x-kubernetes-map-type": "atomic"}
    if (owner, name) in _GRANULAR_FIELDS:
        return {"x-kubernetes-map-type": "granular"}
    if typing.get_origin(_real(wanted)) is not list:
        return {}
    keys = _LISTS.get(_SAME_LISTS.get(owner, owner), {}).get(name)
    if keys is None:
        return {"x-kubernetes-list-type": "atomic"}
    if not keys:
        return {"x-kubernetes-list-type": "set"}
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


@functools.cache
def _fields(model: Any) -> Mapping[str, Shape]:
    found = {}
    for one in msgspec.structs.fields(model):
        found[one.encode_name] = _of_field(model.__name__, one.encode_name, one.type)
    return found


def _of_field(owner: str, name: str, wanted: Any) -> Shape:
    if (owner, name) in _ATOMIC_FIELDS:
        return LEAF
    real = _real(wanted)
    lists = _LISTS.get(_SAME_LISTS.get(owner, owner), {})
    if name in lists and typing.get_origin(real) is list:
        none = _NO_DEFAULTS.get((owner, name))
        keys = {k: None if k == none else _KEY_DEFAULTS.get(k, "") for k in lists[name]}
        return Keyed(keys, _of_type(typing.get_args(real)[0])) if keys else SetOf()
    if (owner, name) in _GRANULAR_FIELDS:
        return Struct(real)
    return _of_type(wanted)


def _of_type(wanted: Any) -> Shape:
    real = _real(wanted)
    if real is Any:
        return OPEN
    if isinstance(real, type) and issubclass(real, msgspec.Struct):
        return LEAF if real.__name__ in _ATOMIC else Struct(real)
    members = typing.get_args(real)
    if dict in (typing.get_origin(real), real):
        return MapOf(_of_type(members[1]) if len(members) == 2 else LEAF)
    return LEAF


def _real(wanted: Any) -> Any:
    """The type of an optional; of a union of several, text: numbers or texts are leaves."""
    if typing.get_origin(wanted) not in (typing.Union, types.UnionType):
        return wanted
    real = [member for member in typing.get_args(wanted) if member is not type(None)]
    return real[0] if len(real) == 1 else str
