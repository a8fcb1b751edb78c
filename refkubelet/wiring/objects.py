"""What pods need of the API server: ConfigMaps, Secrets, tokens, trust bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from refkubelet.api.client import ApiClient
from refkubelet.api.kinds import CONFIG_MAPS, SECRETS
from refkubelet.failures import Part
from refkubelet.model.objects import Node
from refkubelet.object_manager.fetched import FetchedObjects, ttl_of
from refkubelet.object_manager.manager import PodObjects
from refkubelet.object_manager.tokens import TokenManager
from refkubelet.object_manager.trust_bundles import TrustBundleManager
from refkubelet.object_manager.watched import WatchedObjects
from refkubelet.wiring.base import Base
from refkubelet.wiring.sources import Sources


class Objects(Struct, frozen=True):
    """`watched`: the stores that follow objects; none with another strategy than Watch.
    `trust_bundles` None: the gate ClusterTrustBundleProjection is off, as it is by default."""

    of_pods: PodObjects
    tokens: TokenManager
    trust_bundles: TrustBundleManager | None
    watched: tuple[Part, ...] = ()

    def parts(self) -> Iterator[Part]:
        """What runs."""
        yield from self.watched
        yield Part("tokens", self.tokens.run)
        if self.trust_bundles is not None:
            yield Part("trust bundles", self.trust_bundles.run)


def build_objects(base: Base, sources: Sources) -> Objects | None:
    """None: standalone."""
    deps = base.deps
    if deps.api is None:
        return None
    of_pods, parts = _of_pods(base, deps.api, sources.node)
    bundles = None
    if base.gate("ClusterTrustBundleProjection", default=False):
        bundles = TrustBundleManager(deps.api, deps.clock, deps.rng)
    return Objects(of_pods, TokenManager(deps.api, deps.clock, deps.rng), bundles, parts)


def _of_pods(
    base: Base, api: ApiClient, node: Callable[[], Node | None]
) -> tuple[PodObjects, tuple[Part, ...]]:
    """The objects by the configured strategy (NODE-207), and what runs for them."""
    deps, strategy = base.deps, base.config.config_map_and_secret_change_detection_strategy
    if strategy != "Watch":

        def ttl_s() -> float:
            return ttl_of(node()) if strategy == "Cache" else 0.0

        maps = FetchedObjects(api, CONFIG_MAPS, deps.clock, ttl_s)
        return PodObjects(maps, FetchedObjects(api, SECRETS, deps.clock, ttl_s)), ()
    watched = partial(
        WatchedObjects,
        api,
        clock=deps.clock,
        rng=deps.rng,
        sync_frequency_s=base.config.sync_frequency_s,
    )
    followed_maps = watched(CONFIG_MAPS, "configmap")
    followed_secrets = watched(SECRETS, "secret")
    parts = (Part("config maps", followed_maps.run), Part("secrets", followed_secrets.run))
    return PodObjects(followed_maps, followed_secrets), parts
