"""The streaming lists of the CRI (CRI-150): which list each streams, and in which fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class ListStream:
    """A streaming list: the unary method with the same items, and the fields that hold them."""

    unary: str
    request: type[Message]
    items: str
    response: type[Message]
    batch: str


STREAMS: Final[Mapping[str, ListStream]] = {
    "StreamPodSandboxes": ListStream(
        unary="ListPodSandbox",
        request=pb.ListPodSandboxRequest,
        items="items",
        response=pb.StreamPodSandboxesResponse,
        batch="pod_sandboxes",
    ),
    "StreamContainers": ListStream(
        unary="ListContainers",
        request=pb.ListContainersRequest,
        items="containers",
        response=pb.StreamContainersResponse,
        batch="containers",
    ),
    "StreamContainerStats": ListStream(
        unary="ListContainerStats",
        request=pb.ListContainerStatsRequest,
        items="stats",
        response=pb.StreamContainerStatsResponse,
        batch="container_stats",
    ),
    "StreamPodSandboxStats": ListStream(
        unary="ListPodSandboxStats",
        request=pb.ListPodSandboxStatsRequest,
        items="stats",
        response=pb.StreamPodSandboxStatsResponse,
        batch="pod_sandbox_stats",
    ),
    "StreamPodSandboxMetrics": ListStream(
        unary="ListPodSandboxMetrics",
        request=pb.ListPodSandboxMetricsRequest,
        items="pod_metrics",
        response=pb.StreamPodSandboxMetricsResponse,
        batch="pod_sandbox_metrics",
    ),
    "StreamImages": ListStream(
        unary="ListImages",
        request=pb.ListImagesRequest,
        items="images",
        response=pb.StreamImagesResponse,
        batch="images",
    ),
}
