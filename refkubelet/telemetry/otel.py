"""Spans for OpenTelemetry, sent by OTLP over gRPC to a collector (extra `otel`).

KubeletConfiguration `tracing` turns them on: `endpoint` (default localhost:4317) and
`samplingRatePerMillion`; without a rate, or with 0, only what belongs to a sampled span of somebody
else is kept. Times are the kubelet's clock's and ids its dice's. Upstream: staging/src/k8s.io/
component-base/tracing/utils.go: NewProvider; cmd/kubelet/app/server.go: newTracerProvider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from refkubelet.telemetry.spans import KUBELET, NO_ATTRIBUTES, Attributes, Kind, Span
from simclock import Clock, Rng

MILLION: Final = 1_000_000
EXPORT_LIMIT_S: Final = 2
"""How long a batch is tried; a kubelet that ends waits for the last one."""


def sampler(rate_per_million: int | None) -> Sampler:
    """Which spans without a parent are kept; the others follow their parents."""
    root = TraceIdRatioBased(rate_per_million / MILLION) if rate_per_million else ALWAYS_OFF
    return ParentBased(root)


def collector(endpoint: str | None) -> SpanProcessor:
    """The way to the collector there (None: localhost:4317): plaintext, in batches, on a thread of
    the library's own."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint=endpoint or None, insecure=True, timeout=EXPORT_LIMIT_S)
    return Batches(Reached(exporter))


class Reached(SpanExporter):
    """An exporter that knows whether its last batch was taken."""

    def __init__(self, behind: SpanExporter) -> None:
        self._behind = behind
        self.reached = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As the one behind."""
        result = self._behind.export(spans)
        self.reached = result is SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        """As the one behind."""
        self._behind.shutdown()


class Batches(BatchSpanProcessor):
    """Batches for a collector. Where nobody takes them, the end does not wait for what is left: the
    library's thread ends with the process."""

    def __init__(self, collector: Reached) -> None:
        super().__init__(collector)
        self._collector = collector

    def shutdown(self) -> None:
        """Send what is left, if the last batch was taken."""
        if self._collector.reached:
            super().shutdown()


class OtelSpans:
    """`Spans` of an OpenTelemetry provider. `processor`: where ended spans go; `kept`: which do.
    Close it at the end."""

    def __init__(
        self, kept: Sampler, processor: SpanProcessor, host: str, clock: Clock, rng: Rng
    ) -> None:
        self._clock = clock
        self._provider = TracerProvider(
            sampler=kept,
            resource=Resource({"service.name": "kubelet", "host.name": host}),
            id_generator=_Ids(rng.stream("spans").getrandbits),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._propagator = CompositePropagator(
            [TraceContextTextMapPropagator(), W3CBaggagePropagator()]
        )
        self._tracers: dict[str, trace.Tracer] = {}

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        scope: str = KUBELET,
        kind: Kind = "internal",
    ) -> Iterator[Span]:
        """A span of that scope's tracer, which is the current one in the block."""
        tracer = self._tracers.get(scope)
        if tracer is None:
            tracer = self._tracers[scope] = self._provider.get_tracer(scope)
        begun = tracer.start_span(
            name,
            context=Context() if kind == "server" else None,
            kind=trace.SpanKind[kind.upper()],
            attributes=attributes,
            start_time=self._clock.wall_ns(),
        )
        with trace.use_span(begun, record_exception=False, set_status_on_exception=False):
            try:
                yield _OtelSpan(begun, self._clock)
            finally:
                begun.end(self._clock.wall_ns())

    def headers(self) -> tuple[tuple[str, str], ...]:
        """`traceparent` and its like."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return tuple(carrier.items())

    def close(self) -> None:
        """Send what is left, and end."""
        self._provider.shutdown()


class _OtelSpan:
    def __init__(self, span: trace.Span, clock: Clock) -> None:
        self._span = span
        self._clock = clock

    def set(self, key: str, value: str | int) -> None:
        self._span.set_attribute(key, value)

    def failed(self, text: str, error: Exception | None = None) -> None:
        if error is not None:
            self._span.record_exception(error, timestamp=self._clock.wall_ns())
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, text))


class _Ids(IdGenerator):
    """Ids of spans and traces; 0 is none."""

    def __init__(self, bits: Callable[[int], int]) -> None:
        self._bits = bits

    def generate_span_id(self) -> int:
        return self._bits(64) or 1

    def generate_trace_id(self) -> int:
        return self._bits(128) or 1

    def is_trace_id_random(self) -> bool:
        return True


__all__ = ["OtelSpans", "collector", "sampler"]
