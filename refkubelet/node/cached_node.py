"""This node as the admission of pods sees it: from the informer, from the API server, or from what
the kubelet will register. Upstream: pkg/kubelet/kubelet_nodecache.go: GetCachedNode;
kubelet_getters.go: getNodeAnyWay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from refkubelet.admission.node_fit import NodeView, node_view
from refkubelet.admission.resource_fit import extended_resources
from refkubelet.api.client import ApiClient, ApiError
from refkubelet.model.objects import Node
from refkubelet.model.quantity import NANO
from refkubelet.node.status import NodeFacts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedNode:
    """Answers from the informer's Node, and before there is one from `facts`."""

    name: str
    max_pods: int
    """What is allocatable of pods where there are no facts."""
    facts: NodeFacts | None
    """What this kubelet registers; None: it keeps no Node object."""
    api: ApiClient | None
    """None: standalone."""
    informed: Callable[[], Node | None]
    """The Node as the informer has it; None: not yet, or standalone."""
    strict_groups: Callable[[], bool]
    """Whether the runtime knows the policy Strict of supplemental groups."""
    devices: Callable[[], Mapping[str, int]]
    """How many devices of each extended resource the plugins have."""

    def view(self) -> NodeView:
        """As it is known now, without a call."""
        node, facts, strict_groups = self.informed(), self.facts, self.strict_groups()
        if node is not None:
            return replace(node_view(node), strict_groups=strict_groups)
        if facts is None:
            return NodeView(self.name, strict_groups=strict_groups)
        taints = tuple((t["key"], t.get("value") or "", t["effect"]) for t in facts.taints)
        return NodeView(facts.name, facts.labels, taints, strict_groups)

    async def fresh_view(self) -> NodeView | None:
        """The node as the API server shows it now; None: it does not answer (LIFE-226)."""
        try:
            return node_view(await self.api.get_node(self.name)) if self.api else None
        except ApiError as error:
            log.warning("cannot ask for the node: %s", error)
            return None

    def allocatable(self) -> Mapping[str, int]:
        """Resource -> amount in billionths. Without facts only the number of pods is known.
        Extended resources are those that the Node shows, from any source, and those of device
        plugins."""
        node = self.informed()
        known = self.facts.allocatable if self.facts else {"pods": self.max_pods * NANO}
        return {
            **known,
            **(extended_resources(node) if node is not None else {}),
            **{name: number * NANO for name, number in self.devices().items()},
        }
