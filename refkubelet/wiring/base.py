"""What a kubelet is given, what every group of parts takes, and the ways to parts made later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from refkubelet.api.client import ApiClient
from refkubelet.certificates.store import Pair
from refkubelet.config.credentials.files import CredentialProviders
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.container_manager.devices.plugins import PluginDirectory
from refkubelet.cri.client import CriClient
from refkubelet.cri.list_streaming import GATE as LIST_STREAMING
from refkubelet.cri.list_streaming import StreamedLists
from refkubelet.cri.operations import Operations
from refkubelet.cri.target import CriTarget
from refkubelet.cri.traced import traced
from refkubelet.events.queued_recorder import QueuedEventRecorder, SendLimits
from refkubelet.host.awake import AwakeTime
from refkubelet.host.machine import Machine
from refkubelet.host.network import Network
from refkubelet.host.programs import Programs
from refkubelet.kuberuntime.images.node_credentials import LoginDirs
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.node.facts import KUBELET_VERSION, platform_name
from refkubelet.node.shutdown_manager import ShutdownSource
from refkubelet.node.status import NodeFacts
from refkubelet.pleg.cache import PodCache
from refkubelet.plugin_manager.registration import RegistrationSockets
from refkubelet.pod_workers.workers import PodWorkers
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.pod_handlers import PodHandlers
from refkubelet.telemetry.kubelet_metrics import KubeletMetrics
from refkubelet.telemetry.node_metrics import build_labels
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from refkubelet.telemetry.server_metrics import RequestMetrics
from refkubelet.telemetry.spans import NO_SPANS, Spans
from refkubelet.volumes.csi.client import CsiSockets
from refkubelet.volumes.manager import PodVolumes
from refkubelet.volumes.mounting import Mounts, NoMounts
from simclock import Clock, Ids, Rng


async def _stays(pair: Pair) -> None:
    """For an API client that shows no certificate."""


class CertificateDeps(Struct, frozen=True):
    """Where certificates are kept, and what the kubelet has of client certificates at its start."""

    directory: Path
    """`--cert-dir`."""
    client_files: Pair | None = None
    """Certificate and key that the kubeconfig names."""
    client_data: tuple[bytes, bytes] | None = None
    """Certificate and key that are in the kubeconfig itself, as PEM."""
    bootstrap: ApiClient | None = None
    """Whom to ask for the first one; None: the kubelet's own client."""
    renewed: Callable[[Pair], Awaitable[None]] = _stays
    """Makes the API client show the certificate in these files."""


@dataclass(frozen=True, slots=True)
class NodePlugins:
    """Credential provider plug-ins, and who runs their programs with which environment."""

    config: CredentialProviders
    programs: Programs
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


class ThisNode(Struct, frozen=True):
    """Which node the kubelet is of."""

    name: str
    """Lower case."""
    ips: tuple[str, ...] = ()
    """Its addresses, primary first; none standalone."""
    facts: NodeFacts | None = None
    """None: this kubelet does not keep the Node object."""


class Directories(Struct, frozen=True):
    """Where the kubelet keeps its files, and finds those of others."""

    root: Path
    """Its own (/var/lib/kubelet)."""
    container_logs: Path | None = None
    """None: no links to container logs are made."""
    logins: LoginDirs | None = None
    """None: the node's registry credentials are looked for in `root` alone (BACK-209)."""


class PluginSources(Struct, frozen=True):
    """Where plug-ins of each sort come from."""

    devices: PluginDirectory | None = None
    """None: no device plugin can register (CG-084)."""
    registrations: RegistrationSockets | None = None
    """None: no plug-in is looked for in plugins_registry (CG-086)."""
    csi: CsiSockets | None = None
    """None: no CSI driver can register (NODE-216)."""
    logins: NodePlugins | None = None
    """None: no plug-in knows logins for registries (BACK-214)."""


class KubeletDeps(Struct, frozen=True):
    """What a kubelet is given from outside."""

    target: CriTarget
    """The container runtime."""
    machine: Machine
    """Memory, processors, filesystems, cgroups."""
    clock: Clock  # real or virtual
    rng: Rng  # every random choice
    ids: Ids  # every made-up name
    node: ThisNode
    directories: Directories
    api: ApiClient | None = None
    """None: standalone."""
    network: Network | None = None
    """None: only exec probes run."""
    plugins: PluginSources = PluginSources()
    shutdown_source: ShutdownSource | None = None
    """None: shutdowns of the node are not noticed (NODE-060)."""
    certificates: CertificateDeps | None = None
    """None: no certificates are asked for, whatever the configuration says."""
    spans: Spans = NO_SPANS
    """Who keeps spans of syncs, CRI calls and garbage collection."""
    has_runtime_config: bool = True
    """Whether the runtime has the call that tells its cgroup driver (CRI-133)."""
    mounts: Mounts = NoMounts()
    """How volumes are mounted; by default subPaths are not held (NODE-211) and emptyDirs in memory
    are refused."""


STATS_FROM_CRI: Final = "PodAndContainerStatsFromCRI"
LAST_WITHOUT_DRIVER: Final = "1.37.0"
"""The version of Kubernetes that will not work with runtimes which cannot tell their cgroup
driver (CRI-133)."""


@runtime_checkable
class CountsRequests(Protocol):
    """An API client that can tell how many requests it makes."""

    def count(self, metrics: RequestMetrics, clock: Clock) -> None:
        """Count every request from now on."""


class Later(Struct, frozen=True):
    """The parts that earlier ones ask once the kubelet runs: each as a function that may be called
    when all is built, not while a part is made. With them the questions that several parts ask."""

    runtime: Callable[[], RuntimeManager]
    statuses: Callable[[], StatusManager]
    cgroups: Callable[[], ContainerManager | None]
    workers: Callable[[], PodWorkers]
    volumes: Callable[[], PodVolumes]
    handlers: Callable[[], PodHandlers]
    cache: Callable[[], PodCache]

    def active_pods(self) -> tuple[Pod, ...]:
        """All pods but those that are over (LIFE-012)."""
        return self.handlers().new_pods.active_pods()

    def allocated_pods(self) -> tuple[Pod, ...]:
        """The active pods, with what they were allocated."""
        return self.handlers().new_pods.admission.allocated_pods()

    def sync_by_uid(self, pod_uid: str) -> None:
        """Sync that pod if it is a pod of this node."""
        self.handlers().sync_by_uid(pod_uid)

    def is_terminating(self, pod_uid: str) -> bool:
        """Whether that pod shall end."""
        return self.workers().is_pod_termination_requested(pod_uid)

    def give_way(self, pod_uid: str) -> asyncio.Event | None:
        """Set when the running step of that pod should give way: the pod is to end, or its grace
        period was shortened, since the step began. None: the pod has no worker."""
        record = self.workers().record(pod_uid)
        return None if record is None else record.cancelled

    def status(self, pod_uid: str) -> PodStatus | None:
        """The status as last generated."""
        return self.statuses().get(pod_uid)


class Base(Struct, frozen=True):
    """What every group of parts takes."""

    config: KubeletConfiguration
    deps: KubeletDeps
    recorder: QueuedEventRecorder
    client: CriClient
    later: Later
    metrics: KubeletMetrics
    """What the parts count."""
    started_ns: int
    """When this kubelet was made, in ns since 1970."""
    latency: PodStartupLatency
    """How long pods take to start."""
    awake: AwakeTime
    """By which is measured whether something has been silent for too long."""

    def gate(self, name: str, *, default: bool) -> bool:
        """Whether that feature gate is on."""
        return self.config.feature_gates.get(name, default)


def build_base(config: KubeletConfiguration, deps: KubeletDeps, later: Later) -> Base:
    recorder = QueuedEventRecorder(
        api=deps.api,
        clock=deps.clock,
        node_name=deps.node.name,
        limits=SendLimits(qps=config.event_record_qps, burst=config.event_burst),
        random=deps.rng.stream("events").random,
    )
    target = traced(deps.target, deps.spans)
    if config.feature_gates.get(LIST_STREAMING, False):
        target = StreamedLists(target)
    metrics = KubeletMetrics()
    metrics.node.name.set(1.0, deps.node.name)
    metrics.node.build.set(1.0, *build_labels(KUBELET_VERSION, platform_name()))
    metrics.node.cgroup_version.set(float(deps.machine.cgroup_version()))
    by_sandbox = config.feature_gates.get(STATS_FROM_CRI, False)
    metrics.node.provider.set(1.0, "cri" if by_sandbox else "cadvisor")
    if not deps.has_runtime_config:
        metrics.node.losing_support.set(1.0, LAST_WITHOUT_DRIVER)
    if isinstance(deps.api, CountsRequests):
        deps.api.count(metrics.requests, deps.clock)
    client = CriClient(
        target,
        config.runtime_request_timeout_s,
        Operations(metrics.operations, deps.clock),
    )
    return Base(
        config,
        deps,
        recorder=recorder,
        client=client,
        later=later,
        metrics=metrics,
        started_ns=deps.clock.wall_ns(),
        latency=PodStartupLatency(metrics.starts, deps.clock),
        awake=AwakeTime(deps.clock),
    )
