"""The metrics that cAdvisor had (CRI-125), and how each is read.

Their names, types, labels and helps are in `cadvisor_metrics.txt`, as far as containerd tells them.
What a container of the fake never does (it has no network and reads no disk) is 0. What must never
happen here: a value is made up that the fake does not model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubecri.v1 import api_pb2 as pb
from msgspec import Struct

from fakecri.calls.stats import pids_of
from fakecri.core.objects import Container
from fakecri.core.runtime import Core
from kubeobjects.tables import table_lines

LABELS: Final = ("pod", "namespace", "container", "id", "image")
_DEVICE: Final = "/dev/vda"
_S: Final = 1_000_000_000
_ULIMIT: Final = 1_048_576
"""Open files that a process may have under containerd."""
_ROWS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "": ((),),
    "interface": (("eth0",),),
    "device": ((_DEVICE,),),
    "device,major,minor,operation": ((_DEVICE, "254", "0", "Read"), (_DEVICE, "254", "0", "Write")),
    "failure_type,scope": (
        *(("pgfault", "container"), ("pgmajfault", "container")),
        *(("pgfault", "hierarchy"), ("pgmajfault", "hierarchy")),
    ),
    "ulimit": (("max_open_files",),),
    "pagesize": (("2MB",), ("1GB",)),
}
"""The values of each row of a metric that has these labels beside `LABELS`."""


class View(Struct, frozen=True):
    """One container, and its statistics now."""

    core: Core
    container: Container
    stats: pb.ContainerStats

    @property
    def now_ns(self) -> int:
        return self.core.now_ns()

    @property
    def pids(self) -> int:
        return pids_of(self.container, self.now_ns)


class MetricKind(Struct, frozen=True):
    """One metric: what it is called, what it is, how it is read; `more` labels beside `LABELS`,
    with the values of each of its rows. `of_pod`: told of sandboxes, not of containers."""

    name: str
    help: str
    type: pb.MetricType
    read: Callable[[View], int]
    more: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    of_pod: bool


def _cpu_s(view: View) -> int:
    return int(view.stats.cpu.usage_core_nano_seconds.value // _S)


def _cache(view: View) -> int:
    memory = view.stats.memory
    return int(memory.usage_bytes.value - memory.working_set_bytes.value)


def _memory(field: str) -> Callable[[View], int]:
    return lambda view: int(getattr(view.stats.memory, field).value)


def _filesystem(field: str) -> Callable[[View], int]:
    def read(view: View) -> int:
        try:
            return int(getattr(view.core.node.filesystem(view.core.node.image_root), field))
        except FileNotFoundError:  # none is mounted there
            return 0

    return read


def _resources(field: str) -> Callable[[View], int]:
    return lambda view: max(0, int(getattr(view.container.resources, field)))


_READ: Final[Mapping[str, Callable[[View], int]]] = {
    "cpu_usage_seconds_total": _cpu_s,
    "cpu_user_seconds_total": _cpu_s,
    "memory_cache": _cache,
    "memory_rss": _memory("rss_bytes"),
    "memory_usage_bytes": _memory("usage_bytes"),
    "memory_max_usage_bytes": _memory("usage_bytes"),
    "memory_working_set_bytes": _memory("working_set_bytes"),
    "memory_total_inactive_file_bytes": _cache,
    "oom_events_total": lambda view: int(view.container.run.oom_killed),
    "fs_usage_bytes": lambda view: int(view.stats.writable_layer.used_bytes.value),
    "fs_limit_bytes": _filesystem("capacity_bytes"),
    "fs_inodes_free": _filesystem("inodes_free"),
    "fs_inodes_total": _filesystem("inodes"),
    "processes": lambda view: view.pids,
    "file_descriptors": lambda view: 3 * view.pids,  # each: its input, its output, its errors
    "threads": lambda view: view.pids,
    "ulimits_soft": lambda view: _ULIMIT,
    "spec_memory_limit_bytes": _resources("memory_limit_in_bytes"),
    "spec_memory_swap_limit_bytes": _resources("memory_swap_limit_in_bytes"),
    "spec_cpu_period": _resources("cpu_period"),
    "spec_cpu_quota": _resources("cpu_quota"),
    "spec_cpu_shares": _resources("cpu_shares"),
    "start_time_seconds": lambda view: view.container.run.started_at_ns // _S,
    "last_seen": lambda view: view.now_ns // _S,
}
"""By name without `container_`; all others are 0."""


def _kinds() -> Iterator[MetricKind]:
    for line in table_lines(__file__, "cadvisor_metrics.txt"):
        name, kind, labels, help_ = line.split(maxsplit=3)
        labels = labels.strip("-")
        yield MetricKind(
            name=name,
            help=help_,
            type=pb.COUNTER if kind == "counter" else pb.GAUGE,
            read=_READ.get(name.removeprefix("container_"), lambda view: 0),
            more=tuple(filter(None, labels.split(","))),
            rows=_ROWS[labels],
            of_pod=name.startswith("container_network_"),
        )


METRICS: Final = tuple(_kinds())
