"""What the runtime manager is told once: the node's settings, and the things it works with.

Everything has the kubelet's default. Sizes in bytes, durations in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from refkubelet.allocation.state import ResourceState
from refkubelet.container_manager.devices.records import ContainerSettings
from refkubelet.cri.records import PodRuntime
from refkubelet.events.recorder import EventRecorder
from refkubelet.host.network import Network
from refkubelet.kuberuntime.config.environment import ApiObjects
from refkubelet.kuberuntime.decisions.backoff import MAX_DELAY_S, BackoffLimits
from refkubelet.kuberuntime.images.pull_secrets import SecretReader
from refkubelet.kuberuntime.images.records import VerificationPolicy
from refkubelet.model.cgroup_limits import ResourceConfig
from refkubelet.model.objects import Container, Pod
from refkubelet.model.placement import Placement
from refkubelet.volumes.mounting import Mounts, NoMounts
from simtime import Clock, Ids


@dataclass(frozen=True, slots=True)
class DnsOptions:
    """Cluster DNS (clusterDNS, clusterDomain) and what the node's resolv.conf says."""

    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    node_servers: tuple[str, ...] = ()
    node_searches: tuple[str, ...] = ()
    node_options: tuple[str, ...] = ()
    no_resolv_conf: bool = False  # resolvConf is empty: pods get 127.0.0.1


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How images are pulled (BACK-208). `max_parallel_pulls` None: no limit if not serial.

    `verification`: whether a pod may use what is there; None: always, and nothing is recorded
    (BACK-210). `docker_config_files`: where the node's own registry credentials are looked
    for, in order (BACK-209)."""

    serialize_pulls: bool = True
    max_parallel_pulls: int | None = None
    pull_qps: float = 5.0
    pull_burst: int = 10
    verification: VerificationPolicy | None = field(default_factory=VerificationPolicy)
    docker_config_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class GcOptions:
    """Container garbage collection (GC-001): minimum age, dead containers kept per (pod,
    container name) and in total (negative: no limit)."""

    min_age_s: float = 0.0
    max_per_pod_container: int = 1
    max_containers: int = -1


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """Swap, and protection of memory with cgroup v2 (CG-033, CG-050).

    `swap_controller`: the kernel can limit swap. `limited_swap`: memorySwap.swapBehavior is
    LimitedSwap, on v2. `memory_qos`: its gate is on, on v2; `reserve`: memoryReservationPolicy is
    TieredReservation; `throttling_factor`: memoryThrottlingFactor; `allocatable_bytes`: what all
    pods may have.
    """

    swap_controller: bool = True
    limited_swap: bool = False
    swap_bytes: int = 0
    capacity_bytes: int = 0
    memory_qos: bool = False
    reserve: bool = False
    throttling_factor: float = 0.9
    allocatable_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Settings of the runtime manager."""

    root_dir: Path = Path("/var/lib/kubelet")
    pod_logs_dir: Path = Path("/var/log/pods")
    container_logs_dir: Path | None = Path("/var/log/containers")  # None: no symlinks
    node_name: str = ""
    node_ips: tuple[str, ...] = ()
    restart_delays: BackoffLimits = BackoffLimits.up_to(MAX_DELAY_S)  # noqa: RUF009 - frozen
    memory_capacity_bytes: int = 0  # for oom_score_adj (LIFE-140); 0: unknown
    allocatable: Mapping[str, int] = field(default_factory=dict)  # nano units
    cgroup_root: str = "/kubepods"  # the parent of the QoS groups
    cgroup_driver: str = "cgroupfs"
    cgroups_per_qos: bool = True
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period_us: int = 100_000
    hugepage_sizes: tuple[str, ...] = ("2MB", "1GB")
    seccomp_default: bool = False
    cgroup_v2: bool = False
    single_process_oom_kill: bool = True
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    dns: DnsOptions = field(default_factory=DnsOptions)
    images: ImageOptions = field(default_factory=ImageOptions)
    gc: GcOptions = field(default_factory=GcOptions)

    @property
    def own_directories(self) -> tuple[str, ...]:
        """Those that only the kubelet and the runtime make entries in, from the node's side."""
        return str(self.root_dir), str(self.pod_logs_dir)


class ObjectSource(Protocol):
    """What the API server has for the variables of a container (LIFE-137)."""

    async def of(self, pod: Pod, container: Container) -> ApiObjects:
        """Raises `VariableError`."""
        ...


class ContainerDevices(Protocol):
    """What the devices of a container add to its configuration (CG-084)."""

    async def settings(self, pod: Pod, container: Container) -> ContainerSettings:
        """Asked before every start of a container. Raises `AllocationError`."""
        ...


class Placements(Protocol):
    """Where containers run (CG-050)."""

    def placement(self, pod: Pod, container: Container) -> Placement:
        """Asked before every creation of a container."""
        ...

    def has_exclusive_cpus(self, pod: Pod) -> bool:
        """Some container of the pod has CPUs of its own (CG-031)."""
        ...

    def starting(self, pod: Pod, container: Container) -> None:
        """The container was created and starts now."""
        ...


class ResizableCgroups(Protocol):
    """What a resize asks of the container manager; the pod is the allocated one (CG-065)."""

    def config_of(self, pod: Pod) -> ResourceConfig: ...

    def read_config(self, pod: Pod, resource: str) -> ResourceConfig:
        """Raises OSError, ValueError."""
        ...

    def write_config(self, pod: Pod, config: ResourceConfig) -> None:
        """Raises `CgroupError`."""
        ...

    def memory_usage_bytes(self, pod: Pod) -> int:
        """Raises OSError."""
        ...


class PodRuntimeSource(Protocol):
    """What pods ask of the runtime beyond the default (`pod_runtime.PodRuntimes`)."""

    async def of(self, pod: Pod) -> PodRuntime:
        """Raises `PodRuntimeError`."""
        ...


@dataclass(frozen=True, slots=True)
class RuntimeDeps:
    """What the runtime manager works with. `objects` None: no API server (standalone), so every
    reference to a ConfigMap or Secret is a missing one; `secrets` the same for pull secrets.
    `network` None: httpGet hooks fail. `terminating`: whether the pod of that UID is to end.
    `devices` None: there are no device plugins. `runtimes` None: every pod has the default one.
    `placements` None: containers run anywhere. `actuated` None: the checkpoint is below the root
    directory. `pod_cgroups` answers None where pods have no groups (cgroupsPerQOS false)."""

    clock: Clock
    ids: Ids
    events: EventRecorder
    objects: ObjectSource | None = None
    network: Network | None = None
    terminating: Callable[[str], bool] = lambda pod_uid: False
    secrets: SecretReader | None = None
    devices: ContainerDevices | None = None
    runtimes: PodRuntimeSource | None = None
    placements: Placements | None = None
    actuated: ResourceState | None = None
    pod_cgroups: Callable[[], ResizableCgroups | None] = lambda: None
    mounts: Mounts = field(default_factory=NoMounts)
