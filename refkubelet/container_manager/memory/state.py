"""The memory manager's state: memory of NUMA nodes and its assignments, as immutable values. Pure.

Tables, nodes and blocks are written as they are: their JSON has upstream's names.

Resources are `memory` and `hugepages-<size>`; sizes are bytes. Rules: CG-082. Upstream:
pkg/kubelet/cm/memorymanager/state/state.go; policy_static.go: updateMachineState, releaseMemory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from kubeobjects.structs import replace
from refkubelet.container_manager.providers.hints import NumaMask, mask_of

MEMORY: Final = "memory"


class MemoryTable(msgspec.Struct, frozen=True, rename={"system_reserved": "systemReserved"}):
    """One resource of one node. `system_reserved`: not for pods; `reserved`: assigned to
    containers; `free`: the rest of `allocatable`."""

    total: int = 0
    system_reserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0

    def taken(self, size: int) -> MemoryTable:
        """The table after `size` more was assigned."""
        return msgspec.structs.replace(self, reserved=self.reserved + size, free=self.free - size)


NOTHING: Final = MemoryTable()


class NodeMemory(
    msgspec.Struct,
    frozen=True,
    rename={"assignments": "numberOfAssignments", "tables": "memoryMap"},
):
    """One node. `cells`: its group, the nodes from which memory was assigned together with it,
    itself included; `assignments`: the number of blocks that name it."""

    assignments: int = 0
    tables: Mapping[str, MemoryTable] = {}
    cells: tuple[int, ...] = ()

    def of(self, resource: str) -> MemoryTable:
        """The table of a resource; empty if the node has none."""
        return self.tables.get(resource, NOTHING)


Nodes = Mapping[int, NodeMemory]


class Block(msgspec.Struct, frozen=True, rename={"nodes": "numaAffinity", "resource": "type"}):
    """A container's memory of one resource: `size` bytes from these nodes together."""

    nodes: tuple[int, ...] = ()
    resource: str = ""
    size: int = 0

    @property
    def mask(self) -> NumaMask:
        return mask_of(self.nodes)


class MemoryState(Struct, frozen=True):
    """The nodes of the machine, and `entries`: pod UID -> container name -> its blocks."""

    nodes: Nodes = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, tuple[Block, ...]]] = field(default_factory=dict)

    def of(self, pod_uid: str, container: str) -> tuple[Block, ...] | None:
        """The container's blocks; None: it has none."""
        return self.entries.get(pod_uid, {}).get(container)

    def with_blocks(self, pod_uid: str, container: str, blocks: tuple[Block, ...]) -> MemoryState:
        """The state with these blocks for the container, and unchanged nodes."""
        pod = {**self.entries.get(pod_uid, {}), container: blocks}
        return replace(self, entries={**self.entries, pod_uid: pod})

    def released(self, pod_uid: str, container: str) -> MemoryState:
        """The state after the container was removed and its memory is free again."""
        pod = dict(self.entries.get(pod_uid, {}))
        nodes = self.nodes
        for block in pod.pop(container, ()):
            nodes = given_back(nodes, block)
        other_entries = {uid: entry for uid, entry in self.entries.items() if uid != pod_uid}
        return MemoryState(nodes, {**other_entries, pod_uid: pod} if pod else other_entries)


def taken(nodes: Nodes, block: Block) -> Nodes:
    """The nodes after a block was assigned: as much as possible from the first node, and so on.
    They form one group from now on."""
    changed, rest = dict(nodes), block.size
    for number in block.nodes:
        node = nodes[number]
        size = min(rest, max(0, node.of(block.resource).free))
        rest -= size
        changed[number] = NodeMemory(
            node.assignments + 1,
            _with(node, block.resource, node.of(block.resource).taken(size)),
            block.nodes,
        )
    return changed


def given_back(nodes: Nodes, block: Block) -> Nodes:
    """The nodes after a block was released. A node without blocks leaves its group."""
    changed, rest = dict(nodes), block.size
    for number in block.nodes:
        node = nodes[number]
        size = min(rest, node.of(block.resource).reserved)
        rest -= size
        assignments = node.assignments - 1
        changed[number] = NodeMemory(
            assignments,
            _with(node, block.resource, node.of(block.resource).taken(-size)),
            node.cells if assignments else (number,),
        )
    return changed


def _with(node: NodeMemory, resource: str, table: MemoryTable) -> Mapping[str, MemoryTable]:
    return {**node.tables, resource: table} if resource in node.tables else node.tables


def free(nodes: Nodes, chosen: Iterable[int], resource: str) -> int:
    """The free bytes of these nodes together."""
    return sum(nodes[number].of(resource).free for number in chosen)
