"""The machine's memory by NUMA node, without the reservations. Pure.

Rules: CG-082. Upstream: pkg/kubelet/cm/memorymanager: memory_manager.go: getSystemReservedMemory,
validateReservedMemory; policy_static.go: getDefaultMachineState.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubeobjects.golang.strconv import quoted
from kubeobjects.quantity import NANO
from kubeobjects.resource_names import HUGE_PAGES
from kubeobjects.topology import NumaNode
from refkubelet.container_manager.cgroups.allocatable import shown
from refkubelet.container_manager.memory.state import MEMORY, MemoryTable, NodeMemory, Nodes
from refkubelet.model.cgroups.limits import page_resource


class Reservation(Struct, frozen=True):
    """One entry of reservedMemory; `limits`: resource -> nano units."""

    node: int
    limits: Mapping[str, int]


def machine_memory(
    nodes: Sequence[NumaNode], reserved: Sequence[Reservation], kept: Mapping[str, int]
) -> Nodes:
    """The nodes' memory, nothing assigned yet. `kept`: the reservations of the whole machine, in
    nano units (CG-034), to which `reserved` must add up. Raises ValueError."""
    _check(nodes, reserved, kept)
    of_node: dict[int, dict[str, int]] = {node.id: {} for node in nodes}
    for entry in reserved:
        for name, amount in entry.limits.items():
            of_node[entry.node][name] = amount // NANO
    if not any(limits.get(MEMORY) for limits in of_node.values()):
        raise ValueError("[memorymanager] you should specify the system reserved memory")
    return {node.id: NodeMemory(0, _tables(node, of_node[node.id]), (node.id,)) for node in nodes}


def _check(
    nodes: Sequence[NumaNode], reserved: Sequence[Reservation], kept: Mapping[str, int]
) -> None:
    """Raise ValueError for an unknown node, or if the entries do not add up to `kept`."""
    node_ids = {node.id for node in nodes}
    totals: dict[str, int] = {}
    for entry in reserved:
        if entry.node not in node_ids:
            raise ValueError(
                "the reserved memory configuration references a NUMA node "
                f"{entry.node} that does not exist on this machine"
            )
        for name, amount in entry.limits.items():
            totals[name] = totals.get(name, 0) + amount
    for name in _kinds((*totals, *kept)):
        total, expected_total = totals.get(name, 0), kept.get(name, 0)
        if total != expected_total:
            raise ValueError(
                f"the total amount {quoted(shown(name, total))} of type {quoted(name)} is not "
                f"equal to the value {quoted(shown(name, expected_total))} determined by "
                "Node Allocatable feature"
            )


def _kinds(names: Iterable[str]) -> list[str]:
    return sorted(
        {name for name in names if name == MEMORY or name.startswith(HUGE_PAGES)}, reverse=True
    )


def _tables(node: NumaNode, reserved: Mapping[str, int]) -> dict[str, MemoryTable]:
    """The tables of one node; the memory of huge pages is not allocatable as `memory`."""
    tables, pages_bytes = {}, 0
    for pages in node.hugepages:
        name, total = page_resource(pages.page_bytes), pages.page_bytes * pages.pages
        tables[name] = _table(total, reserved.get(name, 0))
        pages_bytes += total
    tables[MEMORY] = _table(node.memory_bytes, reserved.get(MEMORY, 0), pages_bytes)
    return tables


def _table(total: int, reserved: int, elsewhere: int = 0) -> MemoryTable:
    allocatable = max(0, total - reserved - elsewhere)
    return MemoryTable(
        total=total, system_reserved=reserved, allocatable=allocatable, reserved=0, free=allocatable
    )
