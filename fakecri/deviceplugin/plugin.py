"""The fake device plugin: a call target for the five methods of v1beta1.DevicePlugin.

It keeps what it was asked (`calls`) and answers as it was told. Devices and health may change at
any time: every watcher gets the new list. What must never happen here: a message shared
with the caller; a wait that virtual time cannot see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.deviceplugin import api_pb2 as api
from msgspec import Struct

from fakecri.errors import CriError, status_code, unknown
from kubeobjects.structs import replace

API_VERSION: Final = "v1beta1"
METHODS: Final = (
    "GetDevicePluginOptions",
    "ListAndWatch",
    "GetPreferredAllocation",
    "Allocate",
    "PreStartContainer",
)


class PluginDevice(Struct, frozen=True):
    """A device. `health`: Healthy, or any other text; `nodes`: the numbers of the NUMA nodes next
    to it."""

    id: str
    health: str = "Healthy"
    nodes: tuple[int, ...] = ()

    def message(self) -> Any:
        device = api.Device(ID=self.id, health=self.health)
        if self.nodes:
            device.topology.nodes.extend(api.NUMANode(ID=node) for node in self.nodes)
        return device


class PluginCall(Struct, frozen=True):
    """One call of the kubelet. `time_s`: when it came, on the loop's clock."""

    method: str
    request: Any
    time_s: float


@dataclass(slots=True)
class _Fault:
    """What happens to the next `times` calls of a method; None: to all of them."""

    text: str = ""
    code: str = "UNKNOWN"
    delay_s: float = 0.0
    hangs: bool = False
    times: int | None = None


class FakeDevicePlugin:
    """A device plugin for `resource` (such as vendor.example/widget) whose devices, answers and
    faults a test sets. It is a call target: `serving` or `in_process` lets a kubelet call it.

    `devices`: IDs, or `PluginDevice`s. `endpoint`: the name of its socket in the device-plugins
    directory, by default made from the resource. What is set in an attribute or by a method counts
    from the next call on.
    """

    def __init__(
        self, resource: str, devices: Iterable[str | PluginDevice] = (), *, endpoint: str = ""
    ) -> None:
        self.resource = resource
        self.endpoint = endpoint or resource.replace("/", "-") + ".sock"
        self.version = API_VERSION
        """The version of the API that it registers with."""
        self.pre_start_required = False
        """An answer to GetDevicePluginOptions, as is `preferred_allocation`."""
        self.preferred_allocation = False
        self.answers: Callable[[Sequence[str]], Any] = self._variable
        """What a container gets for the devices with these IDs: a ContainerAllocateResponse."""
        self.prefers: Callable[[Sequence[str], Sequence[str], int], Iterable[str]] = _first
        """The IDs it prefers, of those available, those that must be included, and a number."""
        self.answer_count = 1
        """How many responses Allocate gives for one container; every other number is wrong."""
        self.calls: list[PluginCall] = []
        """The calls of kubelets, in order."""
        self.refusals: list[str] = []
        """The errors of kubelets that did not take its registration."""
        self.on_call: Callable[[PluginCall], object] = _ignore
        """Called with every call as it comes."""
        self._faults: dict[str, _Fault] = {}
        self._devices: list[PluginDevice] = []
        self._watchers: list[asyncio.Queue[bool]] = []
        self.set_devices(*devices)

    # What it is told

    def set_devices(self, *devices: str | PluginDevice) -> None:
        """It has these devices from now on, and tells every ListAndWatch. An ID may come twice:
        kubelets have to bear that."""
        self._devices = [PluginDevice(d) if isinstance(d, str) else d for d in devices]
        self._tell(True)

    def set_health(self, device_id: str, health: str) -> None:
        """The device has that health from now on: Healthy, Unhealthy or any text."""
        changed = [replace(d, health=health) if d.id == device_id else d for d in self._devices]
        self.set_devices(*changed)

    def fails(
        self, method: str, text: str, *, code: str = "UNKNOWN", times: int | None = None
    ) -> None:
        """The next `times` calls of `method` fail with the gRPC status `code` and `text`; None: all
        calls until `works`. Raises ValueError for a method that device plugins do not have, as do
        `delays`, `hangs` and `works`."""
        self._faults[_known(method)] = _Fault(text, code, times=times)

    def delays(self, method: str, delay_s: float, *, times: int | None = None) -> None:
        """The next `times` calls of `method` take `delay_s` seconds longer; None: all calls."""
        self._faults[_known(method)] = _Fault(delay_s=delay_s, times=times)

    def hangs(self, method: str, *, times: int | None = None) -> None:
        """The next `times` calls of `method` are never answered; None: all calls."""
        self._faults[_known(method)] = _Fault(hangs=True, times=times)

    def works(self, method: str) -> None:
        """Undo `fails`, `delays` and `hangs` for `method`."""
        self._faults.pop(_known(method), None)

    def end_streams(self) -> None:
        """Break every ListAndWatch, as the death of a plugin does."""
        self._tell(False)

    # What it was asked

    @property
    def allocated(self) -> list[tuple[str, ...]]:
        """The device IDs of every Allocate, in order."""
        return [
            tuple(wish.devices_ids)
            for call in self.calls
            if call.method == "Allocate"
            for wish in call.request.container_requests
        ]

    def registration(self) -> Any:
        """The RegisterRequest it sends."""
        options = self._options()
        return api.RegisterRequest(
            version=self.version,
            endpoint=self.endpoint,
            resource_name=self.resource,
            options=options,
        )

    # A call target

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """Answer one unary call. Raises CriError for a fault that was set."""
        self._note(method, request)
        try:
            async with asyncio.timeout(timeout_s):
                await self._misbehave(method)
        except TimeoutError:
            raise CriError(status_code("DEADLINE_EXCEEDED"), "context deadline exceeded") from None
        answer: Message = self._answer(method, request)
        return answer

    async def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        """ListAndWatch: the list now and after every change, until `end_streams`."""
        self._note(method, request)
        await self._misbehave(method)
        changes: asyncio.Queue[bool] = asyncio.Queue()
        self._watchers.append(changes)
        try:
            yield self._list()
            while await changes.get():
                yield self._list()
        finally:
            self._watchers.remove(changes)
        raise CriError(status_code("UNAVAILABLE"), "error reading from server: EOF")

    async def close(self) -> None:
        """Nothing to do: no connection is held between calls."""

    def _note(self, method: str, request: Message) -> None:
        copy = type(request)()
        copy.CopyFrom(request)
        call = PluginCall(_known(method), copy, asyncio.get_running_loop().time())
        self.calls.append(call)
        self.on_call(call)

    async def _misbehave(self, method: str) -> None:
        fault = self._faults.get(method)
        if fault is None or fault.times == 0:
            return
        if fault.times is not None:
            fault.times -= 1
        if fault.hangs:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(fault.delay_s)
        if fault.text:
            raise CriError(status_code(fault.code), fault.text)

    def _answer(self, method: str, request: Any) -> Any:
        match method:
            case "GetDevicePluginOptions":
                return self._options()
            case "GetPreferredAllocation":
                chosen = [self._preferred(wish) for wish in request.container_requests]
                return api.PreferredAllocationResponse(container_responses=chosen)
            case "Allocate":
                responses = [self.answers(wish.devices_ids) for wish in request.container_requests]
                copies = (responses * self.answer_count)[: self.answer_count * len(responses)]
                return api.AllocateResponse(container_responses=copies)
            case "PreStartContainer":
                return api.PreStartContainerResponse()
        raise unknown(f"{method} is no unary method")

    def _preferred(self, wish: Any) -> Any:
        ids = self.prefers(
            list(wish.available_deviceIDs), list(wish.must_include_deviceIDs), wish.allocation_size
        )
        return api.ContainerPreferredAllocationResponse(deviceIDs=ids)

    def _options(self) -> Any:
        return api.DevicePluginOptions(
            pre_start_required=self.pre_start_required,
            get_preferred_allocation_available=self.preferred_allocation,
        )

    def _list(self) -> Message:
        return api.ListAndWatchResponse(devices=[device.message() for device in self._devices])

    def _tell(self, goes_on: bool) -> None:
        for changes in self._watchers:
            changes.put_nowait(goes_on)

    def _variable(self, ids: Sequence[str]) -> Any:
        """One environment variable, `DEVICES_<RESOURCE>`, with the IDs in it."""
        name = "".join(c if c.isalnum() else "_" for c in self.resource.upper())
        return api.ContainerAllocateResponse(envs={f"DEVICES_{name}": ",".join(ids)})


def _known(method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method of a device plugin; wanted {', '.join(METHODS)}")
    return method


def _ignore(call: PluginCall) -> None:
    """The default of `on_call`: does nothing."""


def _first(available: Sequence[str], must_include: Sequence[str], size: int) -> Iterable[str]:
    """The devices that must be included, then the first of the others."""
    return [*must_include, *(device for device in available if device not in must_include)][:size]
