"""The part of /metrics/cadvisor that is read from the cgroups of containers.

The runtime tells how much CPU time and memory a container uses (`cadvisor_metrics`); the rest is in
files of the kernel, which say it with or without that runtime. A file that is not there, or a
cgroup that is removed meanwhile, leaves its metric out.
Rules: SRV-034. Upstream: github.com/google/cadvisor container/libcontainer/handler.go,
container/common/helpers.go, metrics/prometheus.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from refkubelet.cri.records import RuntimePod
from refkubelet.host.machine import CgroupDir, Machine
from refkubelet.server.pages.resource_metrics import NamedSample, text_of
from refkubelet.stats.cgroup_files import UNLIMITED_BYTES, below, cgroup_dir, memory_dir
from refkubelet.telemetry.exposition import Kind

NANO: Final = 10**9
TICKS: Final = 100
"""Of v1's CPU times in a second: USER_HZ, the same on all machines."""
Reader = Callable[[str], float | None]
"""Makes the value of a file's text; None: there is none. Raises `ValueError`."""


def _whole(text: str) -> float:
    return float(text)


def _amount(text: str) -> float:
    """0: no limit."""
    value = 0 if text.strip() == "max" else int(text)
    return float(value if value <= UNLIMITED_BYTES else 0)


def _lines(text: str) -> float:
    return float(len(text.split()))


def _key(name: str, divisor: int = 1) -> Reader:
    def read(text: str) -> float | None:
        values = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
        return int(values[0]) / divisor if values else None

    return read


def _quota(text: str) -> float | None:
    """v2's `cpu.max` and v1's `cpu.cfs_quota_us`; None: CPU time is not limited."""
    quota = text.split()[0]
    return None if quota in ("max", "-1") else float(quota)


def _period(text: str) -> float:
    """The second number of `cpu.max`."""
    return float(text.split()[1])


def _shares(text: str) -> float:
    """v2's weight as v1's shares."""
    return float(2 + (int(text) - 1) * 262142 // 9999)


class Place(Struct, frozen=True):
    """Where a metric is: v1's controller, the file, and how it is read."""

    controller: str
    file: str
    read: Reader = _whole


QUOTA: Final = "container_spec_cpu_quota"
THROTTLED: Final = "container_cpu_cfs_"
"""Metrics that a container without a quota has not."""
V1: Final[Mapping[str, Place]] = {
    "container_cpu_user_seconds_total": Place("cpuacct", "cpuacct.stat", _key("user", TICKS)),
    "container_cpu_system_seconds_total": Place("cpuacct", "cpuacct.stat", _key("system", TICKS)),
    "container_memory_cache": Place("memory", "memory.stat", _key("total_cache")),
    "container_memory_mapped_file": Place("memory", "memory.stat", _key("total_mapped_file")),
    "container_memory_total_active_file_bytes": Place(
        "memory", "memory.stat", _key("total_active_file")
    ),
    "container_memory_total_inactive_file_bytes": Place(
        "memory", "memory.stat", _key("total_inactive_file")
    ),
    "container_memory_max_usage_bytes": Place("memory", "memory.max_usage_in_bytes"),
    "container_memory_failcnt": Place("memory", "memory.failcnt"),
    "container_memory_kernel_usage": Place("memory", "memory.kmem.usage_in_bytes"),
    "container_oom_events_total": Place("memory", "memory.oom_control", _key("oom_kill")),
    "container_processes": Place("memory", "cgroup.procs", _lines),
    "container_threads": Place("pids", "pids.current"),
    "container_threads_max": Place("pids", "pids.max", _amount),
    QUOTA: Place("cpu", "cpu.cfs_quota_us", _quota),
    "container_spec_cpu_period": Place("cpu", "cpu.cfs_period_us"),
    "container_spec_cpu_shares": Place("cpu", "cpu.shares"),
    "container_spec_memory_limit_bytes": Place("memory", "memory.limit_in_bytes", _amount),
    "container_spec_memory_reservation_limit_bytes": Place(
        "memory", "memory.soft_limit_in_bytes", _amount
    ),
    "container_spec_memory_swap_limit_bytes": Place(
        "memory", "memory.memsw.limit_in_bytes", _amount
    ),
    f"{THROTTLED}periods_total": Place("cpu", "cpu.stat", _key("nr_periods")),
    f"{THROTTLED}throttled_periods_total": Place("cpu", "cpu.stat", _key("nr_throttled")),
    f"{THROTTLED}throttled_seconds_total": Place("cpu", "cpu.stat", _key("throttled_time", NANO)),
}
MICRO: Final = 10**6
V2: Final[Mapping[str, Place]] = {
    "container_cpu_user_seconds_total": Place("", "cpu.stat", _key("user_usec", MICRO)),
    "container_cpu_system_seconds_total": Place("", "cpu.stat", _key("system_usec", MICRO)),
    "container_memory_cache": Place("", "memory.stat", _key("file")),
    "container_memory_mapped_file": Place("", "memory.stat", _key("file_mapped")),
    "container_memory_total_active_file_bytes": Place("", "memory.stat", _key("active_file")),
    "container_memory_total_inactive_file_bytes": Place("", "memory.stat", _key("inactive_file")),
    "container_memory_max_usage_bytes": Place("", "memory.peak"),
    "container_memory_kernel_usage": Place("", "memory.stat", _key("kernel")),
    "container_oom_events_total": Place("", "memory.events", _key("oom_kill")),
    "container_processes": Place("", "cgroup.procs", _lines),
    "container_threads": Place("", "pids.current"),
    "container_threads_max": Place("", "pids.max", _amount),
    QUOTA: Place("", "cpu.max", _quota),
    "container_spec_cpu_period": Place("", "cpu.max", _period),
    "container_spec_cpu_shares": Place("", "cpu.weight", _shares),
    "container_spec_memory_limit_bytes": Place("", "memory.max", _amount),
    "container_spec_memory_reservation_limit_bytes": Place("", "memory.low", _amount),
    "container_spec_memory_swap_limit_bytes": Place("", "memory.swap.max", _amount),
    f"{THROTTLED}periods_total": Place("", "cpu.stat", _key("nr_periods")),
    f"{THROTTLED}throttled_periods_total": Place("", "cpu.stat", _key("nr_throttled")),
    f"{THROTTLED}throttled_seconds_total": Place("", "cpu.stat", _key("throttled_usec", MICRO)),
}


def page(
    machine: Machine, pods: Iterable[RuntimePod], cgroups: Mapping[str, str], seen_ns: int
) -> str:
    """The text of this part. `pods`: those that run; `cgroups`: UID -> the pod's cgroup;
    `seen_ns`: now."""
    samples: list[NamedSample] = []
    for pod in pods:
        if pod.uid not in cgroups:
            continue
        directory = memory_dir(machine, cgroups[pod.uid])
        for container in pod.containers:
            name = next((child.name for child in below(directory, (container.id,))), None)
            if name is None:
                continue
            labels = (
                ("container", container.name),
                ("id", f"{cgroups[pod.uid]}/{container.id}"),
                ("image", container.image),
                ("name", container.id),
                ("namespace", pod.namespace),
                ("pod", pod.name),
            )
            samples.append(NamedSample("container_last_seen", "gauge", labels, seen_ns // NANO))
            for metric, value in counted(machine, f"{cgroups[pod.uid]}/{name}"):
                kind: Kind = "counter" if metric.endswith("_total") else "gauge"
                samples.append(NamedSample(metric, kind, labels, value))
    return text_of(samples)


def counted(machine: Machine, path: str) -> Iterator[tuple[str, float]]:
    """The metrics of the cgroup at that absolute path."""
    places = V1 if machine.cgroup_version() == 1 else V2
    texts: dict[tuple[str, str], str | None] = {}
    limited = True
    for metric, place in places.items():
        where = (place.controller, place.file)
        if where not in texts:
            texts[where] = _text(cgroup_dir(machine, place.controller, path) / place.file)
        text = texts[where]
        if text is None or (metric.startswith(THROTTLED) and not limited):
            continue
        try:
            value = place.read(text)
        except (ValueError, IndexError):
            continue
        if metric == QUOTA:
            limited = value is not None
        if value is not None:
            yield metric, value


def _text(file: CgroupDir) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None
