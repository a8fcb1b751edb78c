"""The API objects the kubelet works with.

The types are lightkube's msgspec structs. They are mutable, but treated as frozen: only the
function that makes an object assigns to its fields; changed copies are made with
`msgspec.structs.replace`.
"""

from typing import TYPE_CHECKING, Any

import msgspec
from lightkube.models.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Lifecycle,
    LifecycleHandler,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    Probe,
    Toleration,
)
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.core_v1 import Node
from lightkube.resources.core_v1 import Pod as ApiPod

__all__ = [
    "Container",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "Lifecycle",
    "LifecycleHandler",
    "Node",
    "ObjectMeta",
    "OwnerReference",
    "Pod",
    "PodCondition",
    "PodIP",
    "PodSpec",
    "PodStatus",
    "Probe",
    "Toleration",
    "decode_pod",
    "to_dict",
]


class Pod(ApiPod):
    """A pod of the API. Its metadata and spec are never None: missing ones are empty, as in Go."""

    if TYPE_CHECKING:
        metadata: ObjectMeta = ObjectMeta()
        spec: PodSpec = PodSpec(containers=[])

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[no-untyped-call]
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = PodSpec(containers=[])


def decode_pod(value: dict[str, Any]) -> Pod:
    """A Pod from its JSON form; unknown fields are ignored (SRC-004).

    Raises `msgspec.ValidationError`, whose text names the field and the wrong type.
    """
    pod: Pod = msgspec.convert(value, Pod)
    return pod


def to_dict(value: Any) -> dict[str, Any]:
    """The JSON form of an API object, without absent fields."""
    result: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return result


def _without_none(value: Any) -> Any:
    if type(value) is dict:
        return {
            k: _without_none(v) if type(v) in (dict, list) else v
            for k, v in value.items()
            if v is not None
        }
    if type(value) is list:
        return [_without_none(v) for v in value]
    return value
