from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.podresources import api_pb2

class PodResourcesListerStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> PodResourcesListerAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> PodResourcesListerStub: ...
    List: rpc.Unary[api_pb2.ListPodResourcesRequest, api_pb2.ListPodResourcesResponse]
    GetAllocatableResources: rpc.Unary[api_pb2.AllocatableResourcesRequest, api_pb2.AllocatableResourcesResponse]
    Get: rpc.Unary[api_pb2.GetPodResourcesRequest, api_pb2.GetPodResourcesResponse]

class PodResourcesListerAsyncStub(PodResourcesListerStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> PodResourcesListerAsyncStub: ...  # type: ignore[misc]
    List: rpc.AsyncUnary[api_pb2.ListPodResourcesRequest, api_pb2.ListPodResourcesResponse]  # type: ignore[assignment]
    GetAllocatableResources: rpc.AsyncUnary[api_pb2.AllocatableResourcesRequest, api_pb2.AllocatableResourcesResponse]  # type: ignore[assignment]
    Get: rpc.AsyncUnary[api_pb2.GetPodResourcesRequest, api_pb2.GetPodResourcesResponse]  # type: ignore[assignment]

class PodResourcesListerServicer:
    def List(self, request: api_pb2.ListPodResourcesRequest, context: Any) -> api_pb2.ListPodResourcesResponse | Awaitable[api_pb2.ListPodResourcesResponse]: ...
    def GetAllocatableResources(self, request: api_pb2.AllocatableResourcesRequest, context: Any) -> api_pb2.AllocatableResourcesResponse | Awaitable[api_pb2.AllocatableResourcesResponse]: ...
    def Get(self, request: api_pb2.GetPodResourcesRequest, context: Any) -> api_pb2.GetPodResourcesResponse | Awaitable[api_pb2.GetPodResourcesResponse]: ...

def add_PodResourcesListerServicer_to_server(servicer: PodResourcesListerServicer, server: Any) -> None: ...
