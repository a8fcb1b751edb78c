"""The node's options for the runtime manager, which do not change while the kubelet runs.

The defaults are upstream's. `options_from_config` makes the options from the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from refkubelet.config.schema.image_policies import VerificationPolicy
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.node_config import pod_cgroup_of
from refkubelet.kuberuntime.decisions.backoff import MAX_DELAY_S, BackoffLimits
from refkubelet.kuberuntime.decisions.gc_choice import GcOptions
from refkubelet.model.objects import Pod


class DnsOptions(Struct, frozen=True):
    """Cluster DNS, and the content of the node's resolv.conf."""

    cluster_dns: tuple[str, ...] = ()  # clusterDNS: addresses of its servers
    cluster_domain: str = ""  # clusterDomain
    node_servers: tuple[str, ...] = ()
    node_searches: tuple[str, ...] = ()
    node_options: tuple[str, ...] = ()
    no_resolv_conf: bool = False  # resolvConf is empty: pods get 127.0.0.1


class ImageOptions(Struct, frozen=True):
    """How images are pulled (BACK-208)."""

    serialize_pulls: bool = True  # one pull at a time
    max_parallel_pulls: int | None = None  # None: no limit; unused if pulls are serial
    pull_qps: float = 5.0  # pulls per second on average; 0: no limit
    pull_burst: int = 10
    verification: VerificationPolicy | None = field(default_factory=VerificationPolicy)
    """Which pods may use a present image; None: all may, and no pulls are recorded (BACK-210)."""
    docker_config_files: tuple[Path, ...] = ()
    """The files with the node's registry credentials, in the order of search (BACK-209)."""


class MemoryOptions(Struct, frozen=True):
    """Swap, and protection of memory with cgroup v2 (CG-033, CG-050)."""

    swap_controller: bool = True  # the kernel can limit swap
    limited_swap: bool = False  # memorySwap.swapBehavior is LimitedSwap, and the node has cgroup v2
    swap_bytes: int = 0  # swap of the node
    capacity_bytes: int = 0  # memory of the node; 0: unknown
    memory_qos: bool = False  # the gate MemoryQoS is on, and the node has cgroup v2
    reserve: bool = False  # memoryReservationPolicy is TieredReservation
    throttling_factor: float = 0.9  # memoryThrottlingFactor
    allocatable_bytes: int = 0  # memory for all pods together


class ResourceOptions(Struct, frozen=True):
    """How CPU and memory of containers are limited (LIFE-139, LIFE-140)."""

    cpu_cfs_quota: bool = True  # False: CPU limits are not enforced
    cpu_cfs_quota_period_us: int = 100_000
    hugepage_sizes: tuple[str, ...] = ("2MB", "1GB")  # all page sizes, with the runtime's names
    cgroup_v2: bool = False
    single_process_oom_kill: bool = True  # False: the kernel kills the whole container (v2)
    resizes_pods: bool = True  # the gate InPlacePodLevelResourcesVerticalScaling (CG-061)
    resizes_init_containers: bool = True  # the gate InPlacePodVerticalScalingInitContainers
    memory: MemoryOptions = field(default_factory=MemoryOptions)


class RuntimeOptions(Struct, frozen=True):
    """Options of the runtime manager."""

    root_dir: Path  # the kubelet's own directory
    pod_logs_dir: Path  # the root of the pods' log directories
    container_logs_dir: Path | None = None  # links to logs; None: no links
    node_name: str = ""  # of this node, lower case
    node_ips: tuple[str, ...] = ()  # the primary one first
    host_network_ips: tuple[str, ...] = ()
    """The addresses of pods on the node's network: those of the node, none without an API server
    (STAT-044.2)."""
    restart_delays: BackoffLimits = BackoffLimits.up_to(MAX_DELAY_S)
    allocatable: Mapping[str, int] = field(default_factory=dict)  # by resource, in nano units
    pod_cgroup: Callable[[Pod], str] | None = pod_cgroup_of(KubeletConfiguration())
    """The path of a pod's cgroup (CG-010, CG-012); None: pods have none (cgroupsPerQOS false)."""
    resources: ResourceOptions = field(default_factory=ResourceOptions)
    """Limits of containers."""
    seccomp_default: bool = False  # True: containers without a profile get RuntimeDefault
    dns: DnsOptions = field(default_factory=DnsOptions)
    """What pods get as resolv.conf."""
    images: ImageOptions = field(default_factory=ImageOptions)
    """Pulls, credentials."""
    gc: GcOptions = field(default_factory=GcOptions)
    """How many dead containers are kept."""

    @property
    def own_directories(self) -> tuple[str, ...]:
        """The directories in which only the kubelet and the runtime make entries."""
        return str(self.root_dir), str(self.pod_logs_dir)
