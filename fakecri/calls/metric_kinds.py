"""The metrics that cAdvisor had, as a table (CRI-125): names, and how each is read.

The names are cAdvisor's, as far as containerd tells them. What a container of the fake never does
(it has no network and reads no disk) is 0. What must never happen here: a value is made up that the
fake does not model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb

from fakecri.calls.stats import pids_of
from fakecri.core.objects import Container
from fakecri.core.runtime import Core

LABELS: Final = ("pod", "namespace", "container", "id", "image")
_INTERFACE: Final = "eth0"
_DEVICE: Final = "/dev/vda"
_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class View:
    """One container, and its statistics now."""

    core: Core
    container: Container
    stats: pb.ContainerStats

    @property
    def now_ns(self) -> int:
        return self.core.now_ns()


@dataclass(frozen=True, slots=True)
class MetricKind:
    """One metric: what it is called, what it is, how it is read; `more` labels beside `LABELS`,
    with the values of each of its rows. `of_pod`: told of sandboxes, not of containers."""

    name: str
    help: str
    type: pb.MetricType
    read: Callable[[View], int]
    more: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ((),)
    of_pod: bool = False


def _none(_: View) -> int:
    return 0


def _cpu_s(view: View) -> int:
    return int(view.stats.cpu.usage_core_nano_seconds.value // _S)


def _cache(view: View) -> int:
    memory = view.stats.memory
    return int(memory.usage_bytes.value - memory.working_set_bytes.value)


def _filesystem(field: str) -> Callable[[View], int]:
    def read(view: View) -> int:
        try:
            return int(getattr(view.core.node.filesystem(view.core.node.image_root), field))
        except FileNotFoundError:  # none is mounted there
            return 0

    return read


_COUNTER, _GAUGE = pb.COUNTER, pb.GAUGE
_CPU: Final = (
    MetricKind("container_cpu_usage_seconds_total", "CPU time, seconds", _COUNTER, _cpu_s),
    MetricKind("container_cpu_user_seconds_total", "user CPU time, seconds", _COUNTER, _cpu_s),
    MetricKind("container_cpu_system_seconds_total", "system CPU time, seconds", _COUNTER, _none),
    MetricKind("container_cpu_cfs_periods_total", "periods of the CPU quota", _COUNTER, _none),
    MetricKind("container_cpu_cfs_throttled_periods_total", "throttled periods", _COUNTER, _none),
    MetricKind(
        "container_cpu_cfs_throttled_seconds_total", "seconds of being throttled", _COUNTER, _none
    ),
)
_MEMORY: Final = (
    MetricKind("container_memory_cache", "page cache, bytes", _GAUGE, _cache),
    MetricKind(
        "container_memory_rss",
        "anonymous memory, bytes",
        _GAUGE,
        lambda view: int(view.stats.memory.rss_bytes.value),
    ),
    MetricKind("container_memory_kernel_usage", "memory of the kernel, bytes", _GAUGE, _none),
    MetricKind("container_memory_mapped_file", "mapped files, bytes", _GAUGE, _none),
    MetricKind("container_memory_swap", "swap, bytes", _GAUGE, _none),
    MetricKind("container_memory_failcnt", "how often the limit was met", _COUNTER, _none),
    MetricKind(
        "container_memory_usage_bytes",
        "memory in use, bytes",
        _GAUGE,
        lambda view: int(view.stats.memory.usage_bytes.value),
    ),
    MetricKind(
        "container_memory_max_usage_bytes",
        "most memory in use so far, bytes",
        _GAUGE,
        lambda view: int(view.stats.memory.usage_bytes.value),
    ),
    MetricKind(
        "container_memory_working_set_bytes",
        "memory that cannot be taken back easily, bytes",
        _GAUGE,
        lambda view: int(view.stats.memory.working_set_bytes.value),
    ),
    MetricKind("container_memory_total_active_file_bytes", "active cache, bytes", _GAUGE, _none),
    MetricKind(
        "container_memory_total_inactive_file_bytes", "inactive cache, bytes", _GAUGE, _cache
    ),
    MetricKind(
        name="container_memory_failures_total",
        help="page faults",
        type=_COUNTER,
        read=_none,
        more=("failure_type", "scope"),
        rows=(
            ("pgfault", "container"),
            ("pgmajfault", "container"),
            ("pgfault", "hierarchy"),
            ("pgmajfault", "hierarchy"),
        ),
    ),
    MetricKind(
        "container_oom_events_total",
        "processes killed for memory",
        _COUNTER,
        lambda view: int(view.container.run.oom_killed),
    ),
)
_NETWORK: Final = tuple(
    MetricKind(
        name=f"container_network_{way}_{counted}_total",
        help=f"{counted.replace('_', ' ')}: {way}",
        type=_COUNTER,
        read=_none,
        more=("interface",),
        rows=((_INTERFACE,),),
        of_pod=True,
    )
    for way in ("receive", "transmit")
    for counted in ("bytes", "packets", "packets_dropped", "errors")
)
_ON_DEVICE: Final[dict[str, Any]] = {"more": ("device",), "rows": ((_DEVICE,),)}
_DISK: Final = (
    MetricKind(
        "container_fs_usage_bytes",
        "writable layer, bytes",
        _GAUGE,
        lambda view: int(view.stats.writable_layer.used_bytes.value),
        **_ON_DEVICE,
    ),
    MetricKind(
        "container_fs_limit_bytes",
        "size of its filesystem, bytes",
        _GAUGE,
        _filesystem("capacity_bytes"),
        **_ON_DEVICE,
    ),
    MetricKind(
        "container_fs_inodes_free",
        "free inodes of its filesystem",
        _GAUGE,
        _filesystem("inodes_free"),
        **_ON_DEVICE,
    ),
    MetricKind(
        "container_fs_inodes_total",
        "inodes of its filesystem",
        _GAUGE,
        _filesystem("inodes"),
        **_ON_DEVICE,
    ),
    *(
        MetricKind(f"container_fs_{counted}", help, kind, _none, **_ON_DEVICE)
        for counted, help, kind in (
            ("reads_bytes_total", "bytes read", _COUNTER),
            ("reads_total", "reads", _COUNTER),
            ("sector_reads_total", "sectors read", _COUNTER),
            ("reads_merged_total", "reads merged", _COUNTER),
            ("read_seconds_total", "seconds of reading", _COUNTER),
            ("writes_bytes_total", "bytes written", _COUNTER),
            ("writes_total", "writes", _COUNTER),
            ("sector_writes_total", "sectors written", _COUNTER),
            ("writes_merged_total", "writes merged", _COUNTER),
            ("write_seconds_total", "seconds of writing", _COUNTER),
            ("io_current", "input and output under way", _GAUGE),
            ("io_time_seconds_total", "seconds of input and output", _COUNTER),
            ("io_time_weighted_seconds_total", "the same, weighted", _COUNTER),
        )
    ),
    MetricKind(
        name="container_blkio_device_usage_total",
        help="bytes of a device",
        type=_COUNTER,
        read=_none,
        more=("device", "major", "minor", "operation"),
        rows=((_DEVICE, "254", "0", "Read"), (_DEVICE, "254", "0", "Write")),
    ),
)


def _pids(view: View) -> int:
    return pids_of(view.container, view.now_ns)


def _resources(field: str) -> Callable[[View], int]:
    return lambda view: max(0, int(getattr(view.container.resources, field)))


def _streams(view: View) -> int:
    """A process has its input, its output and its errors open."""
    return 3 * _pids(view)


_PROCESSES: Final = (
    MetricKind("container_processes", "processes inside", _GAUGE, _pids),
    MetricKind("container_file_descriptors", "open files of its processes", _GAUGE, _streams),
    MetricKind("container_threads", "threads inside", _GAUGE, _pids),
    MetricKind("container_threads_max", "threads allowed inside; 0: any", _GAUGE, _none),
    MetricKind("container_sockets", "open sockets", _GAUGE, _none),
)
_ULIMIT: Final = 1_048_576
"""Open files that a process may have under containerd."""
_OTHERS: Final = (
    MetricKind(
        name="container_ulimits_soft",
        help="soft limits of the main process",
        type=_GAUGE,
        read=lambda view: _ULIMIT,
        more=("ulimit",),
        rows=(("max_open_files",),),
    ),
    MetricKind(
        "container_spec_memory_limit_bytes",
        "memory limit, bytes; 0 for none",
        _GAUGE,
        _resources("memory_limit_in_bytes"),
    ),
    MetricKind(
        "container_spec_memory_swap_limit_bytes",
        "limit of memory and swap, bytes; 0 for none",
        _GAUGE,
        _resources("memory_swap_limit_in_bytes"),
    ),
    MetricKind(
        "container_spec_memory_reservation_limit_bytes",
        "memory below which nothing is taken back, bytes; 0 for none",
        _GAUGE,
        _none,
    ),
    MetricKind("container_spec_cpu_period", "CPU period, us", _GAUGE, _resources("cpu_period")),
    MetricKind("container_spec_cpu_quota", "CPU quota, us", _GAUGE, _resources("cpu_quota")),
    MetricKind("container_spec_cpu_shares", "CPU shares", _GAUGE, _resources("cpu_shares")),
    MetricKind(
        "container_start_time_seconds",
        "when it started, seconds since 1970",
        _GAUGE,
        lambda view: view.container.run.started_at_ns // _S,
    ),
    MetricKind(
        "container_last_seen",
        "when these numbers were read, seconds since 1970",
        _GAUGE,
        lambda view: view.now_ns // _S,
    ),
)
_PRESSURE: Final = tuple(
    MetricKind(
        f"container_pressure_{resource}_{kind}_seconds_total",
        f"seconds in which processes were {kind} for {resource}",
        _COUNTER,
        _none,
    )
    for resource in ("cpu", "memory", "io")
    for kind in ("waiting", "stalled")
)
_HUGE_PAGES: Final = tuple(
    MetricKind(
        name=f"container_hugetlb_{counted}_bytes",
        help=help,
        type=_GAUGE,
        read=_none,
        more=("pagesize",),
        rows=(("2MB",), ("1GB",)),
    )
    for counted, help in (
        ("usage", "huge pages in use, bytes"),
        ("max_usage", "most huge pages in use so far, bytes"),
    )
)
METRICS: Final = (
    *_CPU,
    *_MEMORY,
    *_NETWORK,
    *_DISK,
    *_PROCESSES,
    *_OTHERS,
    *_PRESSURE,
    *_HUGE_PAGES,
)
