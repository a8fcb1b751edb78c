"""Policy Static of the memory manager: decides from which NUMA nodes memory is assigned. Pure.

A container's memory comes from one node, or from a group of nodes. What must never happen here: a
node assigns memory both alone and in a group, or in two groups.

Rules: CG-082. Upstream: pkg/kubelet/cm/memorymanager/policy_static.go: calculateHints, Allocate,
validateState.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from refkubelet.checkpoints.content import StateFileError
from refkubelet.container_manager.memory.state import (
    Block,
    MemoryState,
    NodeMemory,
    Nodes,
    free,
    taken,
)
from refkubelet.container_manager.providers.hints import (
    AllocationError,
    Hints,
    NumaMask,
    TopologyHint,
    all_masks,
    nodes_of,
)

Requests = Mapping[str, int]
Reusable = Callable[[NumaMask, str], int]
"""The bytes of init containers that can be reused, by nodes and resource."""
PREFIX: Final = "[memorymanager] "


def nothing_reusable(mask: NumaMask, resource: str) -> int:
    """For pods without reusable memory."""
    return 0


def memory_hints(
    nodes: Nodes, requests: Requests, reusable: Reusable = nothing_reusable
) -> tuple[TopologyHint, ...]:
    """The sets of nodes that have enough free memory for all requests. Preferred are the sets of
    the smallest size that would be enough if all memory were free."""
    least, masks = len(nodes), list[NumaMask]()
    for mask in all_masks(sorted(nodes)):
        chosen = nodes_of(mask)
        if not _could(nodes, chosen, requests):
            continue
        least = min(least, len(chosen))
        enough = all(
            free(nodes, chosen, name) + reusable(mask, name) >= size
            for name, size in requests.items()
        )
        if enough and _may_group(nodes, chosen):
            masks.append(mask)
    return tuple(TopologyHint(mask, mask.bit_count() == least) for mask in masks)


def _could(nodes: Nodes, chosen: tuple[int, ...], requests: Requests) -> bool:
    """Whether the nodes have enough memory for the requests if all of it were free."""
    return all(
        sum(nodes[number].of(name).allocatable for number in chosen) >= size
        for name, size in requests.items()
    )


def _may_group(nodes: Nodes, chosen: tuple[int, ...]) -> bool:
    """Whether memory may be assigned from these nodes together: a single node must not be in a
    group; several must be unused, or this same group."""
    if len(chosen) == 1:
        return len(nodes[chosen[0]].cells) <= 1
    return all(_fits_group(nodes[number], chosen) for number in chosen)


def _fits_group(node: NodeMemory, group: tuple[int, ...]) -> bool:
    return node.assignments == 0 or sorted(node.cells) == sorted(group)


def hints_for_requests(hints: tuple[TopologyHint, ...], requests: Requests) -> Hints:
    """The hints for every requested resource. Without hints the result is empty, as in upstream:
    then the allocation fails, not the alignment."""
    return dict.fromkeys(requests, hints) if hints else {}


def hints_of_blocks(blocks: Iterable[Block], requests: Requests) -> Hints:
    """The hints of a container that has its memory already; empty if that differs from its
    requests."""
    by_name = {block.resource: block for block in blocks}
    if {name: block.size for name, block in by_name.items()} != dict(requests):
        return {}
    return {name: (TopologyHint(block.mask, preferred=True),) for name, block in by_name.items()}


def chosen_nodes(
    nodes: Nodes, requests: Requests, hint: TopologyHint, reusable: Reusable = nothing_reusable
) -> tuple[int, ...]:
    """The nodes for an allocation: those of the hint, extended if they have not enough memory; or
    the best ones if the hint names none. Raises `AllocationError`."""
    best = hint
    if best.affinity is None:
        best = _best(memory_hints(nodes, requests, reusable))
        if best.affinity is None:
            raise AllocationError(
                f"{PREFIX}failed to get the default NUMA affinity, "
                "no NUMA nodes with enough memory is available"
            )
        if hint.preferred and not best.preferred:
            raise AllocationError(f"{PREFIX}failed to find the default preferred hint")
    mask = best.affinity or 0
    if any(free(nodes, nodes_of(mask), name) < size for name, size in requests.items()):
        wider = (h for h in memory_hints(nodes, requests, reusable) if _includes(h, mask))
        extended = _best(wider)
        if extended.affinity is None:
            raise AllocationError(
                f"{PREFIX}failed to find NUMA nodes to extend the current topology hint"
            )
        if best.preferred and not extended.preferred:
            raise AllocationError(f"{PREFIX}failed to find the extended preferred hint")
        mask = extended.affinity
    chosen = nodes_of(mask)
    if len(chosen) > 1 and not all(_fits_group(nodes[number], chosen) for number in chosen):
        raise AllocationError(f"{PREFIX}preferred hint violates NUMA node allocation")
    return chosen


def _includes(hint: TopologyHint, mask: NumaMask) -> bool:
    return hint.affinity is not None and mask & ~hint.affinity == 0


def _best(hints: Iterable[TopologyHint]) -> TopologyHint:
    """The narrowest preferred hint, else the narrowest of all; an empty hint if there are none."""
    return min(hints, key=_rank, default=TopologyHint())


def _rank(hint: TopologyHint) -> tuple[bool, int, NumaMask]:
    mask = hint.affinity or 0
    return (not hint.preferred, mask.bit_count(), mask)


def checked(state: MemoryState, fresh: Nodes) -> MemoryState:
    """The restored state, or the first one if it is empty. `fresh`: the machine's nodes, nothing
    assigned. Raises `StateFileError` if the state does not fit the machine or the configuration."""
    if not state.nodes:
        if state.entries:
            raise StateFileError(
                f"{PREFIX}machine state can not be empty when it has memory assignments"
            )
        return MemoryState(fresh)
    expected = fresh
    for pod_uid, pod in state.entries.items():
        for name, blocks in pod.items():
            for block in blocks:
                _check_block(fresh, block, f"(pod: {pod_uid}, container: {name})")
                expected = taken(expected, block)
    if not _alike(state.nodes, expected):
        raise StateFileError(f"{PREFIX}the expected machine state is different from the real one")
    return state


def _check_block(nodes: Nodes, block: Block, whose: str) -> None:
    for number in block.nodes:
        if number not in nodes:
            raise StateFileError(
                f"{PREFIX}{whose} the memory assignment uses the NUMA that does not exist"
            )
        if block.resource not in nodes[number].tables:
            raise StateFileError(
                f"{PREFIX}{whose} the memory assignment uses memory resource that does not exist"
            )


def _alike(one: Nodes, other: Nodes) -> bool:
    """Whether both have the same nodes, with the same assigned memory by group; its distribution in
    a group depends on the order of allocations."""
    return one.keys() == other.keys() and all(
        _shape(one, number) == _shape(other, number) for number in one
    )


def _shape(nodes: Nodes, number: int) -> object:
    node = nodes[number]
    cells = tuple(n for n in sorted(node.cells) if n in nodes)
    tables = {
        name: (
            table.total,
            table.system_reserved,
            table.allocatable,
            sum(nodes[n].of(name).free for n in cells),
            sum(nodes[n].of(name).reserved for n in cells),
        )
        for name, table in node.tables.items()
    }
    return node.assignments, cells, tables
