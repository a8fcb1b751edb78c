"""The topology of CPUs: core, last-level cache, NUMA node and socket of each. Pure.

Upstream: pkg/kubelet/cm/cpumanager/topology/topology.go: CPUTopology, Discover.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from kubeobjects.topology import MachineTopology
from refkubelet.model.cpuset import CpuSet

Level = Literal["core", "cache", "node", "socket"]


class CpuPlace(Struct, frozen=True):
    """The place of one CPU. `core`: the lowest CPU of its core, unique on the machine."""

    cpu: int
    core: int
    cache: int
    node: int
    socket: int


class CpuTopology:
    """The CPUs of a machine, in units of every level; immutable."""

    def __init__(self, places: Iterable[CpuPlace]) -> None:
        self.places: Mapping[int, CpuPlace] = {place.cpu: place for place in places}
        self.cpus: CpuSet = frozenset(self.places)
        self.units: Mapping[Level, Mapping[int, CpuSet]] = {
            level: self.split(self.cpus, level) for level in ("core", "cache", "node", "socket")
        }

    def unit_of(self, cpu: int, level: Level) -> int:
        """The number of the CPU's unit."""
        number: int = getattr(self.places[cpu], level)
        return number

    def split(self, cpus: Iterable[int], level: Level) -> dict[int, CpuSet]:
        """The CPUs by unit, sorted by the units' numbers."""
        units: dict[int, set[int]] = {}
        for cpu in cpus:
            units.setdefault(self.unit_of(cpu, level), set()).add(cpu)
        return {number: frozenset(units[number]) for number in sorted(units)}

    def usual_size(self, level: Level) -> int:
        """The number of CPUs in a unit, assuming equally large units (upstream: CPUsPerCore,
        CPUsPerUncore, CPUsPerSocket)."""
        return len(self.cpus) // len(self.units[level])

    def of_units(self, level: Level, numbers: Iterable[int]) -> CpuSet:
        """All CPUs of these units."""
        units = self.units[level]
        return frozenset(cpu for number in numbers for cpu in units.get(number, ()))

    @property
    def hierarchy(self) -> tuple[Level, Level]:
        """The larger of socket and NUMA node, then the smaller. The node counts as larger unless
        the machine has more nodes than sockets."""
        nodes_larger = len(self.units["socket"]) >= len(self.units["node"])
        return ("node", "socket") if nodes_larger else ("socket", "node")


def cpu_topology(machine: MachineTopology) -> CpuTopology:
    """The topology of a machine; CPUs with an unknown last-level cache share one per socket."""
    cores: dict[tuple[int, int], int] = {}
    for cpu in sorted(machine.cpus, key=lambda c: c.cpu):
        cores.setdefault((cpu.socket, cpu.core), cpu.cpu)
    return CpuTopology(
        CpuPlace(
            cpu=cpu.cpu,
            core=cores[cpu.socket, cpu.core],
            cache=cpu.socket if cpu.cache is None else cpu.cache,
            node=cpu.node,
            socket=cpu.socket,
        )
        for cpu in machine.cpus
    )
