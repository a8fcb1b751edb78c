"""CRI calls with a span each, named `runtime.v1.RuntimeService/RunPodSandbox`.

Only around calls with one answer: a stream of events lasts as long as the kubelet. Upstream:
otelgrpc's client handler in staging/src/k8s.io/cri-client/pkg/remote_runtime.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc
from kubecri.v1 import api_pb2 as cri

from kubeobjects.golang.grpc_codes import go_code_name
from refkubelet.cri.target import BytesTarget, CriTarget, Message, call_error
from refkubelet.telemetry.spans import GRPC, NO_SPANS, Spans

NAMES: Final = {
    method.name: f"{service.full_name}/{method.name}"
    for service in cri.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
STATUS_CODE: Final = "rpc.response.status_code"


def traced(target: CriTarget, spans: Spans) -> CriTarget:
    """The target, with a span for each call; the target itself where nobody keeps spans."""
    if spans is NO_SPANS:
        return target
    if isinstance(target, BytesTarget):
        return TracedBytesTarget(target, spans)
    return TracedTarget(target, spans)


class TracedTarget:
    """A `CriTarget` over another one."""

    def __init__(self, behind: Any, spans: Spans) -> None:
        self._behind = behind
        self._spans = spans

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        with self._span(method):
            return await self._behind.call(method, request, timeout_s=timeout_s)

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        answers: AsyncIterator[Message] = self._behind.stream(method, request, timeout_s=timeout_s)
        return answers

    @contextmanager
    def _span(self, method: str) -> Iterator[None]:
        name = NAMES.get(method, method)
        about = {"rpc.system.name": "grpc", "rpc.method": name}
        with self._spans.span(name, about, scope=GRPC, kind="client") as span:
            try:
                yield
            except grpc.RpcError as error:
                failure = call_error(method, error)
                span.set(STATUS_CODE, go_code_name(failure.code))
                span.failed(failure.message)
                raise
            span.set(STATUS_CODE, "OK")


class TracedBytesTarget(TracedTarget):
    """The same over one that answers in bytes, too."""

    async def call_bytes(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> bytes:
        with self._span(method):
            answer: bytes = await self._behind.call_bytes(method, request, timeout_s=timeout_s)
        return answer
