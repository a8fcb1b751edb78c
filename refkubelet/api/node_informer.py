"""The Node object of this node as the API server last showed it.

Mirror pods take their owner from here (MIRR-024), and the API source waits for the first list
(SRC-050).
"""

from __future__ import annotations

from refkubelet.api.client import ApiClient
from refkubelet.api.kinds import NODES
from refkubelet.api.paths import named
from refkubelet.api.reflector import Reflector
from refkubelet.model.objects import Node
from simclock import Clock, Rng


class NodeInformer:
    """Follows the Node of that name. `has_synced`: the first list was answered, with the node or
    without."""

    def __init__(self, api: ApiClient, node_name: str, clock: Clock, rng: Rng) -> None:
        self.has_synced = False
        self._node: Node | None = None
        self._reflector = Reflector(
            api, NODES, self._take, clock=clock, rng=rng, fields=named(node_name)
        )

    def node(self) -> Node | None:
        """The node, or None while it is unknown or does not exist."""
        return self._node

    async def run(self) -> None:
        """Follow the node until cancelled."""
        await self._reflector.run()

    async def _take(self, nodes: tuple[Node, ...]) -> None:
        self._node = nodes[0] if nodes else None
        self.has_synced = True
