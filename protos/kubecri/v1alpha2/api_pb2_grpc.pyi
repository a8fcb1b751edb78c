from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.v1alpha2 import api_pb2

class RuntimeServiceStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> RuntimeServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> RuntimeServiceStub: ...
    Version: rpc.Unary[api_pb2.VersionRequest, api_pb2.VersionResponse]
    RunPodSandbox: rpc.Unary[api_pb2.RunPodSandboxRequest, api_pb2.RunPodSandboxResponse]
    StopPodSandbox: rpc.Unary[api_pb2.StopPodSandboxRequest, api_pb2.StopPodSandboxResponse]
    RemovePodSandbox: rpc.Unary[api_pb2.RemovePodSandboxRequest, api_pb2.RemovePodSandboxResponse]
    PodSandboxStatus: rpc.Unary[api_pb2.PodSandboxStatusRequest, api_pb2.PodSandboxStatusResponse]
    ListPodSandbox: rpc.Unary[api_pb2.ListPodSandboxRequest, api_pb2.ListPodSandboxResponse]
    CreateContainer: rpc.Unary[api_pb2.CreateContainerRequest, api_pb2.CreateContainerResponse]
    StartContainer: rpc.Unary[api_pb2.StartContainerRequest, api_pb2.StartContainerResponse]
    StopContainer: rpc.Unary[api_pb2.StopContainerRequest, api_pb2.StopContainerResponse]
    RemoveContainer: rpc.Unary[api_pb2.RemoveContainerRequest, api_pb2.RemoveContainerResponse]
    ListContainers: rpc.Unary[api_pb2.ListContainersRequest, api_pb2.ListContainersResponse]
    ContainerStatus: rpc.Unary[api_pb2.ContainerStatusRequest, api_pb2.ContainerStatusResponse]
    UpdateContainerResources: rpc.Unary[api_pb2.UpdateContainerResourcesRequest, api_pb2.UpdateContainerResourcesResponse]
    ReopenContainerLog: rpc.Unary[api_pb2.ReopenContainerLogRequest, api_pb2.ReopenContainerLogResponse]
    ExecSync: rpc.Unary[api_pb2.ExecSyncRequest, api_pb2.ExecSyncResponse]
    Exec: rpc.Unary[api_pb2.ExecRequest, api_pb2.ExecResponse]
    Attach: rpc.Unary[api_pb2.AttachRequest, api_pb2.AttachResponse]
    PortForward: rpc.Unary[api_pb2.PortForwardRequest, api_pb2.PortForwardResponse]
    ContainerStats: rpc.Unary[api_pb2.ContainerStatsRequest, api_pb2.ContainerStatsResponse]
    ListContainerStats: rpc.Unary[api_pb2.ListContainerStatsRequest, api_pb2.ListContainerStatsResponse]
    PodSandboxStats: rpc.Unary[api_pb2.PodSandboxStatsRequest, api_pb2.PodSandboxStatsResponse]
    ListPodSandboxStats: rpc.Unary[api_pb2.ListPodSandboxStatsRequest, api_pb2.ListPodSandboxStatsResponse]
    UpdateRuntimeConfig: rpc.Unary[api_pb2.UpdateRuntimeConfigRequest, api_pb2.UpdateRuntimeConfigResponse]
    Status: rpc.Unary[api_pb2.StatusRequest, api_pb2.StatusResponse]

class RuntimeServiceAsyncStub(RuntimeServiceStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> RuntimeServiceAsyncStub: ...  # type: ignore[misc]
    Version: rpc.AsyncUnary[api_pb2.VersionRequest, api_pb2.VersionResponse]  # type: ignore[assignment]
    RunPodSandbox: rpc.AsyncUnary[api_pb2.RunPodSandboxRequest, api_pb2.RunPodSandboxResponse]  # type: ignore[assignment]
    StopPodSandbox: rpc.AsyncUnary[api_pb2.StopPodSandboxRequest, api_pb2.StopPodSandboxResponse]  # type: ignore[assignment]
    RemovePodSandbox: rpc.AsyncUnary[api_pb2.RemovePodSandboxRequest, api_pb2.RemovePodSandboxResponse]  # type: ignore[assignment]
    PodSandboxStatus: rpc.AsyncUnary[api_pb2.PodSandboxStatusRequest, api_pb2.PodSandboxStatusResponse]  # type: ignore[assignment]
    ListPodSandbox: rpc.AsyncUnary[api_pb2.ListPodSandboxRequest, api_pb2.ListPodSandboxResponse]  # type: ignore[assignment]
    CreateContainer: rpc.AsyncUnary[api_pb2.CreateContainerRequest, api_pb2.CreateContainerResponse]  # type: ignore[assignment]
    StartContainer: rpc.AsyncUnary[api_pb2.StartContainerRequest, api_pb2.StartContainerResponse]  # type: ignore[assignment]
    StopContainer: rpc.AsyncUnary[api_pb2.StopContainerRequest, api_pb2.StopContainerResponse]  # type: ignore[assignment]
    RemoveContainer: rpc.AsyncUnary[api_pb2.RemoveContainerRequest, api_pb2.RemoveContainerResponse]  # type: ignore[assignment]
    ListContainers: rpc.AsyncUnary[api_pb2.ListContainersRequest, api_pb2.ListContainersResponse]  # type: ignore[assignment]
    ContainerStatus: rpc.AsyncUnary[api_pb2.ContainerStatusRequest, api_pb2.ContainerStatusResponse]  # type: ignore[assignment]
    UpdateContainerResources: rpc.AsyncUnary[api_pb2.UpdateContainerResourcesRequest, api_pb2.UpdateContainerResourcesResponse]  # type: ignore[assignment]
    ReopenContainerLog: rpc.AsyncUnary[api_pb2.ReopenContainerLogRequest, api_pb2.ReopenContainerLogResponse]  # type: ignore[assignment]
    ExecSync: rpc.AsyncUnary[api_pb2.ExecSyncRequest, api_pb2.ExecSyncResponse]  # type: ignore[assignment]
    Exec: rpc.AsyncUnary[api_pb2.ExecRequest, api_pb2.ExecResponse]  # type: ignore[assignment]
    Attach: rpc.AsyncUnary[api_pb2.AttachRequest, api_pb2.AttachResponse]  # type: ignore[assignment]
    PortForward: rpc.AsyncUnary[api_pb2.PortForwardRequest, api_pb2.PortForwardResponse]  # type: ignore[assignment]
    ContainerStats: rpc.AsyncUnary[api_pb2.ContainerStatsRequest, api_pb2.ContainerStatsResponse]  # type: ignore[assignment]
    ListContainerStats: rpc.AsyncUnary[api_pb2.ListContainerStatsRequest, api_pb2.ListContainerStatsResponse]  # type: ignore[assignment]
    PodSandboxStats: rpc.AsyncUnary[api_pb2.PodSandboxStatsRequest, api_pb2.PodSandboxStatsResponse]  # type: ignore[assignment]
    ListPodSandboxStats: rpc.AsyncUnary[api_pb2.ListPodSandboxStatsRequest, api_pb2.ListPodSandboxStatsResponse]  # type: ignore[assignment]
    UpdateRuntimeConfig: rpc.AsyncUnary[api_pb2.UpdateRuntimeConfigRequest, api_pb2.UpdateRuntimeConfigResponse]  # type: ignore[assignment]
    Status: rpc.AsyncUnary[api_pb2.StatusRequest, api_pb2.StatusResponse]  # type: ignore[assignment]

class RuntimeServiceServicer:
    def Version(self, request: api_pb2.VersionRequest, context: Any) -> api_pb2.VersionResponse | Awaitable[api_pb2.VersionResponse]: ...
    def RunPodSandbox(self, request: api_pb2.RunPodSandboxRequest, context: Any) -> api_pb2.RunPodSandboxResponse | Awaitable[api_pb2.RunPodSandboxResponse]: ...
    def StopPodSandbox(self, request: api_pb2.StopPodSandboxRequest, context: Any) -> api_pb2.StopPodSandboxResponse | Awaitable[api_pb2.StopPodSandboxResponse]: ...
    def RemovePodSandbox(self, request: api_pb2.RemovePodSandboxRequest, context: Any) -> api_pb2.RemovePodSandboxResponse | Awaitable[api_pb2.RemovePodSandboxResponse]: ...
    def PodSandboxStatus(self, request: api_pb2.PodSandboxStatusRequest, context: Any) -> api_pb2.PodSandboxStatusResponse | Awaitable[api_pb2.PodSandboxStatusResponse]: ...
    def ListPodSandbox(self, request: api_pb2.ListPodSandboxRequest, context: Any) -> api_pb2.ListPodSandboxResponse | Awaitable[api_pb2.ListPodSandboxResponse]: ...
    def CreateContainer(self, request: api_pb2.CreateContainerRequest, context: Any) -> api_pb2.CreateContainerResponse | Awaitable[api_pb2.CreateContainerResponse]: ...
    def StartContainer(self, request: api_pb2.StartContainerRequest, context: Any) -> api_pb2.StartContainerResponse | Awaitable[api_pb2.StartContainerResponse]: ...
    def StopContainer(self, request: api_pb2.StopContainerRequest, context: Any) -> api_pb2.StopContainerResponse | Awaitable[api_pb2.StopContainerResponse]: ...
    def RemoveContainer(self, request: api_pb2.RemoveContainerRequest, context: Any) -> api_pb2.RemoveContainerResponse | Awaitable[api_pb2.RemoveContainerResponse]: ...
    def ListContainers(self, request: api_pb2.ListContainersRequest, context: Any) -> api_pb2.ListContainersResponse | Awaitable[api_pb2.ListContainersResponse]: ...
    def ContainerStatus(self, request: api_pb2.ContainerStatusRequest, context: Any) -> api_pb2.ContainerStatusResponse | Awaitable[api_pb2.ContainerStatusResponse]: ...
    def UpdateContainerResources(self, request: api_pb2.UpdateContainerResourcesRequest, context: Any) -> api_pb2.UpdateContainerResourcesResponse | Awaitable[api_pb2.UpdateContainerResourcesResponse]: ...
    def ReopenContainerLog(self, request: api_pb2.ReopenContainerLogRequest, context: Any) -> api_pb2.ReopenContainerLogResponse | Awaitable[api_pb2.ReopenContainerLogResponse]: ...
    def ExecSync(self, request: api_pb2.ExecSyncRequest, context: Any) -> api_pb2.ExecSyncResponse | Awaitable[api_pb2.ExecSyncResponse]: ...
    def Exec(self, request: api_pb2.ExecRequest, context: Any) -> api_pb2.ExecResponse | Awaitable[api_pb2.ExecResponse]: ...
    def Attach(self, request: api_pb2.AttachRequest, context: Any) -> api_pb2.AttachResponse | Awaitable[api_pb2.AttachResponse]: ...
    def PortForward(self, request: api_pb2.PortForwardRequest, context: Any) -> api_pb2.PortForwardResponse | Awaitable[api_pb2.PortForwardResponse]: ...
    def ContainerStats(self, request: api_pb2.ContainerStatsRequest, context: Any) -> api_pb2.ContainerStatsResponse | Awaitable[api_pb2.ContainerStatsResponse]: ...
    def ListContainerStats(self, request: api_pb2.ListContainerStatsRequest, context: Any) -> api_pb2.ListContainerStatsResponse | Awaitable[api_pb2.ListContainerStatsResponse]: ...
    def PodSandboxStats(self, request: api_pb2.PodSandboxStatsRequest, context: Any) -> api_pb2.PodSandboxStatsResponse | Awaitable[api_pb2.PodSandboxStatsResponse]: ...
    def ListPodSandboxStats(self, request: api_pb2.ListPodSandboxStatsRequest, context: Any) -> api_pb2.ListPodSandboxStatsResponse | Awaitable[api_pb2.ListPodSandboxStatsResponse]: ...
    def UpdateRuntimeConfig(self, request: api_pb2.UpdateRuntimeConfigRequest, context: Any) -> api_pb2.UpdateRuntimeConfigResponse | Awaitable[api_pb2.UpdateRuntimeConfigResponse]: ...
    def Status(self, request: api_pb2.StatusRequest, context: Any) -> api_pb2.StatusResponse | Awaitable[api_pb2.StatusResponse]: ...

def add_RuntimeServiceServicer_to_server(servicer: RuntimeServiceServicer, server: Any) -> None: ...

class ImageServiceStub:
    @overload
    def __new__(cls, channel: rpc.AsyncChannel) -> ImageServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: rpc.Channel) -> ImageServiceStub: ...
    ListImages: rpc.Unary[api_pb2.ListImagesRequest, api_pb2.ListImagesResponse]
    ImageStatus: rpc.Unary[api_pb2.ImageStatusRequest, api_pb2.ImageStatusResponse]
    PullImage: rpc.Unary[api_pb2.PullImageRequest, api_pb2.PullImageResponse]
    RemoveImage: rpc.Unary[api_pb2.RemoveImageRequest, api_pb2.RemoveImageResponse]
    ImageFsInfo: rpc.Unary[api_pb2.ImageFsInfoRequest, api_pb2.ImageFsInfoResponse]

class ImageServiceAsyncStub(ImageServiceStub):
    def __new__(cls, channel: rpc.AsyncChannel) -> ImageServiceAsyncStub: ...  # type: ignore[misc]
    ListImages: rpc.AsyncUnary[api_pb2.ListImagesRequest, api_pb2.ListImagesResponse]  # type: ignore[assignment]
    ImageStatus: rpc.AsyncUnary[api_pb2.ImageStatusRequest, api_pb2.ImageStatusResponse]  # type: ignore[assignment]
    PullImage: rpc.AsyncUnary[api_pb2.PullImageRequest, api_pb2.PullImageResponse]  # type: ignore[assignment]
    RemoveImage: rpc.AsyncUnary[api_pb2.RemoveImageRequest, api_pb2.RemoveImageResponse]  # type: ignore[assignment]
    ImageFsInfo: rpc.AsyncUnary[api_pb2.ImageFsInfoRequest, api_pb2.ImageFsInfoResponse]  # type: ignore[assignment]

class ImageServiceServicer:
    def ListImages(self, request: api_pb2.ListImagesRequest, context: Any) -> api_pb2.ListImagesResponse | Awaitable[api_pb2.ListImagesResponse]: ...
    def ImageStatus(self, request: api_pb2.ImageStatusRequest, context: Any) -> api_pb2.ImageStatusResponse | Awaitable[api_pb2.ImageStatusResponse]: ...
    def PullImage(self, request: api_pb2.PullImageRequest, context: Any) -> api_pb2.PullImageResponse | Awaitable[api_pb2.PullImageResponse]: ...
    def RemoveImage(self, request: api_pb2.RemoveImageRequest, context: Any) -> api_pb2.RemoveImageResponse | Awaitable[api_pb2.RemoveImageResponse]: ...
    def ImageFsInfo(self, request: api_pb2.ImageFsInfoRequest, context: Any) -> api_pb2.ImageFsInfoResponse | Awaitable[api_pb2.ImageFsInfoResponse]: ...

def add_ImageServiceServicer_to_server(servicer: ImageServiceServicer, server: Any) -> None: ...
