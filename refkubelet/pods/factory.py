"""Makes the pod sources of a kubelet: for files if staticPodPath is set, and for the API server
unless the kubelet is standalone."""

from __future__ import annotations

from msgspec import Struct

from refkubelet.api.client import ApiClient
from refkubelet.api.node_informer import NodeInformer
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.network import Network
from refkubelet.pods.api_source import ApiSource
from refkubelet.pods.config import PodConfig, Source
from refkubelet.pods.file_source import FileSource
from refkubelet.pods.url_source import UrlSettings, UrlSource
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from simclock import Clock, Rng


class ApiAccess(Struct, frozen=True):
    """An API server and the informer that follows this node there."""

    client: ApiClient
    informer: NodeInformer


def build_pod_config(
    config: KubeletConfiguration,
    node_name: str,
    api: ApiAccess | None,
    recorder: EventRecorder,
    clock: Clock,
    rng: Rng,
    network: Network | None = None,
    latency: PodStartupLatency | None = None,
) -> PodConfig:
    """The `PodConfig` of a node. Standalone (`api` None) has no API source (SRC-052); an empty
    staticPodPath no file source (SRC-001), an empty staticPodURL no HTTP source."""
    sources: list[Source] = []
    if config.static_pod_path:
        sources.append(
            FileSource(
                config.static_pod_path,
                node_name=node_name,
                period_s=config.file_check_frequency_s,
                clock=clock,
            )
        )
    if config.static_pod_url and network is not None:
        settings = UrlSettings(
            config.static_pod_url, config.static_pod_url_header, config.http_check_frequency_s
        )
        sources.append(UrlSource(settings, network, node_name=node_name, clock=clock))
    if api is not None:
        sources.append(
            ApiSource(
                api.client,
                node_name=node_name,
                informer=api.informer,
                clock=clock,
                rng=rng,
            )
        )
    return PodConfig(sources, recorder, clock, config.feature_gates, latency)
