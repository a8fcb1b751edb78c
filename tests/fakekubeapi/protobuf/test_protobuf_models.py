"""The tables say what lightkube's types say: the same fields, with types that fit."""

import importlib
import types
import typing
from datetime import datetime
from importlib.metadata import version
from typing import Any

import msgspec
import pytest
from protobuf_objects import all_messages

from fakekubeapi.protobuf.envelope import has_message
from fakekubeapi.resources import RESOURCES
from kubeobjects.schema.messages import Field, Message, Shape, message

MODELS = tuple(map(int, version("lightkube-models").split(".")[:2]))
NEWER = {
    "authentication.v1": {"TokenRequestSpec": ["attestations"]},
    "core.v1": {
        "ClusterTrustBundleProjection": ["user"],
        "ConfigMapVolumeSource": ["defaultUser"],
        "DownwardAPIVolumeFile": ["user"],
        "DownwardAPIVolumeSource": ["defaultUser"],
        "EmptyDirVolumeSource": ["mode"],
        "GRPCAction": ["mode"],
        "HTTPGetAction": ["protocol"],
        "KeyToPath": ["user"],
        "NodeAllocatableResourceClaimStatus": ["mapping", "overhead"],
        "NodeSpec": ["podPreemptionPolicy"],
        "NodeSystemInfo": ["runningInUserNamespace"],
        "PersistentVolumeClaimStatus": ["healthStatus"],
        "PodCertificateProjection": ["user"],
        "PodSpec": ["evictionResponders"],
        "PodStatus": ["volumeHealth"],
        "ProjectedVolumeSource": ["defaultUser"],
        "SecretVolumeSource": ["defaultUser"],
        "ServiceAccountTokenProjection": ["user"],
        "VolumeMount": ["bindMountOptions"],
    },
    "resource.v1": {
        "Device": ["nodeAllocatableResources"],
        "DeviceCounterConsumption": ["compatibilityGroups"],
        "DeviceRequestAllocationResult": ["skipNodeOperations"],
        "DeviceSubRequest": ["derivedAttributes"],
        "ExactDeviceRequest": ["derivedAttributes"],
        "ResourceSliceSpec": ["partitionTypeAttribute", "skipNodeOperations"],
    },
    "storage.v1": {"CSINode": ["status"]},
}
"""What Kubernetes 1.37 has and 1.36 has not."""
DROPPED = {
    "core.v1.NodeAllocatableResourceClaimStatus.resources",
    "resource.v1.Device.nodeAllocatableResourceMappings",
}
"""What 1.36 has and 1.37 has not."""
TYPE_META = {"kind", "apiVersion"}
JSON_TYPES: dict[str, Any] = {
    "string": str,
    "bytes": str,
    "Quantity": str,
    "int32": int,
    "int64": int,
    "bool": bool,
    "Time": datetime,
    "MicroTime": datetime,
}


def model_of(name: str) -> Any:
    """lightkube's type for a message; None: it has none."""
    package, _, kind = name.rpartition(".")
    module = importlib.import_module(f"lightkube.models.{package.replace('.', '_')}")
    found = getattr(module, kind, None)
    return found if isinstance(found, type) else None


def modelled() -> list[tuple[Message, dict[str, Any]]]:
    """Each message that lightkube has, and the types of its fields."""
    models = [(described, model_of(described.name)) for described in all_messages()]
    return [
        (described, {each.encode_name: each.type for each in msgspec.structs.fields(model)})
        for described, model in models
        if model is not None
    ]


@pytest.mark.skipif(MODELS > (1, 37), reason="what Kubernetes 1.38 has beside is not known here")
def test_every_field_of_a_model_has_a_number() -> None:
    without = {
        f"{described.name}.{name}"
        for described, wanted in modelled()
        for name in wanted.keys() - described.in_json.keys() - TYPE_META
    }
    newer = {
        f"{package}.{kind}.{name}"
        for package, kinds in NEWER.items()
        for kind, names in kinds.items()
        for name in names
    }
    assert without == (newer if MODELS >= (1, 37) else set())


def test_every_field_is_in_the_model_with_a_type_that_fits() -> None:
    count = 0
    for described, wanted in modelled():
        for name, field in described.in_json.items():
            here = f"{described.name}.{name}"
            if here in DROPPED and name not in wanted:
                continue
            assert name in wanted, here
            assert fits(field, real(wanted[name])), (here, wanted[name])
            count += 1
    assert count > 1000


def real(wanted: Any) -> Any:
    """A type that may be missing, without that."""
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        members = [each for each in typing.get_args(wanted) if each is not type(None)]
        return members[0] if len(members) == 1 else Any
    return wanted


def kind_of(wanted: Any) -> Any:
    """A type without those of its members."""
    return typing.get_origin(wanted) or wanted


def fits(field: Field, wanted: Any) -> bool:
    """Whether values of that type are in JSON what the field says."""
    if field.type == "meta.v1.Verbs":
        (field,) = message(field.type).fields
    if field.shape is Shape.LIST:
        (member,) = typing.get_args(wanted)
        return kind_of(wanted) is list and type_fits(field.type, real(member))
    if field.shape is Shape.MAP:
        return kind_of(wanted) is dict
    return type_fits(field.type, wanted)


def type_fits(name: str, wanted: Any) -> bool:
    if not isinstance(kind_of(wanted), type):  # lightkube's field `int` hides the type
        return True
    if name in JSON_TYPES:
        return wanted is JSON_TYPES[name]
    kind = name.rpartition(".")[2]
    return getattr(wanted, "__name__", "") == kind or kind_of(wanted) in (Any, dict)


def test_what_the_server_has_can_be_sent() -> None:
    for resource in RESOURCES:
        for kind in (resource.kind, f"{resource.kind}List")[: 1 + resource.stored]:
            assert has_message(resource.api_version, kind), kind
    others = {
        "Status": "v1",
        "Binding": "v1",
        "DeleteOptions": "apps/v1",
        "Eviction": "policy/v1",
        "TokenRequest": "authentication.k8s.io/v1",
        "PartialObjectMetadataList": "meta.k8s.io/v1",
    }
    for kind, api_version in others.items():
        assert has_message(api_version, kind), kind
    assert not has_message("meta.k8s.io/v1", "Table")
    assert not has_message("../tables/core.v1", "Pod")


def test_every_type_that_a_field_names_is_there() -> None:
    known = {described.name for described in all_messages()}
    assert len(known) > 380
    named = {field.type for each in all_messages() for field in each.fields if "." in field.type}
    assert named <= known
    assert known >= {"core.v1.Pod", "coordination.v1.Lease"}
