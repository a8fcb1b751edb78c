"""What is measured: volumes, pods, and the summary of the node."""

from __future__ import annotations

from dataclasses import dataclass

from refkubelet.container_manager.cgroups.settings import pod_cgroup_of, pods_cgroup
from refkubelet.kuberuntime.settings import is_crio
from refkubelet.stats.files import PodFilesReader
from refkubelet.stats.provider import PodStats
from refkubelet.stats.summary import SummaryDeps, SummaryProvider
from refkubelet.stats.volumes import VolumeStats
from refkubelet.wiring.base import Base
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources


@dataclass(frozen=True, slots=True)
class Stats:
    """`summary`: what the server shows at /stats/summary."""

    volumes: VolumeStats
    pods: PodStats
    summary: SummaryProvider


def build_stats(base: Base, sources: Sources, runtime: RuntimeParts) -> Stats:
    config, deps, manager = base.config, base.deps, runtime.manager
    files = PodFilesReader(str(deps.root_dir), config.pod_logs_dir)
    volumes = VolumeStats(
        files,
        sources.pods.pods,
        deps.clock,
        deps.rng.stream("volume stats").random,
        config.volume_stats_agg_period_s,
    )
    pods = PodStats(
        manager,
        deps.machine,
        pod_cgroup_of(config),
        files,
        volumes.of,
        by_sandbox=base.gate("PodAndContainerStatsFromCRI", default=False),
    )
    summary = SummaryDeps(
        deps.clock,
        deps.machine,
        deps.node_name,
        str(deps.root_dir),
        pods,
        sources.pods.pods,
        manager.image_fs_info,
        pods_cgroup(config),
        container_disk=is_crio(config),
    )
    return Stats(volumes, pods, SummaryProvider(summary))
