"""CPU, memory, swap and I/O of a cgroup in the form of the summary API (SRV-030).

The cores in use are computed from the CPU time at the previous summary. Upstream:
pkg/kubelet/stats/helper.go: cadvisorInfoToCPUandMemoryStats and its siblings.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from refkubelet.cri.usage import Pressure
from refkubelet.host.machine import Machine
from refkubelet.stats import wire
from refkubelet.stats.cgroup_files import (
    below,
    cpu_usage_ns,
    memory_dir,
    read_memory,
    read_pressure,
    read_swap,
)
from simclock import Clock

Json = dict[str, Any]
PRESSED: Final = ("cpu", "memory", "io")
"""The resources that processes may have to wait for (PSI)."""


class CpuRates:
    """Computes the cores in use from two readings of the CPU time."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, int]] = {}
        self._now: dict[str, tuple[int, int]] = {}

    def rate(self, key: str, time_ns: int, used_ns: int) -> int | None:
        """Nano cores since the previous reading of `key`; None for the first one, or if the time or
        the usage went back."""
        self._now[key] = (time_ns, used_ns)
        before = self._before.get(key)
        if before is None or time_ns <= before[0] or used_ns < before[1]:
            return None
        return (used_ns - before[1]) * 10**9 // (time_ns - before[0])

    def next(self) -> None:
        """End a summary: its readings become the previous ones; keys without a reading are
        dropped."""
        self._before, self._now = self._now, {}


class CgroupStats(Struct, frozen=True):
    """Reads cgroups by their absolute paths; "" is the root: the node."""

    machine: Machine
    clock: Clock
    rates: CpuRates = field(default_factory=CpuRates)

    def of(self, path: str) -> Json | None:
        """`cpu`, `memory`, `io` and `swap` of the cgroup; None: it does not exist."""
        version, now_ns = self.machine.cgroup_version(), self.clock.wall_ns()
        directory = memory_dir(self.machine, path)
        memory = read_memory(directory, version)
        if memory is None:
            return None
        used_ns = cpu_usage_ns(self.machine, path)
        rate = None if used_ns is None else self.rates.rate(f"cgroup {path}", now_ns, used_ns)
        cpu = wire.cpu(now_ns, used_ns, rate)
        return {
            "cpu": wire.pressured(cpu, read_pressure(directory, "cpu")),
            "memory": wire.pressured(
                wire.cgroup_memory(memory, now_ns), read_pressure(directory, "memory")
            ),
            "io": wire.pressured({"time": cpu["time"]}, read_pressure(directory, "io")),
            "swap": wire.swap_of(now_ns, *read_swap(directory, version)),
        }

    def pressure(self, path: str, container_id: str) -> dict[str, Pressure] | None:
        """Resource -> pressure on the cgroup of that container, below its pod's at `path`; None: it
        does not exist."""
        for directory in below(memory_dir(self.machine, path), (container_id,)):
            if directory.name.removesuffix(".scope").endswith(container_id):
                return {resource: read_pressure(directory, resource) for resource in PRESSED}
        return None
