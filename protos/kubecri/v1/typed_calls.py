"""The types of calls by method name, as call targets take them.

    answer = await target.call("Version", api_pb2.VersionRequest())   # a VersionResponse

A type checker refuses a request of another method. It takes every request together with
`response=`, the class the answer is wanted in, and one of type Any.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar, cast, overload

from google.protobuf.message import Message

from kubecri.v1 import api_pb2

R = TypeVar("R")


class Untyped:
    """A request that is known as Any only. There are none of this class."""


class Call(Protocol):
    """`call` of a call target: a unary method by its name."""

    @overload
    async def __call__(
        self, method: Literal["Version"], request: api_pb2.VersionRequest, *, timeout_s: float | None = None
    ) -> api_pb2.VersionResponse: ...
    @overload
    async def __call__(
        self, method: Literal["RunPodSandbox"], request: api_pb2.RunPodSandboxRequest, *, timeout_s: float | None = None
    ) -> api_pb2.RunPodSandboxResponse: ...
    @overload
    async def __call__(
        self, method: Literal["StopPodSandbox"], request: api_pb2.StopPodSandboxRequest, *, timeout_s: float | None = None
    ) -> api_pb2.StopPodSandboxResponse: ...
    @overload
    async def __call__(
        self, method: Literal["RemovePodSandbox"], request: api_pb2.RemovePodSandboxRequest, *, timeout_s: float | None = None
    ) -> api_pb2.RemovePodSandboxResponse: ...
    @overload
    async def __call__(
        self, method: Literal["PodSandboxStatus"], request: api_pb2.PodSandboxStatusRequest, *, timeout_s: float | None = None
    ) -> api_pb2.PodSandboxStatusResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListPodSandbox"], request: api_pb2.ListPodSandboxRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListPodSandboxResponse: ...
    @overload
    async def __call__(
        self, method: Literal["CreateContainer"], request: api_pb2.CreateContainerRequest, *, timeout_s: float | None = None
    ) -> api_pb2.CreateContainerResponse: ...
    @overload
    async def __call__(
        self, method: Literal["StartContainer"], request: api_pb2.StartContainerRequest, *, timeout_s: float | None = None
    ) -> api_pb2.StartContainerResponse: ...
    @overload
    async def __call__(
        self, method: Literal["StopContainer"], request: api_pb2.StopContainerRequest, *, timeout_s: float | None = None
    ) -> api_pb2.StopContainerResponse: ...
    @overload
    async def __call__(
        self, method: Literal["RemoveContainer"], request: api_pb2.RemoveContainerRequest, *, timeout_s: float | None = None
    ) -> api_pb2.RemoveContainerResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListContainers"], request: api_pb2.ListContainersRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListContainersResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ContainerStatus"], request: api_pb2.ContainerStatusRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ContainerStatusResponse: ...
    @overload
    async def __call__(
        self, method: Literal["UpdateContainerResources"], request: api_pb2.UpdateContainerResourcesRequest, *, timeout_s: float | None = None
    ) -> api_pb2.UpdateContainerResourcesResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ReopenContainerLog"], request: api_pb2.ReopenContainerLogRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ReopenContainerLogResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ExecSync"], request: api_pb2.ExecSyncRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ExecSyncResponse: ...
    @overload
    async def __call__(
        self, method: Literal["Exec"], request: api_pb2.ExecRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ExecResponse: ...
    @overload
    async def __call__(
        self, method: Literal["Attach"], request: api_pb2.AttachRequest, *, timeout_s: float | None = None
    ) -> api_pb2.AttachResponse: ...
    @overload
    async def __call__(
        self, method: Literal["PortForward"], request: api_pb2.PortForwardRequest, *, timeout_s: float | None = None
    ) -> api_pb2.PortForwardResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ContainerStats"], request: api_pb2.ContainerStatsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ContainerStatsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListContainerStats"], request: api_pb2.ListContainerStatsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListContainerStatsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["PodSandboxStats"], request: api_pb2.PodSandboxStatsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.PodSandboxStatsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListPodSandboxStats"], request: api_pb2.ListPodSandboxStatsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListPodSandboxStatsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["UpdateRuntimeConfig"], request: api_pb2.UpdateRuntimeConfigRequest, *, timeout_s: float | None = None
    ) -> api_pb2.UpdateRuntimeConfigResponse: ...
    @overload
    async def __call__(
        self, method: Literal["Status"], request: api_pb2.StatusRequest, *, timeout_s: float | None = None
    ) -> api_pb2.StatusResponse: ...
    @overload
    async def __call__(
        self, method: Literal["CheckpointContainer"], request: api_pb2.CheckpointContainerRequest, *, timeout_s: float | None = None
    ) -> api_pb2.CheckpointContainerResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListMetricDescriptors"], request: api_pb2.ListMetricDescriptorsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListMetricDescriptorsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListPodSandboxMetrics"], request: api_pb2.ListPodSandboxMetricsRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListPodSandboxMetricsResponse: ...
    @overload
    async def __call__(
        self, method: Literal["RuntimeConfig"], request: api_pb2.RuntimeConfigRequest, *, timeout_s: float | None = None
    ) -> api_pb2.RuntimeConfigResponse: ...
    @overload
    async def __call__(
        self, method: Literal["UpdatePodSandboxResources"], request: api_pb2.UpdatePodSandboxResourcesRequest, *, timeout_s: float | None = None
    ) -> api_pb2.UpdatePodSandboxResourcesResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ListImages"], request: api_pb2.ListImagesRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ListImagesResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ImageStatus"], request: api_pb2.ImageStatusRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ImageStatusResponse: ...
    @overload
    async def __call__(
        self, method: Literal["PullImage"], request: api_pb2.PullImageRequest, *, timeout_s: float | None = None
    ) -> api_pb2.PullImageResponse: ...
    @overload
    async def __call__(
        self, method: Literal["RemoveImage"], request: api_pb2.RemoveImageRequest, *, timeout_s: float | None = None
    ) -> api_pb2.RemoveImageResponse: ...
    @overload
    async def __call__(
        self, method: Literal["ImageFsInfo"], request: api_pb2.ImageFsInfoRequest, *, timeout_s: float | None = None
    ) -> api_pb2.ImageFsInfoResponse: ...
    @overload
    async def __call__(
        self, method: str, request: Any, *, timeout_s: float | None = None, response: type[R]
    ) -> R: ...
    @overload
    async def __call__(
        self, method: str, request: Untyped, *, timeout_s: float | None = None
    ) -> Message: ...


class Stream(Protocol):
    """`stream` of a call target: a streaming method by its name."""

    @overload
    def __call__(
        self, method: Literal["StreamPodSandboxes"], request: api_pb2.StreamPodSandboxesRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamPodSandboxesResponse]: ...
    @overload
    def __call__(
        self, method: Literal["StreamContainers"], request: api_pb2.StreamContainersRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamContainersResponse]: ...
    @overload
    def __call__(
        self, method: Literal["StreamContainerStats"], request: api_pb2.StreamContainerStatsRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamContainerStatsResponse]: ...
    @overload
    def __call__(
        self, method: Literal["StreamPodSandboxStats"], request: api_pb2.StreamPodSandboxStatsRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamPodSandboxStatsResponse]: ...
    @overload
    def __call__(
        self, method: Literal["GetContainerEvents"], request: api_pb2.GetEventsRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.ContainerEventResponse]: ...
    @overload
    def __call__(
        self, method: Literal["StreamPodSandboxMetrics"], request: api_pb2.StreamPodSandboxMetricsRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamPodSandboxMetricsResponse]: ...
    @overload
    def __call__(
        self, method: Literal["StreamImages"], request: api_pb2.StreamImagesRequest, *, timeout_s: float | None = None
    ) -> AsyncIterator[api_pb2.StreamImagesResponse]: ...
    @overload
    def __call__(
        self, method: str, request: Any, *, timeout_s: float | None = None, response: type[R]
    ) -> AsyncIterator[R]: ...
    @overload
    def __call__(
        self, method: str, request: Untyped, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]: ...


def typed_call(function: Callable[..., Coroutine[Any, Any, Any]]) -> Call:
    """Decorates a `call` method that takes all unary methods."""
    return cast("Call", function)


def typed_stream(function: Callable[..., AsyncIterator[Any]]) -> Stream:
    """Decorates a `stream` method that takes all streaming methods."""
    return cast("Stream", function)
