"""The pods that the API server bound to this node.

Rules: SRC-050 (all namespaces, this node only, after the node informer's first list), SRC-051.
Upstream: pkg/kubelet/config/apiserver.go.
"""

from __future__ import annotations

from typing import Final

from refkubelet.api.client import ApiClient
from refkubelet.api.kinds import PODS
from refkubelet.api.node_informer import NodeInformer
from refkubelet.api.paths import on_node
from refkubelet.api.reflector import Reflector
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.config import Deliver
from simclock import Clock, Rng

NODE_POLL_S: Final = 1.0


class ApiSource:
    """Delivers all pods of the node, at every change."""

    source = PodSource.API

    def __init__(
        self, api: ApiClient, node_name: str, informer: NodeInformer, clock: Clock, rng: Rng
    ) -> None:
        self._api = api
        self._node_name = node_name
        self._informer = informer
        self._clock = clock
        self._rng = rng

    async def run(self, deliver: Deliver) -> None:
        """Wait for the node informer's first list, then follow the pods until cancelled."""
        while not self._informer.has_synced:
            await self._clock.sleep(NODE_POLL_S)

        async def on_change(pods: tuple[Pod, ...]) -> None:
            await deliver(pods)

        reflector = Reflector(
            self._api,
            PODS,
            on_change,
            clock=self._clock,
            rng=self._rng,
            fields=on_node(self._node_name),
        )
        await reflector.run()
