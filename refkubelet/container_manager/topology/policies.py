"""The topology manager's policies: how hints are merged, and whether the result is admitted. Pure.

Rules: CG-083. Upstream: pkg/kubelet/cm/topologymanager: policy_best_effort.go,
policy_restricted.go, policy_single_numa_node.go, topology_manager.go: NewManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from kubeobjects.golang.strconv import quoted
from refkubelet.container_manager.providers.hints import ANY, Hints, TopologyHint
from refkubelet.container_manager.topology.merge import (
    NumaInfo,
    hint_lists,
    merge_hints,
    single_node_hints,
)
from refkubelet.container_manager.topology.policy_options import TopologyOptions, topology_options

PolicyName = Literal["none", "best-effort", "restricted", "single-numa-node"]
NONE: Final = "none"
BEST_EFFORT: Final = "best-effort"
SINGLE_NUMA_NODE: Final = "single-numa-node"
POLICIES: Final = (NONE, BEST_EFFORT, "restricted", SINGLE_NUMA_NODE)

AFFINITY_ERROR: Final = "TopologyAffinityError"  # CG-083, LIFE-223
AFFINITY_TEXT: Final = "Resources cannot be allocated with Topology locality"


class TopologyPolicy(Struct, frozen=True):
    """A policy for one machine."""

    name: str
    numa: NumaInfo
    options: TopologyOptions

    def merge(self, provided: Iterable[Hints]) -> tuple[TopologyHint, bool]:
        """The merged hint, and whether the pod may be admitted with it."""
        lists = hint_lists(provided)
        if self.name == SINGLE_NUMA_NODE:
            best = merge_hints(single_node_hints(lists), self.numa)
            if best.affinity == self.numa.all_nodes:
                best = TopologyHint(ANY, best.preferred)
        else:
            best = merge_hints(lists, self.numa, closest=self.options.prefer_closest)
        return best, best.preferred or self.name == BEST_EFFORT


def topology_policy(name: str, numa: NumaInfo, options: Mapping[str, str]) -> TopologyPolicy | None:
    """The configured policy; None for policy none. Raises ValueError, which stops the start."""
    if name == NONE:
        return None
    chosen = topology_options(options)
    if chosen.prefer_closest and any(not numa.distances.get(node) for node in numa.nodes):
        text = "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
        raise ValueError(text)
    if len(numa.nodes) > chosen.max_nodes:
        raise ValueError(f"unsupported on machines with more than {chosen.max_nodes} NUMA Nodes")
    if name not in POLICIES:
        raise ValueError(f"unknown policy: {quoted(name)}")
    return TopologyPolicy(name, numa, chosen)
