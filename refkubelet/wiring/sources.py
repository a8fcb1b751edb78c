"""Which pods there should be: the sources of pods, the pod manager, and mirrors in the API."""

from __future__ import annotations

from msgspec import Struct

from refkubelet.api.node_informer import NodeInformer
from refkubelet.model.objects import Node
from refkubelet.pods.config import PodConfig
from refkubelet.pods.factory import ApiAccess, build_pod_config
from refkubelet.pods.manager import PodManager
from refkubelet.pods.mirror import MirrorClient
from refkubelet.sync_loop.loop import SeenSources
from refkubelet.wiring.base import Base


class Sources(Struct, frozen=True):
    """`config` merges the sources; `seen`: which of them the sync loop has heard of; `informer`
    None: standalone."""

    pods: PodManager
    config: PodConfig
    seen: SeenSources
    mirrors: MirrorClient
    informer: NodeInformer | None

    def node(self) -> Node | None:
        """This node as the API server shows it; None before that, and standalone."""
        return self.informer.node() if self.informer is not None else None


def build_sources(base: Base) -> Sources:
    deps, api = base.deps, base.deps.api
    informer = NodeInformer(api, deps.node.name, deps.clock, deps.rng) if api else None
    access = ApiAccess(api, informer) if api and informer else None
    config = build_pod_config(
        config=base.config,
        node_name=deps.node.name,
        api=access,
        recorder=base.recorder,
        clock=deps.clock,
        rng=deps.rng,
        network=deps.network,
        latency=base.latency,
    )
    mirrors = MirrorClient(api, deps.node.name, lambda: informer.node() if informer else None)
    return Sources(
        pods=PodManager(),
        config=config,
        seen=SeenSources(config.seen_all_sources),
        mirrors=mirrors,
        informer=informer,
    )
