"""The page /metrics/cadvisor: what containers use, with the names that cAdvisor gave it. Pure.

The values are the runtime's. The traffic of a pod is that of its sandbox. `id` is the path of the
container's cgroup as far as it is known.
Rules: SRV-032. Upstream: github.com/google/cadvisor metrics/prometheus.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from refkubelet.cri.records import RuntimePod
from refkubelet.cri.usage import ContainerUsage, SandboxUsage
from refkubelet.model.traffic import Traffic
from refkubelet.server.pages.resource_metrics import NamedSample, text_of

NANO: Final = 10**9
MILLI: Final = 10**6
_GAUGES: Final = (
    ("container_memory_working_set_bytes", "memory_working_set_bytes"),
    ("container_memory_usage_bytes", "memory_usage_bytes"),
    ("container_memory_rss", "memory_rss_bytes"),
    ("container_memory_swap", "swap_usage_bytes"),
)
_TRAFFIC: Final = (
    ("container_network_receive_bytes_total", "rx_bytes"),
    ("container_network_receive_errors_total", "rx_errors"),
    ("container_network_transmit_bytes_total", "tx_bytes"),
    ("container_network_transmit_errors_total", "tx_errors"),
)
_FAULTS: Final = (("pgfault", "memory_page_faults"), ("pgmajfault", "memory_major_page_faults"))


class MachineSize(Struct, frozen=True):
    """Of the node: CPUs, and bytes of memory."""

    cpus: int
    memory_bytes: int


def page(
    machine: MachineSize,
    pods: Iterable[RuntimePod],
    usage: Iterable[ContainerUsage],
    cgroups: Mapping[str, str],
    sandboxes: Iterable[SandboxUsage] = (),
) -> str:
    """The text of the page. `pods`: those that run; `cgroups`: UID -> the pod's cgroup;
    `sandboxes`: what the runtime tells of their traffic."""
    by_id = {row.container_id: row for row in usage}
    traffic = {row.sandbox_id: row.traffic for row in sandboxes if row.traffic is not None}
    samples = [
        NamedSample("machine_cpu_cores", "gauge", (), float(machine.cpus)),
        NamedSample("machine_memory_bytes", "gauge", (), float(machine.memory_bytes)),
    ]
    for pod in pods:
        for sandbox in pod.sandboxes:
            if sandbox.id in traffic:
                labels = _labels(pod, cgroups, sandbox.id)
                samples += _of_sandbox(traffic[sandbox.id], labels)
        for container in pod.containers:
            row = by_id.get(container.id)
            if row is None:
                continue
            labels = _labels(pod, cgroups, container.id, container.name, container.image)
            samples += _of_container(row, labels, container.created_at_ns)
    return text_of(samples)


def _labels(
    pod: RuntimePod, cgroups: Mapping[str, str], own_id: str, name: str = "", image: str = ""
) -> tuple[tuple[str, str], ...]:
    return (
        ("container", name),
        ("id", f"{cgroups.get(pod.uid, '')}/{own_id}"),
        ("image", image),
        ("name", own_id),
        ("namespace", pod.namespace),
        ("pod", pod.name),
    )


def _of_sandbox(traffic: Traffic, labels: tuple[tuple[str, str], ...]) -> Iterator[NamedSample]:
    """What the interfaces of a pod have carried."""
    for interface in traffic.each():
        own = (*labels, ("interface", interface.name))
        for name, field in _TRAFFIC:
            value = getattr(interface, field)
            if value is not None:
                yield NamedSample(
                    name, "counter", own, float(value), traffic.time_ns // MILLI or None
                )


def _of_container(
    row: ContainerUsage, labels: tuple[tuple[str, str], ...], created_ns: int
) -> Iterator[NamedSample]:
    if row.cpu_usage_core_ns is not None:
        yield NamedSample(
            "container_cpu_usage_seconds_total",
            "counter",
            (*labels, ("cpu", "total")),
            row.cpu_usage_core_ns / NANO,
            row.cpu_time_ns // MILLI or None,
        )
    for name, field in _GAUGES:
        value = getattr(row, field)
        if value is not None:
            yield NamedSample(
                name, "gauge", labels, float(value), row.memory_time_ns // MILLI or None
            )
    for kind, field in _FAULTS:
        value = getattr(row, field)
        if value is not None:
            own = (*labels, ("failure_type", kind), ("scope", "container"))
            yield NamedSample("container_memory_failures_total", "counter", own, float(value))
    if row.rootfs_used_bytes is not None:
        own = (*labels, ("device", row.rootfs_mountpoint))
        yield NamedSample("container_fs_usage_bytes", "gauge", own, float(row.rootfs_used_bytes))
    if created_ns:
        yield NamedSample("container_start_time_seconds", "gauge", labels, created_ns / NANO)
