"""Statistics and metrics of pods over the core: one function a method (CRI-124, CRI-125).

What a pod uses is what its running containers use together. What must never happen here: a value
is made up that the fake does not model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.core.lookup import matching_ids
from fakecri.core.messages import fill_container_stats, labels_fit
from fakecri.core.objects import Container, Sandbox, State
from fakecri.core.runtime import Core
from fakecri.errors import unknown


def _pod_sandbox_stats(
    core: Core, request: pb.PodSandboxStatsRequest
) -> pb.PodSandboxStatsResponse:
    sandbox = core.find_sandbox(request.pod_sandbox_id, "PodSandboxStats")
    if not sandbox.ready:
        raise unknown(
            f"failed to decode pod sandbox metrics {sandbox.id}: failed to get pod sandbox stats "
            f'since sandbox container "{sandbox.id}" is not in ready state'
        )
    response = pb.PodSandboxStatsResponse()
    _fill(response.stats, core, sandbox)
    return response


def _list_pod_sandbox_stats(
    core: Core, request: pb.ListPodSandboxStatsRequest
) -> pb.ListPodSandboxStatsResponse:
    """Sandboxes that are not ready are left out, as containerd does since 1.7."""
    wanted = request.filter
    ids = matching_ids(core.sandboxes, wanted.id)
    labels = wanted.label_selector
    response = pb.ListPodSandboxStatsResponse()
    for s in core.sandboxes.values():
        if (
            s.ready
            and (ids is None or s.id in ids)
            and (not labels or labels_fit(s.config.labels, labels))
        ):
            _fill(response.stats.add(), core, s)
    return response


def _fill(stats: pb.PodSandboxStats, core: Core, sandbox: Sandbox) -> None:
    now_ns, mountpoint = core.now_ns(), core.node.image_root
    containers = core.containers_of(sandbox)
    stats.attributes.id = sandbox.id
    stats.attributes.metadata.CopyFrom(sandbox.config.metadata)
    stats.attributes.labels.update(sandbox.config.labels)
    stats.attributes.annotations.update(sandbox.config.annotations)
    linux = stats.linux
    for container in containers:
        fill_container_stats(linux.containers.add(), container, now_ns, mountpoint)
    rows = linux.containers
    linux.cpu.timestamp = linux.memory.timestamp = linux.process.timestamp = now_ns
    linux.cpu.usage_core_nano_seconds.value = sum(r.cpu.usage_core_nano_seconds.value for r in rows)
    linux.cpu.usage_nano_cores.value = sum(r.cpu.usage_nano_cores.value for r in rows)
    memory = linux.memory
    memory.working_set_bytes.value = sum(r.memory.working_set_bytes.value for r in rows)
    memory.usage_bytes.value = sum(r.memory.usage_bytes.value for r in rows)
    memory.rss_bytes.value = sum(r.memory.rss_bytes.value for r in rows)
    linux.process.process_count.value = 1 + sum(_pids(c, now_ns) for c in containers)
    if not sandbox.on_host_network:
        linux.network.timestamp = now_ns
        linux.network.default_interface.name = "eth0"
        for field in _traffic(linux.network.default_interface):
            field.value = 0


def _traffic(interface: pb.NetworkInterfaceUsage) -> tuple[pb.UInt64Value, ...]:
    return interface.rx_bytes, interface.rx_errors, interface.tx_bytes, interface.tx_errors


def _pids(container: Container, now_ns: int) -> int:
    running = container.state is State.RUNNING
    return container.pids_now(container.age_s(now_ns)) if running else 0


# -- metrics -----------------------------------------------------------------------------------

LABELS: Final = ("pod", "namespace", "container", "id", "image")


@dataclass(frozen=True, slots=True)
class MetricKind:
    """One metric of a container: what it is called and how it is read from its statistics."""

    name: str
    help: str
    type: pb.MetricType
    read: Callable[[Core, Container, pb.ContainerStats], int]


METRICS: Final = (
    MetricKind(
        "container_cpu_usage_seconds_total",
        "CPU time used since the start, seconds",
        pb.COUNTER,
        lambda core, c, s: s.cpu.usage_core_nano_seconds.value // 1_000_000_000,
    ),
    MetricKind(
        "container_memory_usage_bytes",
        "memory in use, bytes",
        pb.GAUGE,
        lambda core, c, s: s.memory.usage_bytes.value,
    ),
    MetricKind(
        "container_memory_working_set_bytes",
        "memory that cannot be taken back easily, bytes",
        pb.GAUGE,
        lambda core, c, s: s.memory.working_set_bytes.value,
    ),
    MetricKind(
        "container_memory_rss",
        "anonymous memory, bytes",
        pb.GAUGE,
        lambda core, c, s: s.memory.rss_bytes.value,
    ),
    MetricKind(
        "container_spec_memory_limit_bytes",
        "memory limit, bytes; 0 for none",
        pb.GAUGE,
        lambda core, c, s: max(0, c.resources.memory_limit_in_bytes),
    ),
    MetricKind(
        "container_fs_usage_bytes",
        "writable layer, bytes",
        pb.GAUGE,
        lambda core, c, s: s.writable_layer.used_bytes.value,
    ),
    MetricKind(
        "container_processes",
        "processes inside",
        pb.GAUGE,
        lambda core, c, s: _pids(c, core.now_ns()),
    ),
    MetricKind(
        "container_oom_events_total",
        "processes killed for memory",
        pb.COUNTER,
        lambda core, c, s: int(c.oom_killed),
    ),
    MetricKind(
        "container_start_time_seconds",
        "when it started, seconds since 1970",
        pb.GAUGE,
        lambda core, c, s: c.started_at_ns // 1_000_000_000,
    ),
    MetricKind(
        "container_last_seen",
        "when these numbers were read, seconds since 1970",
        pb.GAUGE,
        lambda core, c, s: core.now_ns() // 1_000_000_000,
    ),
)
"""The metrics that the fake has true values for; containerd describes 49."""


def _list_metric_descriptors(
    core: Core, request: pb.ListMetricDescriptorsRequest
) -> pb.ListMetricDescriptorsResponse:
    return pb.ListMetricDescriptorsResponse(
        descriptors=[
            pb.MetricDescriptor(name=m.name, help=m.help, label_keys=LABELS) for m in METRICS
        ]
    )


def _list_pod_sandbox_metrics(
    core: Core, request: pb.ListPodSandboxMetricsRequest
) -> pb.ListPodSandboxMetricsResponse:
    """Running containers of ready sandboxes."""
    return pb.ListPodSandboxMetricsResponse(
        pod_metrics=[
            pb.PodSandboxMetrics(
                pod_sandbox_id=sandbox.id,
                container_metrics=[
                    pb.ContainerMetrics(container_id=c.id, metrics=_metrics(core, c))
                    for c in core.containers_of(sandbox)
                    if c.state is State.RUNNING
                ],
            )
            for sandbox in core.sandboxes.values()
            if sandbox.ready
        ]
    )


def _metrics(core: Core, container: Container) -> list[pb.Metric]:
    now_ns = core.now_ns()
    stats = pb.ContainerStats()
    fill_container_stats(stats, container, now_ns, core.node.image_root)
    pod, image = container.pod, container.config.image.image
    labels = (pod.name, pod.namespace, container.name, container.id, image)
    return [
        pb.Metric(
            name=kind.name,
            timestamp=now_ns,
            metric_type=kind.type,
            label_values=labels,
            value=pb.UInt64Value(value=kind.read(core, container, stats)),
        )
        for kind in METRICS
    ]


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "PodSandboxStats": _pod_sandbox_stats,
    "ListPodSandboxStats": _list_pod_sandbox_stats,
    "ListMetricDescriptors": _list_metric_descriptors,
    "ListPodSandboxMetrics": _list_pod_sandbox_metrics,
}
