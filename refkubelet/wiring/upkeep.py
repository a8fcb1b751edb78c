"""What keeps the node usable: garbage collection, log rotation, eviction."""

from __future__ import annotations

from msgspec import Struct

from refkubelet.container_manager.cgroups.node_config import pods_cgroup
from refkubelet.eviction.cycle import EvictionConfig
from refkubelet.eviction.layout import CONTAINERS, IMAGES
from refkubelet.eviction.manager import EvictionDeps, EvictionManager
from refkubelet.eviction.observer import Observer
from refkubelet.kuberuntime.gc import ContainerGC, GarbageCollection
from refkubelet.kuberuntime.images.choice import ImageGcPolicy
from refkubelet.kuberuntime.images.gc import ImageGC
from refkubelet.kuberuntime.logs.rotation import ContainerLogManager, LogPolicy
from refkubelet.kuberuntime.options_from_config import is_crio
from refkubelet.model.pod import uid
from refkubelet.node.images import NodeImages
from refkubelet.wiring.base import Base
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources
from refkubelet.wiring.stats import Stats
from refkubelet.wiring.work import Work


class Upkeep(Struct, frozen=True):
    """`garbage`: containers, sandboxes and their logs."""

    garbage: GarbageCollection
    images: ImageGC
    node_images: NodeImages
    logs: ContainerLogManager
    eviction: EvictionManager


def build_upkeep(
    base: Base, sources: Sources, runtime: RuntimeParts, work: Work, stats: Stats
) -> Upkeep:
    config, deps = base.config, base.deps
    garbage = _garbage(base, sources, runtime, work)
    images = ImageGC(
        client=base.client,
        machine=deps.machine,
        deps=runtime.deps,
        policy=ImageGcPolicy.of(config),
        after_freeing=runtime.manager.prune_pull_records,
    )
    logs = ContainerLogManager(
        base.client, runtime.pleg.cache.running_containers, LogPolicy.of(config), deps.clock
    )
    eviction = EvictionDeps(
        clock=deps.clock,
        observer=Observer(
            deps.machine, str(deps.directories.root), pods_cgroup(config), may_split=is_crio(config)
        ),
        image_fs_info=base.client.image_fs_info,
        stats=stats.pods,
        pods=sources.pods.pods,
        active_pods=base.later.allocated_pods,
        pod_is_finished=lambda pod: work.workers.should_pod_be_finished(uid(pod)),
        kill_pod=work.killer.evict,
        events=base.recorder,
        reclaim={CONTAINERS: garbage.reclaim, IMAGES: images.delete_unused_images},
    )
    node_images = NodeImages(base.client.list_images, config.node_status_max_images, deps.clock)
    manager = EvictionManager(EvictionConfig.of(config), eviction)
    return Upkeep(
        garbage=garbage, images=images, node_images=node_images, logs=logs, eviction=manager
    )


def _garbage(base: Base, sources: Sources, runtime: RuntimeParts, work: Work) -> GarbageCollection:
    def keeps_content(pod_uid: str) -> bool:
        return not work.workers.should_pod_content_be_removed(pod_uid)

    return GarbageCollection(
        collector=ContainerGC(base.client, runtime.deps, runtime.options, work.workers),
        sources_ready=sources.seen.ready,
        recorder=base.recorder,
        clock=base.deps.clock,
        forget_old=lambda: runtime.manager.forget_resources(keeps_content),
    )
