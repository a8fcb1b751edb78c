"""What steps and conditions choose: CRI calls, requests at the API, moments."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Method, StatusCode
from kubelet_conformance.scenarios.shape.fields import Anything, Number, Regex, Words
from kubeobjects.strict.reader import Placed

Mark: TypeAlias = Annotated[str, Meta(description="the name of a mark that a step has set")]
Where: TypeAlias = Literal["kubelet", "api"]
DriverName: TypeAlias = Annotated[str, Meta(description="a key of `csi_drivers`")]
CsiMethod: TypeAlias = Literal[
    "GetPluginInfo",
    "NodeGetInfo",
    "NodeGetCapabilities",
    "NodeStageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
    "NodeGetVolumeStats",
    "NodeExpandVolume",
]
Part: TypeAlias = Annotated[
    Any,
    Meta(
        description="what has to be in it: keys with values, a text with * for any text, >=2, 2..4;"
        " each item of a list has to fit some item; null: not there"
    ),
]


class CallSelector(Placed, kw_only=True):
    """CRI calls of the kubelet."""

    method: Method
    pod: Annotated[str, Meta(description="its key in `pods`, or its name")] | UnsetType = UNSET
    container: str | UnsetType = UNSET
    image: Words | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    request: Part | UnsetType = UNSET
    response: Part | UnsetType = UNSET
    failed: Annotated[bool, Meta(description="only those that failed, or did not")] | UnsetType = (
        UNSET
    )
    code: Annotated[StatusCode, Meta(description="failed with this code")] | UnsetType = UNSET
    since: Annotated[Mark, Meta(description="only those after this mark")] | UnsetType = UNSET
    until: Annotated[Mark, Meta(description="only those before this mark")] | UnsetType = UNSET


class RequestSelector(Placed, kw_only=True):
    """Requests of the kubelet at the API server that were answered."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    pod: Annotated[str, Meta(description="requests for this pod")] | UnsetType = UNSET
    subresource: (
        Annotated[str, Meta(description="of the pod: status; every one, if not given")] | UnsetType
    ) = UNSET
    path: Annotated[Regex, Meta(description="found in the path")] | UnsetType = UNSET
    body: Part | UnsetType = UNSET
    status: Annotated[Number, Meta(description="of HTTP: 200, >=400")] | UnsetType = UNSET
    since: Annotated[Mark, Meta(description="only those after this mark")] | UnsetType = UNSET
    until: Annotated[Mark, Meta(description="only those before this mark")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.pod is UNSET) == (self.path is UNSET):
            raise ValueError("wanted exactly one of pod, path")
        if self.subresource is not UNSET and self.pod is UNSET:
            raise ValueError("subresource: wanted a pod beside it")


class CsiCallSelector(Placed, kw_only=True):
    """Calls of the kubelet to a CSI driver."""

    driver: DriverName
    method: CsiMethod
    volume: (
        Annotated[str, Meta(description="a key of `csi_volumes`: only calls about it")] | UnsetType
    ) = UNSET
    request: (
        Annotated[Part, Meta(description="in the message: {volume_context: {size: small}}")]
        | UnsetType
    ) = UNSET
    failed: Annotated[bool, Meta(description="only those that failed, or did not")] | UnsetType = (
        UNSET
    )
    code: Annotated[StatusCode, Meta(description="failed with this code")] | UnsetType = UNSET
    since: Annotated[Mark, Meta(description="only those after this mark")] | UnsetType = UNSET
    until: Annotated[Mark, Meta(description="only those before this mark")] | UnsetType = UNSET


class CsiCallMoment(CsiCallSelector, kw_only=True):
    """The moment of a call to a CSI driver."""

    nth: Annotated[int, Meta(description="1: the first, -1: the last")] = 1
    ended: Annotated[bool, Meta(description="when it was answered, not when it came")] = False


class CallMoment(CallSelector, kw_only=True):
    """The moment of a call."""

    nth: Annotated[int, Meta(description="1: the first, -1: the last")] = 1
    ended: Annotated[bool, Meta(description="when it was answered, not when it came")] = False


class RequestMoment(RequestSelector, kw_only=True):
    """The moment when a request came."""

    nth: Annotated[int, Meta(description="1: the first, -1: the last")] = 1


class ContainerRef(Placed, kw_only=True):
    """A container of the runtime: the newest one of that name, or of an attempt."""

    pod: str
    name: str = "main"
    attempt: int | UnsetType = UNSET


class Moment(Placed, kw_only=True):
    """A moment of the run."""

    call: CallMoment | UnsetType = UNSET
    csi_call: CsiCallMoment | UnsetType = UNSET
    request: RequestMoment | UnsetType = UNSET
    exit: Annotated[ContainerRef, Meta(description="the end of a container")] | UnsetType = UNSET
    mark: Mark | UnsetType = UNSET

    exactly_one: ClassVar = ("call", "csi_call", "request", "exit", "mark")


__all__ = [
    "Anything",
    "CallMoment",
    "CallSelector",
    "ContainerRef",
    "CsiCallMoment",
    "CsiCallSelector",
    "CsiMethod",
    "DriverName",
    "Mark",
    "Moment",
    "Part",
    "RequestMoment",
    "RequestSelector",
    "Where",
]
