"""Machines, pods and what the managers need around them, for tests of the resource managers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import astuple
from pods import container

from fakecri import uniform_topology
from kubeobjects.topology import Cpu, HugePages, MachineTopology, NumaNode
from refkubelet.container_manager.cpu.topology import CpuTopology, cpu_topology
from refkubelet.container_manager.providers.active import ActiveContainers
from refkubelet.container_manager.providers.hints import NumaMask, TopologyHint
from refkubelet.model.objects import Pod

GI = 1024**3
MI = 1024**2
SERVER = {"sockets": 2, "cores": 16, "threads": 2}


def machine(**shape: Any) -> MachineTopology:
    """A machine in the words of `fakecri.uniform_topology`."""
    made = uniform_topology(**shape)
    cpus = tuple(Cpu(*astuple(cpu)) for cpu in made.cpus)
    nodes = tuple(
        NumaNode(
            n.id,
            n.memory_bytes,
            tuple(HugePages(p.page_bytes, p.pages) for p in n.hugepages),
            n.distances,
        )
        for n in made.nodes
    )
    return MachineTopology(cpus, nodes)


def cpus_of(**shape: Any) -> CpuTopology:
    """Its CPUs."""
    return cpu_topology(machine(**shape))


def sure(name: str, cpu: str, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    """A container whose limits are its requests; `more`: further fields."""
    return container(name, cpu=f"{cpu}/{cpu}", memory=f"{memory}/{memory}", **more)


@dataclass(slots=True)
class Around:
    """Affinities and active pods, to be set by a test."""

    hint: TopologyHint = field(default_factory=TopologyHint)
    pods: list[Pod] = field(default_factory=list)
    ready: bool = True

    def affinity(self, pod_uid: str, container_name: str) -> TopologyHint:
        return self.hint

    def near(self, mask: NumaMask) -> None:
        """From now on containers are to be near these nodes."""
        self.hint = TopologyHint(mask, preferred=True)

    @property
    def active(self) -> ActiveContainers:
        return ActiveContainers(lambda: tuple(self.pods), lambda: self.ready)
