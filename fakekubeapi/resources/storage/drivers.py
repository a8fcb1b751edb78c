"""The rules of CSI drivers (CSIDriver) and of the drivers that a node has (CSINode).

Upstream: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation, pkg/registry/storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fakekubeapi.resources.common.go_spelling import node_driver
from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import (
    Cause,
    duplicate,
    invalid_texts,
    invalid_value,
    required,
    unsupported_value,
)
from kubeobjects.csi_sources import driver_name_causes
from kubeobjects.metadata import (
    IMMUTABLE,
    finalizer_causes,
    metadata_causes,
    new_finalizer_causes,
    server_owned_causes,
)
from kubeobjects.names import qualified_name_problems
from kubeobjects.pods.common.checks import not_negative, optional_word

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

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _driver_causes(obj["spec"])

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        spec, was = new["spec"], old["spec"]
        yield from _driver_causes(spec)
        for field, printed_name in (
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ):
            if spec[field] != was.get(field):
                yield invalid_value(f"spec.{printed_name}", spec[field], IMMUTABLE)


def _complete_driver(spec: dict[str, Any]) -> None:
    for field, value in _DRIVER_DEFAULTS.items():
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _driver_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    yield from optional_word(spec["fsGroupPolicy"], "spec.fsGroupPolicy", _FS_GROUP_POLICIES)
    tokens = spec.get("tokenRequests") or []
    yield from _token_causes(tokens)
    for mode in spec["volumeLifecycleModes"]:
        if mode not in _LIFECYCLES:
            yield unsupported_value("spec.volumeLifecycleModes", mode, _LIFECYCLES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _MIN_UPDATE_S:
        text = f"must be greater than or equal to {_MIN_UPDATE_S} seconds"
        yield invalid_value("spec.nodeAllocatableUpdatePeriodSeconds", period, text)
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not tokens:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid_value("spec.serviceAccountTokenInSecrets", in_secrets, text)


def _token_causes(tokens: list[dict[str, Any]]) -> Iterator[Cause]:
    """What is wrong with the tokens that a driver wants: one for each audience."""
    audiences: set[str] = set()
    for i, token in enumerate(tokens):
        path, audience = f"spec.tokenRequests[{i}]", token["audience"]
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        lasts, field = token.get("expirationSeconds"), f"{path}.expirationSeconds"
        if lasts is not None and lasts < _MIN_TOKEN_S:
            text = "may not specify a duration less than 10 minutes"
            yield invalid_value(field, lasts, text)
        if lasts is not None and lasts > _MAX_TOKEN_S:
            text = "may not specify a duration larger than 2^32 seconds"
            yield invalid_value(field, lasts, text)


class CheckedAnewStrategy(StorageStrategy):
    """Objects that the API server checks like new ones whenever they change."""

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        metadata, was = new["metadata"], old["metadata"]
        wrong = list(metadata_causes(metadata))
        yield from new_finalizer_causes(metadata, was)
        yield from wrong
        yield from finalizer_causes(metadata, core=False)
        yield from wrong
        yield from server_owned_causes(metadata, was)
        yield from self.validate_create(new)


class NodeDriversStrategy(CheckedAnewStrategy):
    """CSINode objects: the drivers that are registered on a node. What is said of a driver does
    not change as long as it is there, but for how many volumes it takes."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """A client may change everything."""

    def admit(self, obj: Object) -> None:
        _without_empty_lists(obj["spec"])

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _node_causes(obj["spec"])

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        for was in old["spec"]["drivers"] or ():
            for new_driver in new["spec"]["drivers"] or ():
                printed_driver = node_driver(new_driver)
                if new_driver["name"] == was["name"] and printed_driver != node_driver(was):
                    yield invalid_value("spec.drivers", printed_driver, IMMUTABLE)


def _without_empty_lists(spec: dict[str, Any]) -> None:
    """Make empty lists null: the API server keeps objects in a form that has no empty lists."""
    spec["drivers"] = spec["drivers"] or None
    for driver in spec["drivers"] or ():
        driver["topologyKeys"] = driver["topologyKeys"] or None


def _node_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    names: set[str] = set()
    for i, driver in enumerate(spec["drivers"] or ()):
        path, name, node = f"spec.drivers[{i}]", driver["name"], driver["nodeID"]
        yield from driver_name_causes(name, f"{path}.name")
        if not node:
            yield required(f"{path}.nodeID")
        if len(node) > _MAX_NODE_ID:
            text = f"must be {_MAX_NODE_ID} characters or less"
            yield invalid_value(f"{path}.nodeID", node, text)
        count = (driver.get("allocatable") or {}).get("count")
        yield from not_negative(count, f"{path}.allocatable.count")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from _topology_causes(driver["topologyKeys"] or [], path)


def _topology_causes(keys: list[str], path: str) -> Iterator[Cause]:
    for i, key in enumerate(keys):
        if not key:
            yield required(path)
        if key in keys[:i]:
            yield duplicate(path, key)
        yield from invalid_texts(path, key, qualified_name_problems(key))
