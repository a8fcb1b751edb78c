"""What is measured: volumes, pods, and the summary of the node."""

from __future__ import annotations

from msgspec import Struct

from refkubelet.container_manager.cgroups.node_config import pod_cgroup_of, pods_cgroup
from refkubelet.kuberuntime.options_from_config import is_crio
from refkubelet.stats.files import PodFilesReader
from refkubelet.stats.provider import PodStats
from refkubelet.stats.summary import SummaryDeps, SummaryProvider
from refkubelet.stats.volumes import VolumeStats
from refkubelet.telemetry.volume_metrics import COUNTED
from refkubelet.volumes.metrics import VolumeSizes
from refkubelet.wiring.base import STATS_FROM_CRI, Base
from refkubelet.wiring.csi import Csi
from refkubelet.wiring.runtime import RuntimeParts
from refkubelet.wiring.sources import Sources
from refkubelet.wiring.work import Work


class Stats(Struct, frozen=True):
    """`summary`: what the server shows at /stats/summary."""

    volumes: VolumeStats
    pods: PodStats
    summary: SummaryProvider


def build_stats(
    base: Base, sources: Sources, runtime: RuntimeParts, *, work: Work, csi: Csi | None
) -> Stats:
    config, deps, manager = base.config, base.deps, runtime.manager
    measuring = base.metrics.volumes.measuring
    files = PodFilesReader(
        str(deps.directories.root),
        config.pod_logs_dir,
        lambda: measuring.timed(deps.clock, COUNTED),
    )
    claimed = VolumeSizes(
        work.volumes.claimed,
        deps.machine.filesystem,
        deps.clock,
        csi.volumes if csi is not None else None,
        measuring,
    )
    volumes = VolumeStats(
        files=files,
        claimed=claimed.of,
        pods=sources.pods.pods,
        clock=deps.clock,
        random=deps.rng.stream("volume stats").random,
        period_s=config.volume_stats_agg_period_s,
    )
    pods = PodStats(
        runtime=manager,
        machine=deps.machine,
        pod_cgroup=pod_cgroup_of(config),
        files=files,
        volumes=volumes.of,
        by_sandbox=base.gate(STATS_FROM_CRI, default=False),
    )
    summary = SummaryDeps(
        clock=deps.clock,
        machine=deps.machine,
        node_name=deps.node.name,
        root_dir=str(deps.directories.root),
        stats=pods,
        pods=sources.pods.pods,
        image_fs_info=base.client.image_fs_info,
        pods_cgroup=pods_cgroup(config),
        container_disk=is_crio(config),
    )
    return Stats(volumes, pods, SummaryProvider(summary))
