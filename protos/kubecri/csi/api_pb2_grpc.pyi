from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.csi import api_pb2

class IdentityStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> IdentityAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> IdentityStub: ...
    GetPluginInfo: rpc.Unary[api_pb2.GetPluginInfoRequest, api_pb2.GetPluginInfoResponse]

class IdentityAsyncStub(IdentityStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> IdentityAsyncStub: ...  # type: ignore[misc]
    GetPluginInfo: rpc.AsyncUnary[api_pb2.GetPluginInfoRequest, api_pb2.GetPluginInfoResponse]  # type: ignore[assignment]

class IdentityServicer:
    def GetPluginInfo(self, request: api_pb2.GetPluginInfoRequest, context: Any) -> api_pb2.GetPluginInfoResponse | Awaitable[api_pb2.GetPluginInfoResponse]: ...

def add_IdentityServicer_to_server(servicer: IdentityServicer, server: Any) -> None: ...

class NodeStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> NodeAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> NodeStub: ...
    NodeStageVolume: rpc.Unary[api_pb2.NodeStageVolumeRequest, api_pb2.NodeStageVolumeResponse]
    NodeUnstageVolume: rpc.Unary[api_pb2.NodeUnstageVolumeRequest, api_pb2.NodeUnstageVolumeResponse]
    NodePublishVolume: rpc.Unary[api_pb2.NodePublishVolumeRequest, api_pb2.NodePublishVolumeResponse]
    NodeUnpublishVolume: rpc.Unary[api_pb2.NodeUnpublishVolumeRequest, api_pb2.NodeUnpublishVolumeResponse]
    NodeGetVolumeStats: rpc.Unary[api_pb2.NodeGetVolumeStatsRequest, api_pb2.NodeGetVolumeStatsResponse]
    NodeExpandVolume: rpc.Unary[api_pb2.NodeExpandVolumeRequest, api_pb2.NodeExpandVolumeResponse]
    NodeGetCapabilities: rpc.Unary[api_pb2.NodeGetCapabilitiesRequest, api_pb2.NodeGetCapabilitiesResponse]
    NodeGetInfo: rpc.Unary[api_pb2.NodeGetInfoRequest, api_pb2.NodeGetInfoResponse]

class NodeAsyncStub(NodeStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> NodeAsyncStub: ...  # type: ignore[misc]
    NodeStageVolume: rpc.AsyncUnary[api_pb2.NodeStageVolumeRequest, api_pb2.NodeStageVolumeResponse]  # type: ignore[assignment]
    NodeUnstageVolume: rpc.AsyncUnary[api_pb2.NodeUnstageVolumeRequest, api_pb2.NodeUnstageVolumeResponse]  # type: ignore[assignment]
    NodePublishVolume: rpc.AsyncUnary[api_pb2.NodePublishVolumeRequest, api_pb2.NodePublishVolumeResponse]  # type: ignore[assignment]
    NodeUnpublishVolume: rpc.AsyncUnary[api_pb2.NodeUnpublishVolumeRequest, api_pb2.NodeUnpublishVolumeResponse]  # type: ignore[assignment]
    NodeGetVolumeStats: rpc.AsyncUnary[api_pb2.NodeGetVolumeStatsRequest, api_pb2.NodeGetVolumeStatsResponse]  # type: ignore[assignment]
    NodeExpandVolume: rpc.AsyncUnary[api_pb2.NodeExpandVolumeRequest, api_pb2.NodeExpandVolumeResponse]  # type: ignore[assignment]
    NodeGetCapabilities: rpc.AsyncUnary[api_pb2.NodeGetCapabilitiesRequest, api_pb2.NodeGetCapabilitiesResponse]  # type: ignore[assignment]
    NodeGetInfo: rpc.AsyncUnary[api_pb2.NodeGetInfoRequest, api_pb2.NodeGetInfoResponse]  # type: ignore[assignment]

class NodeServicer:
    def NodeStageVolume(self, request: api_pb2.NodeStageVolumeRequest, context: Any) -> api_pb2.NodeStageVolumeResponse | Awaitable[api_pb2.NodeStageVolumeResponse]: ...
    def NodeUnstageVolume(self, request: api_pb2.NodeUnstageVolumeRequest, context: Any) -> api_pb2.NodeUnstageVolumeResponse | Awaitable[api_pb2.NodeUnstageVolumeResponse]: ...
    def NodePublishVolume(self, request: api_pb2.NodePublishVolumeRequest, context: Any) -> api_pb2.NodePublishVolumeResponse | Awaitable[api_pb2.NodePublishVolumeResponse]: ...
    def NodeUnpublishVolume(self, request: api_pb2.NodeUnpublishVolumeRequest, context: Any) -> api_pb2.NodeUnpublishVolumeResponse | Awaitable[api_pb2.NodeUnpublishVolumeResponse]: ...
    def NodeGetVolumeStats(self, request: api_pb2.NodeGetVolumeStatsRequest, context: Any) -> api_pb2.NodeGetVolumeStatsResponse | Awaitable[api_pb2.NodeGetVolumeStatsResponse]: ...
    def NodeExpandVolume(self, request: api_pb2.NodeExpandVolumeRequest, context: Any) -> api_pb2.NodeExpandVolumeResponse | Awaitable[api_pb2.NodeExpandVolumeResponse]: ...
    def NodeGetCapabilities(self, request: api_pb2.NodeGetCapabilitiesRequest, context: Any) -> api_pb2.NodeGetCapabilitiesResponse | Awaitable[api_pb2.NodeGetCapabilitiesResponse]: ...
    def NodeGetInfo(self, request: api_pb2.NodeGetInfoRequest, context: Any) -> api_pb2.NodeGetInfoResponse | Awaitable[api_pb2.NodeGetInfoResponse]: ...

def add_NodeServicer_to_server(servicer: NodeServicer, server: Any) -> None: ...
