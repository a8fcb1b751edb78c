"""Merges topology hints into one. Pure.

Every combination of one hint from each list gives a candidate: the nodes that all its hints have in
common. It is preferred if all its hints are preferred and have the same nodes. Preferred candidates
win, then the order of `_rank` decides. What must never happen here: a merged hint without nodes.

Rules: CG-083. Upstream: pkg/kubelet/cm/topologymanager/policy.go: filterProvidersHints,
mergePermutation, HintMerger; policy_single_numa_node.go: filterSingleNumaHints;
numa_info.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

from msgspec import Struct, field

from refkubelet.container_manager.providers.hints import (
    ANY,
    Hints,
    NumaMask,
    TopologyHint,
    mask_of,
    nodes_of,
)


class NumaInfo(Struct, frozen=True):
    """The machine's NUMA nodes. `distances`: node -> its distance to every node, in the order of
    `nodes`; needed only if close nodes are preferred."""

    nodes: tuple[int, ...]
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def all_nodes(self) -> NumaMask:
        """Every node of the machine."""
        return mask_of(self.nodes)

    def spread(self, mask: NumaMask) -> int:
        """The sum of the distances between all nodes of the mask, also of each to itself. Of masks
        of the same size, the one with the smaller sum is closer together."""
        nodes = nodes_of(mask)
        place = {node: index for index, node in enumerate(self.nodes)}
        return sum(self.distances[a][place[b]] for a in nodes for b in nodes)


HintLists = Sequence[Sequence[TopologyHint]]
"""One list of alternatives for each resource."""

INDIFFERENT: Final = TopologyHint(ANY, preferred=True)
IMPOSSIBLE: Final = TopologyHint(ANY, preferred=False)


def hint_lists(provided: Iterable[Hints]) -> list[tuple[TopologyHint, ...]]:
    """The providers' hints as lists to merge: no hints and no preference become `INDIFFERENT`, an
    empty list becomes `IMPOSSIBLE`."""
    lists: list[tuple[TopologyHint, ...]] = []
    for hints in provided:
        if not hints:
            lists.append((INDIFFERENT,))
        for alternatives in hints.values():
            if alternatives is None:
                lists.append((INDIFFERENT,))
            else:
                lists.append(alternatives or (IMPOSSIBLE,))
    return lists


def single_node_hints(lists: HintLists) -> list[tuple[TopologyHint, ...]]:
    """The hints that policy single-numa-node can use: preferred ones with one node, or any."""
    return [
        tuple(
            hint
            for hint in hints
            if hint.preferred and (hint.affinity is None or hint.affinity.bit_count() == 1)
        )
        for hints in lists
    ]


def merge_hints(lists: HintLists, numa: NumaInfo, *, closest: bool = False) -> TopologyHint:
    """The best candidate; without any all nodes, not preferred. `closest`: of candidates of the
    same size the closest together wins, else the one with the lowest nodes (option
    prefer-closest-numa-nodes)."""
    target = widest_need(lists)
    merged = (merge_permutation(numa.all_nodes, chosen) for chosen in product(*lists))
    candidates = {hint for hint in merged if hint.affinity}
    if not candidates:
        return TopologyHint(numa.all_nodes, preferred=False)
    return min(candidates, key=lambda hint: _rank(hint, target, numa if closest else None))


def merge_permutation(all_nodes: NumaMask, chosen: Iterable[TopologyHint]) -> TopologyHint:
    """The nodes that all chosen hints have in common; preferred if all hints are, and those with
    nodes have the same."""
    mask, named, preferred = all_nodes, set[NumaMask](), True
    for hint in chosen:
        preferred &= hint.preferred
        if hint.affinity is not None:
            mask &= hint.affinity
            named.add(hint.affinity)
    return TopologyHint(mask, preferred and len(named) <= 1)


def widest_need(lists: HintLists) -> int:
    """The smallest number of nodes for the most demanding resource."""
    needs = (
        min((h.affinity.bit_count() for h in hints if h.affinity is not None), default=0)
        for hints in lists
    )
    return max(needs, default=0)


def _rank(
    hint: TopologyHint, target: int, close_in: NumaInfo | None
) -> tuple[bool, bool, int, int, NumaMask]:
    """Sort key, the best first. Preferred hints: the fewest nodes. Others: as many nodes as the
    most demanding resource needs (`target`), else as close below it, else as close above it."""
    mask = hint.affinity or 0
    count = mask.bit_count()
    apart = close_in.spread(mask) if close_in is not None else 0
    if hint.preferred:
        return (False, False, count, apart, mask)
    return (True, count > target, abs(count - target), apart, mask)
