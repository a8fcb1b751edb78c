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
        "ListPodSandbox",
        pb.ListPodSandboxRequest,
        "items",
        pb.StreamPodSandboxesResponse,
        "pod_sandboxes",
    ),
    "StreamContainers": ListStream(
        "ListContainers",
        pb.ListContainersRequest,
        "containers",
        pb.StreamContainersResponse,
        "containers",
    ),
    "StreamContainerStats": ListStream(
        "ListContainerStats",
        pb.ListContainerStatsRequest,
        "stats",
        pb.StreamContainerStatsResponse,
        "container_stats",
    ),
    "StreamPodSandboxStats": ListStream(
        "ListPodSandboxStats",
        pb.ListPodSandboxStatsRequest,
        "stats",
        pb.StreamPodSandboxStatsResponse,
        "pod_sandbox_stats",
    ),
    "StreamPodSandboxMetrics": ListStream(
        "ListPodSandboxMetrics",
        pb.ListPodSandboxMetricsRequest,
        "pod_metrics",
        pb.StreamPodSandboxMetricsResponse,
        "pod_sandbox_metrics",
    ),
    "StreamImages": ListStream(
        "ListImages", pb.ListImagesRequest, "images", pb.StreamImagesResponse, "images"
    ),
}
