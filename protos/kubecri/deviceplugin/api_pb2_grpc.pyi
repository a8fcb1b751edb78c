from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.deviceplugin import api_pb2

class RegistrationStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> RegistrationAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> RegistrationStub: ...
    Register: rpc.Unary[api_pb2.RegisterRequest, api_pb2.Empty]

class RegistrationAsyncStub(RegistrationStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> RegistrationAsyncStub: ...  # type: ignore[misc]
    Register: rpc.AsyncUnary[api_pb2.RegisterRequest, api_pb2.Empty]  # type: ignore[assignment]

class RegistrationServicer:
    def Register(self, request: api_pb2.RegisterRequest, context: Any) -> api_pb2.Empty | Awaitable[api_pb2.Empty]: ...

def add_RegistrationServicer_to_server(servicer: RegistrationServicer, server: Any) -> None: ...

class DevicePluginStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> DevicePluginAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> DevicePluginStub: ...
    GetDevicePluginOptions: rpc.Unary[api_pb2.Empty, api_pb2.DevicePluginOptions]
    ListAndWatch: rpc.ServerStream[api_pb2.Empty, api_pb2.ListAndWatchResponse]
    GetPreferredAllocation: rpc.Unary[api_pb2.PreferredAllocationRequest, api_pb2.PreferredAllocationResponse]
    Allocate: rpc.Unary[api_pb2.AllocateRequest, api_pb2.AllocateResponse]
    PreStartContainer: rpc.Unary[api_pb2.PreStartContainerRequest, api_pb2.PreStartContainerResponse]

class DevicePluginAsyncStub(DevicePluginStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> DevicePluginAsyncStub: ...  # type: ignore[misc]
    GetDevicePluginOptions: rpc.AsyncUnary[api_pb2.Empty, api_pb2.DevicePluginOptions]  # type: ignore[assignment]
    ListAndWatch: rpc.AsyncServerStream[api_pb2.Empty, api_pb2.ListAndWatchResponse]  # type: ignore[assignment]
    GetPreferredAllocation: rpc.AsyncUnary[api_pb2.PreferredAllocationRequest, api_pb2.PreferredAllocationResponse]  # type: ignore[assignment]
    Allocate: rpc.AsyncUnary[api_pb2.AllocateRequest, api_pb2.AllocateResponse]  # type: ignore[assignment]
    PreStartContainer: rpc.AsyncUnary[api_pb2.PreStartContainerRequest, api_pb2.PreStartContainerResponse]  # type: ignore[assignment]

class DevicePluginServicer:
    def GetDevicePluginOptions(self, request: api_pb2.Empty, context: Any) -> api_pb2.DevicePluginOptions | Awaitable[api_pb2.DevicePluginOptions]: ...
    def ListAndWatch(self, request: api_pb2.Empty, context: Any) -> Iterator[api_pb2.ListAndWatchResponse] | AsyncIterator[api_pb2.ListAndWatchResponse]: ...
    def GetPreferredAllocation(self, request: api_pb2.PreferredAllocationRequest, context: Any) -> api_pb2.PreferredAllocationResponse | Awaitable[api_pb2.PreferredAllocationResponse]: ...
    def Allocate(self, request: api_pb2.AllocateRequest, context: Any) -> api_pb2.AllocateResponse | Awaitable[api_pb2.AllocateResponse]: ...
    def PreStartContainer(self, request: api_pb2.PreStartContainerRequest, context: Any) -> api_pb2.PreStartContainerResponse | Awaitable[api_pb2.PreStartContainerResponse]: ...

def add_DevicePluginServicer_to_server(servicer: DevicePluginServicer, server: Any) -> None: ...
