from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.podresources_v1alpha1 import api_pb2

class PodResourcesListerStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> PodResourcesListerAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> PodResourcesListerStub: ...
    List: rpc.Unary[api_pb2.ListPodResourcesRequest, api_pb2.ListPodResourcesResponse]

class PodResourcesListerAsyncStub(PodResourcesListerStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> PodResourcesListerAsyncStub: ...  # type: ignore[misc]
    List: rpc.AsyncUnary[api_pb2.ListPodResourcesRequest, api_pb2.ListPodResourcesResponse]  # type: ignore[assignment]

class PodResourcesListerServicer:
    def List(self, request: api_pb2.ListPodResourcesRequest, context: Any) -> api_pb2.ListPodResourcesResponse | Awaitable[api_pb2.ListPodResourcesResponse]: ...

def add_PodResourcesListerServicer_to_server(servicer: PodResourcesListerServicer, server: Any) -> None: ...
