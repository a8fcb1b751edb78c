from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.pluginregistration import api_pb2

class RegistrationStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> RegistrationAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> RegistrationStub: ...
    GetInfo: rpc.Unary[api_pb2.InfoRequest, api_pb2.PluginInfo]
    NotifyRegistrationStatus: rpc.Unary[api_pb2.RegistrationStatus, api_pb2.RegistrationStatusResponse]

class RegistrationAsyncStub(RegistrationStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> RegistrationAsyncStub: ...  # type: ignore[misc]
    GetInfo: rpc.AsyncUnary[api_pb2.InfoRequest, api_pb2.PluginInfo]  # type: ignore[assignment]
    NotifyRegistrationStatus: rpc.AsyncUnary[api_pb2.RegistrationStatus, api_pb2.RegistrationStatusResponse]  # type: ignore[assignment]

class RegistrationServicer:
    def GetInfo(self, request: api_pb2.InfoRequest, context: Any) -> api_pb2.PluginInfo | Awaitable[api_pb2.PluginInfo]: ...
    def NotifyRegistrationStatus(self, request: api_pb2.RegistrationStatus, context: Any) -> api_pb2.RegistrationStatusResponse | Awaitable[api_pb2.RegistrationStatusResponse]: ...

def add_RegistrationServicer_to_server(servicer: RegistrationServicer, server: Any) -> None: ...
