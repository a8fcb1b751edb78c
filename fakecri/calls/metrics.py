"""ListMetricDescriptors and ListPodSandboxMetrics (CRI-125); the metrics are in `metric_kinds`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri import calls
from fakecri.core.messages import fill_container_stats
from fakecri.core.objects import Container, State
from fakecri.core.runtime import Core


def _list_metric_descriptors(
    core: Core, request: pb.ListMetricDescriptorsRequest
) -> pb.ListMetricDescriptorsResponse:
    return pb.ListMetricDescriptorsResponse(
        descriptors=[
            pb.MetricDescriptor(name=m.name, help=m.help, label_keys=(*calls.LABELS, *m.more))
            for m in calls.METRICS
        ]
    )


def _list_pod_sandbox_metrics(
    core: Core, request: pb.ListPodSandboxMetricsRequest
) -> pb.ListPodSandboxMetricsResponse:
    """Running containers of ready sandboxes; traffic is the sandbox's, if it has a network."""
    response = pb.ListPodSandboxMetricsResponse()
    for sandbox in core.sandboxes.values():
        if not sandbox.ready:
            continue
        row = response.pod_metrics.add(pod_sandbox_id=sandbox.id)
        if not sandbox.on_host_network:
            meta = sandbox.config.metadata
            labels = (meta.name, meta.namespace, "POD", sandbox.id, "")
            kinds = ((kind, 0) for kind in calls.METRICS if kind.of_pod)
            row.metrics.extend(_rows(kinds, labels, core.now_ns()))
        for container in core.containers_of(sandbox):
            if container.state is State.RUNNING:
                metrics = _metrics(core, container)
                row.container_metrics.add(container_id=container.id, metrics=metrics)
    return response


def _metrics(core: Core, container: Container) -> Iterator[pb.Metric]:
    now_ns, stats = core.now_ns(), pb.ContainerStats()
    fill_container_stats(stats, container, now_ns, core.node.image_root)
    pod, view = container.pod, calls.View(core, container, stats)
    image = container.config.image.image
    labels = (pod.name, pod.namespace, container.name, container.id, image)
    kinds = ((kind, kind.read(view)) for kind in calls.METRICS if not kind.of_pod)
    return _rows(kinds, labels, now_ns)


def _rows(
    kinds: Iterable[tuple[calls.MetricKind, int]], labels: tuple[str, ...], now_ns: int
) -> Iterator[pb.Metric]:
    for kind, value in kinds:
        for more in kind.rows:
            yield pb.Metric(
                name=kind.name,
                timestamp=now_ns,
                metric_type=kind.type,
                label_values=(*labels, *more),
                value=pb.UInt64Value(value=value),
            )


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "ListMetricDescriptors": _list_metric_descriptors,
    "ListPodSandboxMetrics": _list_pod_sandbox_metrics,
}
