"""The node as the admission of pods needs it: from the informer, from the API server, or from the
facts that the kubelet registers. Upstream: pkg/kubelet/kubelet_nodecache.go: GetCachedNode;
kubelet_getters.go: getNodeAnyWay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from kubeobjects.quantity import NANO
from kubeobjects.structs import replace
from refkubelet.admission.node_fit import NodeView, node_view
from refkubelet.admission.resource_fit import extended_resources
from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import NODES
from refkubelet.model.objects import Node
from refkubelet.node.status import NodeFacts

log = logging.getLogger(__name__)


class CachedNode(Struct, frozen=True):
    """Answers from the informer's Node, or while there is none from `facts`."""

    name: str
    max_pods: int
    """The allocatable number of pods, if `facts` is None."""
    facts: NodeFacts | None
    """What this kubelet registers; None: it keeps no Node object."""
    api: ApiClient | None
    """None: standalone."""
    informed: Callable[[], Node | None]
    """The informer's Node; None: not yet, or standalone."""
    strict_groups: Callable[[], bool]
    """Whether the runtime supports the policy Strict of supplemental groups."""
    devices: Callable[[], Mapping[str, int]]
    """The number of devices of each extended resource, from device plugins."""

    def view(self) -> NodeView:
        """The node as far as it is known without a call to the API server."""
        node, facts, strict_groups = self.informed(), self.facts, self.strict_groups()
        if node is not None:
            return replace(node_view(node), strict_groups=strict_groups)
        if facts is None:
            return NodeView(self.name, strict_groups=strict_groups)
        taints = tuple((t["key"], t.get("value") or "", t["effect"]) for t in facts.taints)
        return NodeView(facts.name, facts.labels, taints, strict_groups)

    async def fresh_view(self) -> NodeView | None:
        """The node from the API server; None: it does not answer (LIFE-226)."""
        try:
            return node_view(await self.api.get(NODES, self.name)) if self.api else None
        except ApiError as error:
            log.warning("cannot get the node from the API server: %s", error)
            return None

    def allocatable(self) -> Mapping[str, int]:
        """The allocatable resources: name -> amount in billionths; without `facts` only the number
        of pods. Extended resources are those of the Node object and of device plugins."""
        node = self.informed()
        base = self.facts.allocatable if self.facts else {"pods": self.max_pods * NANO}
        return {
            **base,
            **(extended_resources(node) if node is not None else {}),
            **{name: number * NANO for name, number in self.devices().items()},
        }
