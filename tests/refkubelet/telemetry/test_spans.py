"""Spans of a whole kubelet, kept in memory; the configuration that turns them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from node_world import Node, running_node
from pods import manifest

from fakecri.fake import FakeCRI
from refkubelet.cri.target import BytesTarget
from refkubelet.cri.traced import traced
from refkubelet.cri.transport import GrpcTarget
from refkubelet.pod_workers.traced_steps import traced_steps
from refkubelet.telemetry.spans import NO_SPANS
from simclock import Clock, RealClock, Rng

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from refkubelet.telemetry.otel import Batches, OtelSpans, Reached, sampler

KEEP_ALL = 1_000_000
SERVICE = "runtime.v1.RuntimeService"


class Kept:
    """Spans that end in memory."""

    def __init__(self, clock: Clock, rate: int | None = KEEP_ALL, seed: int = 1) -> None:
        self._memory = InMemorySpanExporter()
        ended = SimpleSpanProcessor(self._memory)
        self.spans = OtelSpans(sampler(rate), ended, host="n1", clock=clock, rng=Rng(seed))

    def ended(self, name: str = "") -> Sequence[ReadableSpan]:
        """Those of that name, in the order in which they ended."""
        return [s for s in self._memory.get_finished_spans() if name in ("", s.name)]


def about(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


async def traced_node(node: Node, rate: int | None = KEEP_ALL) -> Kept:
    kept = Kept(node.clock, rate)
    node.world.spans = kept.spans
    await node.start()
    return kept


@pytest.mark.virtual_time
async def test_a_pods_life_is_syncs_with_their_calls_below_them(tmp_path: Path) -> None:
    async with running_node(tmp_path, started=False) as node:
        kept = await traced_node(node)
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 5)
        node.remove()
        await node.until(lambda: bool(kept.ended("syncTerminatedPod")), 60)
        uid = str(node.cri.calls("RunPodSandbox")[0].request.config.metadata.uid)
    first = kept.ended("syncPod")[0]
    pod = {
        "k8s.pod.uid": uid,
        "k8s.pod": "default/web-golden",
        "k8s.pod.name": "web-golden",
        "k8s.namespace.name": "default",
    }
    assert about(first) == pod | {"k8s.pod.update_type": "create"}
    below = [s.name for s in kept.ended() if s.parent and s.parent.span_id == first.context.span_id]
    writes = ["RunPodSandbox", "CreateContainer", "StartContainer"]
    assert [name for name in below if name.rpartition("/")[2] in writes] == [
        f"{SERVICE}/{method}" for method in writes
    ]
    (ending,) = kept.ended("syncTerminatingPod")
    assert about(ending) == pod
    (stop,) = kept.ended(f"{SERVICE}/StopContainer")
    assert stop.parent is not None
    assert stop.parent.span_id == ending.context.span_id
    assert about(kept.ended("syncTerminatedPod")[0]) == pod


@pytest.mark.virtual_time
async def test_calls_have_their_code_their_scope_and_the_kubelets_time(tmp_path: Path) -> None:
    async with running_node(tmp_path, started=False) as node:
        node.cri.on("RunPodSandbox").fails("UNKNOWN", "no address left", times=1)
        kept = await traced_node(node)
        node.apply(manifest())
        await node.until(lambda: node.phase("web-golden") == "Running", 60)
        now_ns = node.clock.wall_ns()
    failed, good = kept.ended(f"{SERVICE}/RunPodSandbox")
    assert about(failed) == {
        "rpc.system.name": "grpc",
        "rpc.method": f"{SERVICE}/RunPodSandbox",
        "rpc.response.status_code": "Unknown",
    }
    assert (failed.status.status_code.name, failed.status.description) == (
        *("ERROR", "no address left"),
    )
    assert about(good)["rpc.response.status_code"] == "OK"
    assert good.kind.name == "CLIENT"
    assert good.instrumentation_scope is not None
    assert good.instrumentation_scope.name.endswith("/otelgrpc")
    assert dict(good.resource.attributes) == {"service.name": "kubelet", "host.name": "n1"}
    sync = kept.ended("syncPod")[0]
    assert sync.status.status_code.name == "ERROR"
    assert "no address left" in (sync.status.description or "")
    assert [event.name for event in sync.events] == ["exception"]
    assert all((s.end_time or 0) <= now_ns and s.start_time for s in kept.ended())
    assert (kept.ended("syncPod")[1].start_time or 0) - (sync.start_time or 0) > 9e9


@pytest.mark.virtual_time
async def test_garbage_collection_has_spans(tmp_path: Path) -> None:
    async with running_node(tmp_path, started=False) as node:
        kept = await traced_node(node)
        await node.until(lambda: bool(kept.ended("Containers/GarbageCollect")), 130)
    scopes = {s.name: s.instrumentation_scope.name for s in kept.ended() if s.instrumentation_scope}
    assert scopes["Images/GarbageCollect"] == "k8s.io/kubernetes/pkg/kubelet/images"
    assert scopes["Containers/GarbageCollect"] == "k8s.io/kubernetes/pkg/kubelet/kuberuntime"


@pytest.mark.parametrize(("rate", "most"), [(None, 0), (0, 0), (500_000, 150), (1_000_000, 200)])
def test_the_rate_says_how_many_are_kept(rate: int | None, most: int) -> None:
    kept = Kept(RealClock(), rate)
    for _ in range(200):
        with kept.spans.span("a"):
            with kept.spans.span("b"):
                pass
    assert most * 0.3 <= len(kept.ended("a")) == len(kept.ended("b")) <= most


async def test_the_runtime_is_told_which_span_a_call_is_of(tmp_path: Path) -> None:
    kept = Kept(RealClock())
    seen: list[Any] = []

    class Asks(grpc.aio.ServerInterceptor):  # type: ignore[misc]
        async def intercept_service(self, continuation: Any, details: Any) -> Any:
            seen.append(dict(details.invocation_metadata))
            return await continuation(details)

    server = grpc.aio.server(interceptors=[Asks()])
    server.add_insecure_port(f"unix:{tmp_path}/x.sock")
    await server.start()
    target = GrpcTarget(f"unix://{tmp_path}/x.sock", kept.spans.headers)
    try:
        for each in (target, traced(target, kept.spans)):
            with pytest.raises(grpc.RpcError):
                await each.call("Version", cri.VersionRequest(), timeout_s=5)
    finally:
        await target.close()
        await server.stop(0)
    (span,) = kept.ended()
    assert "traceparent" not in seen[0]
    assert f"{span.context.trace_id:032x}-{span.context.span_id:016x}" in seen[1]["traceparent"]
    assert about(span)["rpc.response.status_code"] == "Unimplemented"


def test_without_spans_nothing_stands_between() -> None:
    fake = FakeCRI()
    assert traced(fake, NO_SPANS) is fake
    steps: Any = object()
    assert traced_steps(steps, NO_SPANS) is steps


@pytest.mark.virtual_time
async def test_answers_in_bytes_stay_so() -> None:
    fake = FakeCRI()
    kept = Kept(fake.clock)
    target = traced(fake, kept.spans)
    assert isinstance(target, BytesTarget)
    asked = cri.ListContainersRequest()
    answer = await target.call_bytes("ListContainers", asked, timeout_s=5)
    assert answer is await fake.call_bytes("ListContainers", asked, timeout_s=5)
    assert [span.name for span in kept.ended()] == [f"{SERVICE}/ListContainers"]


class Answers(SpanExporter):
    """Takes batches, or not."""

    def __init__(self, result: SpanExportResult) -> None:
        self.result = result
        self.batches: list[list[str]] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.batches.append([span.name for span in spans])
        return self.result


@pytest.mark.parametrize(
    ("result", "batches"),
    [(SpanExportResult.SUCCESS, [["first"], ["last"]]), (SpanExportResult.FAILURE, [["first"]])],
)
def test_the_end_does_not_wait_for_a_collector_that_is_not_there(
    result: SpanExportResult, batches: list[list[str]]
) -> None:
    exporter = Answers(result)
    processor = Batches(Reached(exporter))
    spans = OtelSpans(sampler(KEEP_ALL), processor, host="n1", clock=RealClock(), rng=Rng(1))
    with spans.span("first"):
        pass
    processor.force_flush()
    with spans.span("last"):
        pass
    spans.close()
    assert exporter.batches == batches
