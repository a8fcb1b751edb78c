"""What the machine has, as resources: CPU, memory, huge pages, pids.

Amounts are resource name -> nano units. Rules: NODE-030, CG-034. Upstream:
pkg/kubelet/cadvisor/util.go: CapacityFromMachineInfo; pkg/kubelet/cm/container_manager_linux.go:
internalCapacity.
"""

from __future__ import annotations

from refkubelet.host.machine import Machine, MachineTopology
from refkubelet.model.cgroups.limits import page_resource
from refkubelet.model.quantity import NANO


def page_sizes(topology: MachineTopology) -> tuple[int, ...]:
    """Of huge pages, in bytes, also those of which there are no pages now."""
    return tuple(sorted({pages.page_bytes for node in topology.nodes for pages in node.hugepages}))


def machine_capacity(machine: Machine) -> dict[str, int]:
    """CPU, memory and huge pages of every size."""
    topology = machine.topology()
    capacity = {"cpu": machine.cpu_count() * NANO, "memory": machine.memory().total_bytes * NANO}
    for size in page_sizes(topology):
        pages = (p for node in topology.nodes for p in node.hugepages if p.page_bytes == size)
        capacity[page_resource(size)] = sum(p.pages for p in pages) * size * NANO
    return capacity


def internal_capacity(machine: Machine) -> dict[str, int]:
    """What the cgroup of all pods is limited by: pids, too."""
    return {**machine_capacity(machine), "pid": machine.pids().limit * NANO}
