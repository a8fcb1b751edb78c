"""Statistics in the form of the summary API, with upstream's JSON names. Pure.

Values that were not measured are left out. Upstream: k8s.io/kubelet pkg/apis/stats/v1alpha1:
types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubeobjects.machine import FilesystemStats, MemoryStats, PidStats
from refkubelet.cri.usage import ContainerUsage, FilesystemUsage, Pressure
from refkubelet.host.disk_use import DiskUse, used_of
from refkubelet.stats.usage import CgroupMemory
from simclock import format_rfc3339

Json = dict[str, Any]
NODE_LITTLE: Final = ("nodeName", "systemContainers", "startTime", "cpu", "memory", "swap")
POD_LITTLE: Final = ("podRef", "startTime", "containers", "cpu", "memory", "swap")
CONTAINER_LITTLE: Final = ("name", "startTime", "cpu", "memory", "swap")


def shown_time(time_ns: int) -> str | None:
    """A time as `metav1.Time`; None for 0."""
    return format_rfc3339(time_ns) if time_ns else None


def known(**values: Any) -> Json:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def filesystem(
    stats: FilesystemStats | None, used: DiskUse | None = None, time_ns: int | None = None
) -> Json:
    """The part `fs` of a summary. `used`: by a container, volume or pod; None: the whole used
    space, without what is kept for root (SRV-033). `time_ns`: by default that of `stats`."""
    if stats is None:
        room: Json = {}
    else:
        time_ns = stats.time_ns if time_ns is None else time_ns
        used = used_of(stats) if used is None else used
        room = known(
            availableBytes=stats.available_bytes,
            capacityBytes=stats.capacity_bytes,
            inodesFree=stats.inodes_free,
            inodes=stats.inodes,
        )
    taken_by = known(usedBytes=used.bytes, inodesUsed=used.inodes) if used else {}
    return {"time": shown_time(time_ns or 0), **room, **taken_by}


def image_filesystem(stats: FilesystemStats, usage: FilesystemUsage) -> Json:
    """A filesystem of images: space measured on the machine, usage and time from the runtime
    (EVIC-028)."""
    used = DiskUse(usage.used_bytes, usage.inodes_used)
    return filesystem(stats, used, usage.time_ns)


def container_cpu(row: ContainerUsage, nano_cores: int | None, now_ns: int) -> Json:
    """The part `cpu` of a container; 0 at `now_ns` where the runtime says nothing about the CPU
    (SRV-030.11)."""
    if not row.cpu_time_ns and row.cpu_usage_core_ns is None:
        return cpu(now_ns, 0, 0, row.cpu_psi)
    return cpu(row.cpu_time_ns, row.cpu_usage_core_ns, nano_cores, row.cpu_psi)


def cpu(
    time_ns: int, core_ns: int | None, nano_cores: int | None, psi: Pressure | None = None
) -> Json:
    """The part `cpu`: the CPU time since the start, the cores in use, and the pressure."""
    return {
        "time": shown_time(time_ns),
        **known(usageNanoCores=nano_cores, usageCoreNanoSeconds=core_ns, psi=psi),
    }


def node_memory(stats: MemoryStats, root: Json) -> Json:
    """The node's memory: that of the root cgroup, with the machine's available memory."""
    return {
        **root,
        "time": shown_time(stats.time_ns),
        "availableBytes": stats.total_bytes - stats.working_set_bytes,
        "workingSetBytes": stats.working_set_bytes,
    }


def pressured(found: Json, pressure: Mapping[str, Any]) -> Json:
    """`found` with the pressure stall information (PSI) of the resource."""
    return {**found, "psi": pressure}


def container_io(row: ContainerUsage, now_ns: int) -> Json:
    """The part `io` of a container: the pressure, if it is known; else only the time, `now_ns`
    (SRV-030.11)."""
    return {"time": shown_time(row.io_time_ns or now_ns), **known(psi=row.io_psi)}


def swap_of(time_ns: int, used_bytes: int | None, left_bytes: int | None) -> Json:
    """The part `swap` of a cgroup."""
    return {
        "time": shown_time(time_ns),
        **known(swapAvailableBytes=left_bytes, swapUsageBytes=used_bytes),
    }


def cgroup_memory(memory: CgroupMemory, time_ns: int) -> Json:
    """The part `memory` of a cgroup."""
    return {
        "time": shown_time(time_ns),
        **known(
            availableBytes=memory.available_bytes,
            usageBytes=memory.usage_bytes,
            workingSetBytes=memory.working_set_bytes,
            rssBytes=memory.rss_bytes,
            pageFaults=memory.page_faults,
            majorPageFaults=memory.major_page_faults,
        ),
    }


def container_memory(row: ContainerUsage, now_ns: int) -> Json:
    """The part `memory` of a container, from the runtime; containerd says that 0 bytes are
    available where there is no limit (SRV-033). 0 at `now_ns` where the runtime says nothing about
    the memory (SRV-030.11)."""
    if not row.memory_time_ns and row.memory_working_set_bytes is None:
        nothing = {"usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0}
        return {"time": shown_time(now_ns), **nothing, **known(psi=row.memory_psi)}
    return {
        "time": shown_time(row.memory_time_ns),
        **known(
            availableBytes=row.memory_available_bytes or None,
            usageBytes=row.memory_usage_bytes,
            workingSetBytes=row.memory_working_set_bytes,
            rssBytes=row.memory_rss_bytes,
            pageFaults=row.memory_page_faults,
            majorPageFaults=row.memory_major_page_faults,
            psi=row.memory_psi,
        ),
    }


def swap(row: ContainerUsage, now_ns: int) -> Json:
    """The part `swap` of a container. Where the runtime says nothing about swap, the summary says
    that 0 bytes are used and 0 are available, at `now_ns` (SRV-030.10)."""
    is_measured = row.swap_usage_bytes is not None or row.swap_available_bytes is not None
    if not row.swap_time_ns and not is_measured:
        return swap_of(now_ns, 0, 0)
    return swap_of(row.swap_time_ns, row.swap_usage_bytes, row.swap_available_bytes)


def rlimit(pids: PidStats) -> Json:
    """The part `rlimit`: processes of the node (EVIC-025)."""
    return {"time": shown_time(pids.time_ns), "maxpid": pids.limit, "curproc": pids.running}


def only_cpu_and_memory(summary: Mapping[str, Any]) -> Json:
    """The short form of a summary, for monitors that ask often."""
    pods = [_only(pod, POD_LITTLE) for pod in summary["pods"]]
    for pod in pods:
        pod["containers"] = [_only(c, CONTAINER_LITTLE) for c in pod["containers"]]
    return {"node": _only(summary["node"], NODE_LITTLE), "pods": pods}


def _only(value: Mapping[str, Any], names: tuple[str, ...]) -> Json:
    return {name: value[name] for name in names if name in value}
