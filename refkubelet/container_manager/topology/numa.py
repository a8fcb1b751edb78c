"""NUMA nodes of the machine and how far they are from each other. Pure.

Upstream: pkg/kubelet/cm/topologymanager/numa_info.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from refkubelet.container_manager.topology.hints import NumaMask, mask_of, nodes_of


@dataclass(frozen=True, slots=True)
class NumaInfo:
    """`distances`: node -> its distance to every node, in the order of `nodes`; may be left out
    where nobody prefers close nodes."""

    nodes: tuple[int, ...]
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def all_nodes(self) -> NumaMask:
        """Every node of the machine."""
        return mask_of(self.nodes)

    def spread(self, mask: NumaMask) -> int:
        """The distances between all nodes of the mask, added up, to themselves included. Of masks
        with equally many nodes, the one with the smaller sum lies closer together."""
        nodes = nodes_of(mask)
        place = {node: index for index, node in enumerate(self.nodes)}
        return sum(self.distances[a][place[b]] for a in nodes for b in nodes)
