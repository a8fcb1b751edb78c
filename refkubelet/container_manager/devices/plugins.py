"""Device plugins from the kubelet's side: where they are, and their five calls.

In real time plugins are sockets in one directory (`sockets.py`); in virtual time they are objects
in this process. Both are a `PluginDirectory`. What must never happen here: a call without a limit;
an error of a plugin that leaves this module as anything but a `PluginError`.
Upstream: pkg/kubelet/cm/devicemanager/endpoint.go, plugin/v1beta1/client.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

import grpc
from criapi.deviceplugin import api_pb2 as api

from refkubelet.container_manager.devices import convert
from refkubelet.container_manager.devices.types import Device, PluginOptions
from refkubelet.golang.grpc_codes import rpc_error

Message = Any
Register = Callable[[Message], Awaitable[None]]
"""Takes a RegisterRequest; raises `PluginError` with the answer's text."""

PRE_START_LIMIT_S: Final = 30.0
CALL_LIMIT_S: Final = 120.0  # upstream waits without limit, and its sync loop with it


class PluginError(Exception):
    """A plugin could not be reached, or one of its calls failed. The text is a Go client's."""


class PluginConnection(Protocol):
    """One plugin. `method` is the bare RPC name; errors are `grpc.RpcError`s with `.code()` and
    `.details()`; `timeout_s` is kept by the connection."""

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message: ...

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...

    async def close(self) -> None: ...


class PluginDirectory(Protocol):
    """The directory of the plugins' sockets, and the kubelet's own socket in it."""

    async def open(self, register: Register) -> None:
        """Remove all sockets that are there, then take registrations. Raises OSError."""
        ...

    async def connect(self, endpoint: str) -> PluginConnection:
        """The plugin at that socket of the directory. Raises OSError if no plugin listens."""
        ...

    async def close(self) -> None:
        """Take no more registrations."""
        ...


class Plugin:
    """The plugin of one resource. `stopped_at_s`: monotonic time its stream ended, None while it
    lasts. Without a connection (known from the checkpoint only) every call fails."""

    def __init__(
        self,
        resource: str,
        connection: PluginConnection | None = None,
        options: PluginOptions | None = None,
        stopped_at_s: float | None = None,
    ) -> None:
        self.resource = resource
        self.options = options or PluginOptions()
        self.stopped_at_s = stopped_at_s
        self._connection = connection

    @classmethod
    async def connected(cls, resource: str, connection: PluginConnection) -> Plugin:
        """Ask its options. Raises `PluginError`."""
        answer = await _call(connection, "GetDevicePluginOptions", api.Empty(), CALL_LIMIT_S)
        return cls(resource, connection, convert.options(answer))

    async def devices(self) -> AsyncIterator[dict[str, Device]]:
        """The whole list again and again. Raises `PluginError` at the end, whatever ended it."""
        try:
            async for message in self._alive().stream("ListAndWatch", api.Empty()):
                yield convert.devices(message.devices)
        except grpc.RpcError as error:
            raise _failed(error) from None
        raise PluginError("EOF")

    async def preferred(
        self, available: Iterable[str], must_include: Iterable[str], size: int
    ) -> frozenset[str]:
        """What the plugin would choose; nothing when it does not care. Raises `PluginError`."""
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
        """The plugin's answer for one container, in wire form. Raises `PluginError`."""
        wish = api.ContainerAllocateRequest(devices_ids=ids)
        answer = await self._call("Allocate", api.AllocateRequest(container_requests=[wish]))
        if not answer.container_responses:
            raise PluginError("no containers return in allocation response ")
        first: bytes = answer.container_responses[0].SerializeToString(deterministic=True)
        return first

    async def pre_start(self, ids: Iterable[str]) -> None:
        """Tell it that a container with these devices is about to start. Raises `PluginError`."""
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

    def _alive(self) -> PluginConnection:
        if self._connection is None or self.stopped_at_s is not None:
            raise PluginError(f"endpoint {self.resource} has been stopped")
        return self._connection


async def _call(
    connection: PluginConnection, method: str, request: Message, limit_s: float
) -> Message:
    try:
        return await connection.call(method, request, timeout_s=limit_s)
    except grpc.RpcError as error:
        raise _failed(error) from None
    except asyncio.CancelledError:
        # grpc cancels the calls of a connection that is closed, as that of a plugin that has gone:
        # the call has failed, but the task that made it goes on.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise PluginError(rpc_error("CANCELLED", "the connection was closed")) from None


def _failed(error: Any) -> PluginError:
    return PluginError(rpc_error(error.code().name, error.details()))
