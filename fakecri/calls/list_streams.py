"""The streaming lists: the items of the unary list in batches (CRI-150).

One table says which list each of them streams. What must never happen here: an item comes twice,
or a message without any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

BATCH_ITEMS: Final = 5000
"""Items a message carries at most, as containerd 2.4 sends them."""


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


def batches(
    stream: ListStream,
    request: Any,
    unary: Callable[[str, Message], Message],
    batch_items: int = BATCH_ITEMS,
) -> Iterator[Message]:
    """The answers of a streaming list; `unary(method, request)` answers the list itself."""
    wanted = stream.request()
    if "filter" in stream.request.DESCRIPTOR.fields_by_name and request.HasField("filter"):
        wanted.filter.CopyFrom(request.filter)  # type: ignore[attr-defined]
    items = getattr(unary(stream.unary, wanted), stream.items)
    for start in range(0, len(items), batch_items):
        yield stream.response(**{stream.batch: items[start : start + batch_items]})
