"""The rules of CSI drivers (CSIDriver) and of the drivers that a node has (CSINode).

Upstream: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation, pkg/registry/storage.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.resources.common.checks import not_negative, one_of
from fakekubeapi.resources.common.go_spelling import node_driver
from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, duplicate, invalid_value, required, unsupported_value
from kubeobjects.csi_sources import driver_name_causes
from kubeobjects.metadata import (
    IMMUTABLE,
    finalizer_causes,
    metadata_causes,
    new_finalizer_causes,
    server_owned_causes,
)
from kubeobjects.names import qualified_name_problems

_DRIVER_DEFAULTS: Final = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}
"""What a CSIDriver says of itself if nobody has; clients rely on these fields to be there."""
_OFF: Final = {"preventPodSchedulingIfMissing": None}
"""The fields of a CSIDriver whose feature gates (VolumeLimitScaling) are off."""
_FS_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Persistent", "Ephemeral")
_MIN_UPDATE_S: Final = 10
_MIN_TOKEN_S: Final = 600
_MAX_TOKEN_S: Final = 2**32
_MAX_NODE_ID: Final = 256


class StorageStrategy(Strategy):
    """What the kinds of storage.k8s.io have in common."""

    returns_deleted = True
    needs_resource_version = True

    def _strict(self, obj: Object) -> bool:
        return self.strict_finalizers


class DriverStrategy(StorageStrategy):
    """CSIDriver objects: how a driver wants to be called. Their generation counts changes of the
    spec, from the first change on."""

    looks = 3

    def prepare_create(self, obj: Object) -> None:
        _complete_driver(obj["spec"])

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        _complete_driver(new["spec"])
        if {**new["spec"], **_OFF} != {**old["spec"], **_OFF}:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def admit(self, obj: Object) -> None:
        for field in _OFF:
            obj["spec"].pop(field, None)

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_driver_causes(obj["spec"])]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        spec, was = new["spec"], old["spec"]
        causes += _driver_causes(spec)
        for field, printed_name in (
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ):
            if spec[field] != was.get(field):
                causes.append(invalid_value(f"spec.{printed_name}", spec[field], IMMUTABLE))
        return causes


def _complete_driver(spec: dict[str, Any]) -> None:
    for field, value in _DRIVER_DEFAULTS.items():
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _driver_causes(spec: dict[str, Any]) -> list[Cause]:
    causes = one_of(spec, "fsGroupPolicy", "spec", _FS_GROUP_POLICIES)
    tokens = spec.get("tokenRequests") or []
    causes += _token_causes(tokens)
    for mode in spec["volumeLifecycleModes"]:
        if mode not in _LIFECYCLES:
            causes.append(unsupported_value("spec.volumeLifecycleModes", mode, _LIFECYCLES))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _MIN_UPDATE_S:
        text = f"must be greater than or equal to {_MIN_UPDATE_S} seconds"
        causes.append(invalid_value("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not tokens:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        causes.append(invalid_value("spec.serviceAccountTokenInSecrets", in_secrets, text))
    return causes


def _token_causes(tokens: list[dict[str, Any]]) -> list[Cause]:
    """What is wrong with the tokens that a driver wants: one for each audience."""
    causes: list[Cause] = []
    audiences: set[str] = set()
    for i, token in enumerate(tokens):
        path, audience = f"spec.tokenRequests[{i}]", token["audience"]
        if audience in audiences:
            causes.append(duplicate(f"{path}.audience", audience))
            continue
        audiences.add(audience)
        lasts, field = token.get("expirationSeconds"), f"{path}.expirationSeconds"
        if lasts is not None and lasts < _MIN_TOKEN_S:
            text = "may not specify a duration less than 10 minutes"
            causes.append(invalid_value(field, lasts, text))
        if lasts is not None and lasts > _MAX_TOKEN_S:
            text = "may not specify a duration larger than 2^32 seconds"
            causes.append(invalid_value(field, lasts, text))
    return causes


class CheckedAnewStrategy(StorageStrategy):
    """Objects that the API server checks like new ones whenever they change."""

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        metadata, was = new["metadata"], old["metadata"]
        wrong = metadata_causes(metadata)
        return [
            *new_finalizer_causes(metadata, was),
            *wrong,
            *finalizer_causes(metadata, core=False),
            *wrong,
            *server_owned_causes(metadata, was),
            *self.validate_create(new),
        ]


class NodeDriversStrategy(CheckedAnewStrategy):
    """CSINode objects: the drivers that are registered on a node. What is said of a driver does
    not change as long as it is there, but for how many volumes it takes."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """A client may change everything."""

    def admit(self, obj: Object) -> None:
        _without_empty_lists(obj["spec"])

    def validate_create(self, obj: Object) -> list[Cause]:
        return [*super().validate_create(obj), *_node_causes(obj["spec"])]

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[Cause]:
        causes = super().validate_update(new, old, subresource)
        for was in old["spec"]["drivers"] or ():
            for new_driver in new["spec"]["drivers"] or ():
                printed_driver = node_driver(new_driver)
                if new_driver["name"] == was["name"] and printed_driver != node_driver(was):
                    causes.append(invalid_value("spec.drivers", printed_driver, IMMUTABLE))
        return causes


def _without_empty_lists(spec: dict[str, Any]) -> None:
    """Make empty lists null: the API server keeps objects in a form that has no empty lists."""
    spec["drivers"] = spec["drivers"] or None
    for driver in spec["drivers"] or ():
        driver["topologyKeys"] = driver["topologyKeys"] or None


def _node_causes(spec: dict[str, Any]) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    for i, driver in enumerate(spec["drivers"] or ()):
        path, name, node = f"spec.drivers[{i}]", driver["name"], driver["nodeID"]
        causes += driver_name_causes(name, f"{path}.name")
        if not node:
            causes.append(required(f"{path}.nodeID"))
        if len(node) > _MAX_NODE_ID:
            text = f"must be {_MAX_NODE_ID} characters or less"
            causes.append(invalid_value(f"{path}.nodeID", node, text))
        causes += not_negative(driver.get("allocatable") or {}, "count", f"{path}.allocatable")
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
        causes += _topology_causes(driver["topologyKeys"] or [], path)
    return causes


def _topology_causes(keys: list[str], path: str) -> list[Cause]:
    causes: list[Cause] = []
    for i, key in enumerate(keys):
        if not key:
            causes.append(required(path))
        if key in keys[:i]:
            causes.append(duplicate(path, key))
        causes += [invalid_value(path, key, text) for text in qualified_name_problems(key)]
    return causes
