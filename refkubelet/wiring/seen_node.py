"""This node as admission sees it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from refkubelet.admission.node_fit import NodeView, node_view
from refkubelet.admission.resources import extended_resources
from refkubelet.api.client import ApiError
from refkubelet.model.quantity import NANO
from refkubelet.wiring.base import Base
from refkubelet.wiring.resources import Resources
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeenNode:
    """As the API server shows it, and before that as it will be registered."""

    base: Base
    sources: Sources
    resources: Resources
    runtime: RuntimeParts

    def view(self) -> NodeView:
        node, deps = self.sources.node(), self.base.deps
        facts, strict_groups = deps.node_facts, self.runtime.state.strict_groups
        if node is not None:
            return replace(node_view(node), strict_groups=strict_groups)
        if facts is None:
            return NodeView(deps.node_name, strict_groups=strict_groups)
        taints = tuple((t["key"], t.get("value") or "", t["effect"]) for t in facts.taints)
        return NodeView(facts.name, facts.labels, taints, strict_groups)

    async def fresh_view(self) -> NodeView | None:
        """The node as the API server shows it now; None: it does not answer (LIFE-226)."""
        api = self.base.deps.api
        try:
            return node_view(await api.get_node(self.base.deps.node_name)) if api else None
        except ApiError as error:
            log.warning("cannot ask for the node: %s", error)
            return None

    def allocatable(self) -> Mapping[str, int]:
        """A node without facts knows its number of pods only. Extended resources are those that
        the Node shows, whoever wrote them there, and those of device plugins."""
        facts, node = self.base.deps.node_facts, self.sources.node()
        known = facts.allocatable if facts else {"pods": self.base.config.max_pods * NANO}
        devices = self.resources.devices.allocatable() if self.resources.devices else {}
        return {
            **known,
            **(extended_resources(node) if node is not None else {}),
            **{name: number * NANO for name, number in devices.items()},
        }
