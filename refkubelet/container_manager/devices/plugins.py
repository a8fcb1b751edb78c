"""Device plugins and their calls, as the kubelet uses them.

In real time plugins are sockets in one directory (`sockets.py`), in virtual time objects in this
process; both are a `PluginDirectory`. Every call has a time limit, and every failure is a
`PluginError`.
Upstream: pkg/kubelet/cm/devicemanager/endpoint.go, plugin/v1beta1/client.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

import grpc
from kubecri.deviceplugin import api_pb2 as api

from kubeobjects.golang.grpc_codes import rpc_error
from refkubelet.container_manager.devices import convert
from refkubelet.container_manager.devices.types import Device, PluginOptions
from refkubelet.host.plugin_socket import PluginConnection

Message = Any
Register = Callable[[Message], Awaitable[None]]
"""Takes a RegisterRequest; raises `PluginError` with the answer's text."""

PRE_START_LIMIT_S: Final = 30.0
CALL_LIMIT_S: Final = 120.0  # upstream waits without limit, and its sync loop with it


class PluginError(Exception):
    """A plugin could not be reached, or a call failed; the text is that of a Go client."""


class DeviceConnection(PluginConnection, Protocol):
    """The connection to one plugin. `method`: the name of the call; errors are `grpc.RpcError`s;
    the connection enforces `timeout_s`."""

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...


class PluginDirectory(Protocol):
    """The directory of the plugins' sockets, and the kubelet's own socket in it."""

    async def open(self, register: Register) -> None:
        """Remove all existing sockets, then accept registrations. Raises OSError."""

    async def connect(self, endpoint: str) -> DeviceConnection:
        """Connect to the plugin at a socket of the directory. Raises OSError if none listens."""

    async def connect_at(self, path: str) -> DeviceConnection:
        """Connect to the plugin at a socket anywhere. Raises OSError if none listens."""

    async def close(self) -> None:
        """Accept no more registrations."""


class Plugin:
    """The plugin of one resource. `stopped_at_s`: when its stream ended, monotonic; None: it has
    not. Without a connection (from the checkpoint) every call fails."""

    def __init__(
        self,
        resource: str,
        connection: DeviceConnection | None = None,
        options: PluginOptions | None = None,
        stopped_at_s: float | None = None,
    ) -> None:
        self.resource = resource
        self.options = options or PluginOptions()
        self.stopped_at_s = stopped_at_s
        self._connection = connection

    @classmethod
    async def connected(cls, resource: str, connection: DeviceConnection) -> Plugin:
        """Make the plugin, with the options it answers. Raises `PluginError`."""
        answer = await _call(connection, "GetDevicePluginOptions", api.Empty(), CALL_LIMIT_S)
        return cls(resource, connection, convert.options(answer))

    async def devices(self) -> AsyncIterator[dict[str, Device]]:
        """Yields the whole list of devices at every change. Always ends with a `PluginError`."""
        try:
            async for message in self._alive().stream("ListAndWatch", api.Empty()):
                yield convert.devices(message.devices)
        except grpc.RpcError as error:
            raise _failed(error) from None
        raise PluginError("EOF")

    async def preferred(
        self, available: Iterable[str], must_include: Iterable[str], size: int
    ) -> frozenset[str]:
        """The devices that the plugin prefers; none if it does not have this call. Raises
        `PluginError`."""
        if not self.options.preferred_allocation:
            return frozenset()
        wish = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=sorted(available),
            must_include_deviceIDs=sorted(must_include),
            allocation_size=size,
        )
        request = api.PreferredAllocationRequest(container_requests=[wish])
        try:
            answer = await self._call("GetPreferredAllocation", request)
        except PluginError as error:
            raise PluginError(
                f"device plugin GetPreferredAllocation rpc failed with err: {error}"
            ) from None
        return frozenset(
            device_id for first in answer.container_responses[:1] for device_id in first.deviceIDs
        )

    async def allocate(self, ids: Iterable[str]) -> bytes:
        """Ask for these devices for one container; returns the answer, serialized. Raises
        `PluginError`."""
        wish = api.ContainerAllocateRequest(devices_ids=ids)
        answer = await self._call("Allocate", api.AllocateRequest(container_requests=[wish]))
        if not answer.container_responses:
            raise PluginError("no containers return in allocation response ")
        first: bytes = answer.container_responses[0].SerializeToString(deterministic=True)
        return first

    async def pre_start(self, ids: Iterable[str]) -> None:
        """Announce the start of a container with these devices. Raises `PluginError`."""
        request = api.PreStartContainerRequest(devices_ids=sorted(ids))
        try:
            await self._call("PreStartContainer", request, PRE_START_LIMIT_S)
        except PluginError as error:
            raise PluginError(
                f"device plugin PreStartContainer rpc failed with err: {error}"
            ) from None

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _call(self, method: str, request: Message, limit_s: float = CALL_LIMIT_S) -> Message:
        return await _call(self._alive(), method, request, limit_s)

    def _alive(self) -> DeviceConnection:
        if self._connection is None or self.stopped_at_s is not None:
            raise PluginError(f"endpoint {self.resource} has been stopped")
        return self._connection


async def _call(
    connection: DeviceConnection, method: str, request: Message, limit_s: float
) -> Message:
    try:
        return await connection.call(method, request, timeout_s=limit_s)
    except grpc.RpcError as error:
        raise _failed(error) from None
    except asyncio.CancelledError:
        # grpc cancels the calls of a closed connection: the call has failed, but this task was not
        # cancelled.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise PluginError(rpc_error("CANCELLED", "the connection was closed")) from None


def _failed(error: Any) -> PluginError:
    return PluginError(rpc_error(error.code().name, error.details()))
