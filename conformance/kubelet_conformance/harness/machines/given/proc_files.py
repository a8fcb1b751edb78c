"""The files below /proc in which a kubelet reads of its machine: the text that Linux would have.

Pure functions. Only the lines are there that kubelets look for, and what stands around them in the
kernel's own files, in the kernel's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubeobjects.topology import Cpu, MachineTopology

_KIB: Final = 1024
_HUGE_PAGE_BYTES: Final = 2 << 20
_MHZ: Final = "2000.000"
_TICKS: Final = 1000


def meminfo(total_bytes: int, used_bytes: int, swap_bytes: int, topology: MachineTopology) -> str:
    """/proc/meminfo. `used_bytes`: what cannot be freed; the rest is free, nothing is cached.

    Huge pages of 2 MiB that are set aside are told, as Linux tells its default size only.
    """
    free = max(0, total_bytes - used_bytes)
    pages = sum(
        pool.pages
        for node in topology.nodes
        for pool in node.hugepages
        if pool.page_bytes == _HUGE_PAGE_BYTES
    )
    sizes = {
        "MemTotal": total_bytes,
        "MemFree": free,
        "MemAvailable": free,
        "Buffers": 0,
        "Cached": 0,
        "SwapCached": 0,
        "Active": used_bytes,
        "Inactive": 0,
        "Active(anon)": used_bytes,
        "Inactive(anon)": 0,
        "Active(file)": 0,
        "Inactive(file)": 0,
        "SwapTotal": swap_bytes,
        "SwapFree": swap_bytes,
        "AnonPages": used_bytes,
        "Mapped": 0,
        "Shmem": 0,
        "Slab": 0,
    }
    lines = [_size(name, size) for name, size in sizes.items()]
    lines += [_count("HugePages_Total", pages), _count("HugePages_Free", pages)]
    lines += [_count("HugePages_Rsvd", 0), _count("HugePages_Surp", 0)]
    lines += [_size("Hugepagesize", _HUGE_PAGE_BYTES), _size("Hugetlb", pages * _HUGE_PAGE_BYTES)]
    return "".join(lines)


def _size(name: str, size_bytes: int) -> str:
    return f"{name + ':':<16}{size_bytes // _KIB:>8} kB\n"


def _count(name: str, number: int) -> str:
    return f"{name + ':':<16}{number:>8}\n"


def cpuinfo(topology: MachineTopology) -> str:
    """/proc/cpuinfo of an x86 machine: a paragraph for each CPU."""
    return "".join(_processor(cpu, topology.cpus) for cpu in _sorted(topology))


def _processor(cpu: Cpu, cpus: Sequence[Cpu]) -> str:
    socket = [other for other in cpus if other.socket == cpu.socket]
    lines = [
        f"processor\t: {cpu.cpu}",
        "vendor_id\t: GenuineIntel",
        "cpu family\t: 6",
        "model\t\t: 106",
        "model name\t: of the fake node",
        "stepping\t: 6",
        f"cpu MHz\t\t: {_MHZ}",
        "cache size\t: 16384 KB",
        f"physical id\t: {cpu.socket}",
        f"siblings\t: {len(socket)}",
        f"core id\t\t: {cpu.core}",
        f"cpu cores\t: {len({other.core for other in socket})}",
        f"apicid\t\t: {cpu.cpu}",
    ]
    return "\n".join(lines) + "\n\n"


def stat(topology: MachineTopology, booted_s: int) -> str:
    """/proc/stat: every CPU has always been idle. `booted_s`: when the machine was started, in
    seconds since 1970."""
    times = f"0 0 0 {_TICKS} 0 0 0 0 0 0"
    lines = [f"cpu  0 0 0 {_TICKS * len(topology.cpus)} 0 0 0 0 0 0"]
    lines += [f"cpu{cpu.cpu} {times}" for cpu in _sorted(topology)]
    lines += ["intr 0", "ctxt 0", f"btime {booted_s}", "processes 1"]
    lines += ["procs_running 1", "procs_blocked 0", "softirq 0 0 0 0 0 0 0 0 0 0 0"]
    return "\n".join(lines) + "\n"


def loadavg(tasks: int) -> str:
    """/proc/loadavg of an idle machine with so many tasks."""
    return f"0.00 0.00 0.00 1/{tasks} {tasks}\n"


def swaps(swap_bytes: int) -> str:
    """/proc/swaps: one partition, or the heading alone."""
    heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    if not swap_bytes:
        return heading
    size = f"partition\t{swap_bytes // _KIB}\t\t0\t\t-2"
    return f"{heading}{'/dev/fake-swap':<40}{size}\n"


def own_cgroup(version: int, controllers: Sequence[str], service: str = "/") -> str:
    """/proc/PID/cgroup of a process. With v2 it is in the group `service`, with v1 in the root of
    every tree. `controllers`: what is mounted with v1; "systemd" is the tree without
    controllers."""
    if version == 2:
        return f"0::{service}\n"
    trees = [f"name={name}" if name == "systemd" else name for name in controllers]
    lines = [f"{len(trees) - place}:{name}:/\n" for place, name in enumerate(reversed(trees))]
    return "".join(lines)


def _sorted(topology: MachineTopology) -> list[Cpu]:
    return sorted(topology.cpus, key=lambda cpu: cpu.cpu)
