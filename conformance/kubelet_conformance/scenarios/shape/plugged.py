"""Words about what is plugged into a kubelet, and about its own port: device plug-ins, credential
plug-ins, requests to the kubelet and their answers, the root directory."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from fakecri.scripts.fields import Amount, Count, ExitCode, Seconds, StatusCode, Text
from kubelet_conformance.scenarios.shape.fields import Number, Words, Yes
from kubelet_conformance.scenarios.shape.selectors import Mark, Part
from kubeobjects.strict.reader import Placed, Strict

Resource: TypeAlias = Annotated[str, Meta(description="vendor.example/widget")]
DeviceMethod: TypeAlias = Literal[
    "GetDevicePluginOptions",
    "ListAndWatch",
    "GetPreferredAllocation",
    "Allocate",
    "PreStartContainer",
]
PodOfPath: TypeAlias = Annotated[str, Meta(description="whose {uid} and {name} the path has")]
Counted: TypeAlias = Annotated[Number, Meta(description="how many; >=1, if not given")]
Since: TypeAlias = Annotated[Mark, Meta(description="only what came after this mark")]

# --- device plug-ins ----------------------------------------------------------------------------


class Device(Strict, kw_only=True):
    """A device of a plug-in."""

    id: str
    health: Annotated[str, Meta(description="Healthy, Unhealthy or another word")] = "Healthy"
    numa: Annotated[tuple[Amount, ...], Meta(description="the NUMA nodes next to it")] = ()


Devices: TypeAlias = Annotated[
    tuple[str | Device, ...], Meta(description="their IDs, or more of them: {id, health, numa}")
]


class PlugIn(Placed, kw_only=True):
    """Start a device plug-in, which registers at the kubelet."""

    resource: Resource
    devices: Devices
    again: Annotated[
        bool, Meta(description="whether it registers again after each start of the kubelet")
    ] = True
    pre_start: Annotated[bool, Meta(description="it wants to be told before a start")] = False
    refused: (
        Annotated[Words, Meta(description="the kubelet must not take it, and say so")] | UnsetType
    ) = UNSET


class SetDevices(Placed, kw_only=True):
    """Tell the kubelet other devices of a plug-in."""

    resource: Resource
    are: Devices


class DeviceFails(Strict, kw_only=True):
    """Calls fail."""

    message: str
    code: StatusCode = "UNKNOWN"


class DeviceDelays(Strict, kw_only=True):
    """Calls are answered later."""

    delay_s: Seconds


class DeviceHangs(Strict, kw_only=True):
    """Calls are never answered."""


class DeviceFault(Placed, kw_only=True):
    """Disturb calls of the kubelet to a device plug-in."""

    resource: Resource
    on: DeviceMethod
    times: Annotated[Count, Meta(description="so many calls; all, if not given")] | UnsetType = (
        UNSET
    )
    fails: DeviceFails | UnsetType = UNSET
    delays: DeviceDelays | UnsetType = UNSET
    hangs: DeviceHangs | UnsetType = UNSET
    ends: Annotated[Yes, Meta(description="no fault any more")] | UnsetType = UNSET

    exactly_one: ClassVar = ("fails", "delays", "hangs", "ends")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ends is not UNSET and self.times is not UNSET:
            raise ValueError("times: wanted a fault beside it")


class DeviceCalls(Placed, kw_only=True):
    """So many calls of the kubelet to a device plug-in."""

    resource: Resource
    method: DeviceMethod
    request: (
        Annotated[
            Part,
            Meta(description="in the message: {container_requests: [{devices_ids: [w1]}]}"),
        ]
        | UnsetType
    ) = UNSET
    count: Counted | UnsetType = UNSET
    since: Since | UnsetType = UNSET


# --- credential plug-ins ------------------------------------------------------------------------


class LoginPlugIn(Placed, kw_only=True):
    """A credential provider plug-in: a program that knows a login."""

    name: str
    match_images: Annotated[tuple[str, ...], Meta(min_length=1, description="as in its entry")]
    cached: Annotated[Text, Meta(description="defaultCacheDuration of its entry")] = "0s"


class Login(Placed, kw_only=True):
    """What a credential plug-in answers from now on."""

    name: str
    user: str = "user"
    places: (
        Annotated[tuple[str, ...], Meta(description="what the login is for; its matchImages")]
        | UnsetType
    ) = UNSET
    code: Annotated[ExitCode, Meta(description="its exit code")] = 0
    takes: Annotated[Seconds, Meta(description="how long it runs")] = 0.0
    text: Annotated[str, Meta(description="it prints this instead of an answer")] | UnsetType = (
        UNSET
    )


class LoginRuns(Placed, kw_only=True):
    """So many runs of a credential plug-in."""

    name: str
    image: Annotated[Words, Meta(description="that it was asked about")] | UnsetType = UNSET
    count: Counted | UnsetType = UNSET
    since: Since | UnsetType = UNSET


# --- requests to the kubelet --------------------------------------------------------------------


class Asking(Placed, kw_only=True):
    """A request to a port of the kubelet."""

    path: Annotated[str, Meta(description="with its query: /containerLogs/default/{name}/main")]
    pod: PodOfPath | UnsetType = UNSET
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD"] = "GET"
    port: Literal["main", "read-only", "healthz"] = "main"
    headers: dict[str, Text] | UnsetType = UNSET
    leaves: (
        Annotated[Seconds, Meta(description="the client leaves after this time")] | UnsetType
    ) = UNSET


class Ask(Asking, kw_only=True):
    """Send a request to a port of the kubelet; what follows goes on beside it."""

    label: Annotated[str, Meta(description="a name for it, for conditions `answer`")]


class AnswerShown(Placed, kw_only=True):
    """The answer to a request of a step `ask`, as soon as it has ended; or to one that is sent at
    each look."""

    to: Annotated[str, Meta(description="the label of a step `ask`")] | UnsetType = UNSET
    ask: Annotated[Asking, Meta(description="a request that is sent now")] | UnsetType = UNSET
    status: Annotated[Number, Meta(description="of HTTP: 200, >=400")] | UnsetType = UNSET
    text: Annotated[Words, Meta(description="of the body")] | UnsetType = UNSET
    headers: Annotated[dict[str, Words], Meta(description="names in small letters")] | UnsetType = (
        UNSET
    )
    has: Annotated[Part, Meta(description="what is in the body, which is JSON")] | UnsetType = UNSET

    exactly_one: ClassVar = ("to", "ask")
    at_least_one: ClassVar = ("status", "text", "headers", "has")


# --- the root directory -------------------------------------------------------------------------


class RootShown(Placed, kw_only=True):
    """The kubelet's root directory, or a file or directory below it."""

    path: Annotated[str, Meta(description="below it; itself, if not given")] | UnsetType = UNSET
    pod: PodOfPath | UnsetType = UNSET
    there: Annotated[bool, Meta(description="false: nothing is there")] = True
    kind: Literal["directory", "file", "link", "socket"] | UnsetType = UNSET
    text: Annotated[Words, Meta(description="of the file")] | UnsetType = UNSET
    entries: (
        Annotated[tuple[str, ...], Meta(description="the directory has these, * is any text")]
        | UnsetType
    ) = UNSET
    no_entries: (
        Annotated[tuple[str, ...], Meta(description="the directory has none of these")] | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        more = self.given().keys() & {"kind", "text", "entries", "no_entries"}
        if not self.there and more:
            raise ValueError(f"there: nothing is there that has {', '.join(sorted(more))}")
