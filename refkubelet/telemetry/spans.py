"""Spans: what the kubelet does, when it began and how long it took, as a tree.

The parts ask for spans here and do not know what becomes of them: `NoSpans` forgets them,
`refkubelet.telemetry.otel` sends them to an OpenTelemetry collector. Names of spans, scopes and
attributes are the kubelet's. Upstream: pkg/kubelet/kubelet.go: syncPod, syncTerminatingPod,
syncTerminatedPod; kuberuntime_gc.go; images/image_gc_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Literal, Protocol

from refkubelet.model.objects import Pod
from refkubelet.model.pod import name_and_namespace, uid

KUBELET: Final = "k8s.io/kubernetes/pkg/kubelet"
IMAGES: Final = f"{KUBELET}/images"
KUBERUNTIME: Final = f"{KUBELET}/kuberuntime"
_INSTRUMENTATION: Final = "go.opentelemetry.io/contrib/instrumentation"
GRPC: Final = f"{_INSTRUMENTATION}/google.golang.org/grpc/otelgrpc"
HTTP_CLIENT: Final = f"{_INSTRUMENTATION}/net/http/otelhttp"
HTTP_SERVER: Final = f"{_INSTRUMENTATION}/github.com/emicklei/go-restful/otelrestful"
"""Scopes: which part of a kubelet makes a span. They are names, and stay upstream's."""
Attributes = Mapping[str, str | int]
NO_ATTRIBUTES: Final[Attributes] = {}
Kind = Literal["internal", "client", "server"]
"""What a span is about: work of this process, a call of another one, a request of another one."""


class Span(Protocol):
    """A span that has begun."""

    def set(self, key: str, value: str | int) -> None:
        """Add an attribute."""

    def failed(self, text: str, error: Exception | None = None) -> None:
        """It ends as a failure, for that reason ("": none is told); `error` becomes an event of
        the span."""


class Spans(Protocol):
    """Where parts of the kubelet get spans."""

    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        scope: str = KUBELET,
        kind: Kind = "internal",
    ) -> AbstractContextManager[Span]:
        """A span for as long as the block takes; spans in it, and in tasks that it makes, are
        below it. One of kind "server" is the root of a trace of its own, whatever it is made
        in."""

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What tells the other side of a call which span it belongs to (W3C trace context); nothing
        outside spans."""


class NoSpans:
    """Spans that are wanted nowhere: nothing is kept."""

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        scope: str = KUBELET,
        kind: Kind = "internal",
    ) -> Iterator[Span]:
        """Nothing but the block."""
        yield self

    def headers(self) -> tuple[tuple[str, str], ...]:
        """None."""
        return ()

    def set(self, key: str, value: str | int) -> None:
        """Forget it."""

    def failed(self, text: str, error: Exception | None = None) -> None:
        """Forget it."""


NO_SPANS: Final = NoSpans()


def pod_attributes(pod: Pod) -> dict[str, str]:
    """The attributes of a span about a pod."""
    name, namespace = name_and_namespace(pod)
    return {
        "k8s.pod.uid": uid(pod),
        "k8s.pod": f"{namespace}/{name}" if namespace else name,
        "k8s.pod.name": name,
        "k8s.namespace.name": namespace,
    }
