"""Lists in several messages instead of one answer, where the runtime has them (CRI-151).

A list of very many containers does not fit into one gRPC message (16 MiB). With the feature gate
CRIListStreaming each list is asked for as a stream, and put together here, so that nothing else
knows of it. What must never happen: a list that ended early is taken for the whole one. Upstream:
staging/src/k8s.io/cri-client/pkg/remote_runtime.go: streamContainersV1; remote_image.go.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import grpc
from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from refkubelet.cri.target import CriTarget, Message

log = logging.getLogger(__name__)

GATE: Final = "CRIListStreaming"
RUNTIME: Final = "runtime"
IMAGES: Final = "images"


class _Streamed(Struct, frozen=True):
    """How a list is streamed: the method, the field with the rows in each of its messages, and the
    one in the unary answer. The request and the rows are those of the unary method."""

    method: str
    rows: str
    answer_rows: str
    service: str = RUNTIME


_LISTS: Final[Mapping[str, _Streamed]] = {
    "ListPodSandbox": _Streamed("StreamPodSandboxes", "pod_sandboxes", "items"),
    "ListContainers": _Streamed("StreamContainers", "containers", "containers"),
    "ListContainerStats": _Streamed("StreamContainerStats", "container_stats", "stats"),
    "ListPodSandboxStats": _Streamed("StreamPodSandboxStats", "pod_sandbox_stats", "stats"),
    "ListImages": _Streamed("StreamImages", "images", "images", IMAGES),
}


class StreamedLists:
    """A `CriTarget` over another one that streams lists, until the runtime says that it cannot:
    then for good not, for containers and images apart."""

    def __init__(self, target: CriTarget) -> None:
        self._target = target
        self._streaming = {RUNTIME, IMAGES}

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """A list is gathered from its stream, within the deadline of the one call. Raises
        `grpc.RpcError` as the target does."""
        streamed = _LISTS.get(method)
        if streamed is not None and streamed.service in self._streaming:
            try:
                return await self._gathered(method, streamed, request, timeout_s)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
                log.info("the runtime has no %s, %s is used", streamed.method, method)
                self._streaming.discard(streamed.service)
        return await self._target.call(method, request, timeout_s=timeout_s)

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        return self._target.stream(method, request, timeout_s=timeout_s)

    async def _gathered(
        self, method: str, streamed: _Streamed, request: Message, timeout_s: float | None
    ) -> Message:
        """The unary answer with the rows of all messages. The filter has the same number in both
        requests."""
        kind: Any = getattr(cri, f"{streamed.method}Request")
        stream_request = kind.FromString(request.SerializeToString())
        answer = getattr(cri, f"{method}Response")()
        rows = getattr(answer, streamed.answer_rows)
        stream = self._target.stream(streamed.method, stream_request, timeout_s=timeout_s)
        try:
            async for message in stream:
                rows.extend(getattr(message, streamed.rows))
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        return answer
