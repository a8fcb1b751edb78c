"""The small loops around the runtime, and the adapters between parts that do not know each other.

Upstream: pkg/kubelet/kubelet.go: updateRuntimeUp, StartGarbageCollection; pod_container_deletor.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from refkubelet.allocation.handlers import LIMITED_SWAP, ResizeLimits
from refkubelet.cgroups.allocatable import enforced, parsed
from refkubelet.cgroups.limits import ResourceConfig, page_size_name
from refkubelet.cgroups.manager import ContainerManager
from refkubelet.cgroups.names import cgroup_path, node_group, pod_group
from refkubelet.cgroups.settings import TIERED
from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.events import EventRecorder
from refkubelet.eviction.config import EvictionConfig
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, pod_ref
from refkubelet.model.quantity import NANO
from refkubelet.node.capacity import page_sizes
from refkubelet.node.machine import Machine
from refkubelet.runtime.client import CriCallError
from refkubelet.runtime.config.dns import read_resolv_conf
from refkubelet.runtime.decisions.backoff import INITIAL_DELAY_S, MAX_DELAY_S, BackoffLimits
from refkubelet.runtime.decisions.pod_resize import merged
from refkubelet.runtime.decisions.resize_actions import CPU, MEMORY
from refkubelet.runtime.gc import ContainerGC
from refkubelet.runtime.images.choice import ImageGcPolicy
from refkubelet.runtime.images.node_credentials import LoginDirs, docker_config_files
from refkubelet.runtime.images.records import VerificationPolicy
from refkubelet.runtime.options import DnsOptions, ImageOptions, MemoryOptions, RuntimeOptions
from refkubelet.runtime.records import (
    IDS_PER_POD,
    ContainerState,
    RuntimeConditions,
    RuntimePod,
    RuntimeVersion,
)
from refkubelet.runtime_state import STATUS_PERIOD_S, RuntimeState
from simtime import Clock

log = logging.getLogger(__name__)

CONTAINER_GC_PERIOD_S: Final = 60.0
CRIO_SOCKET: Final = "run/crio/crio.sock"
SILENT: Final = "the runtime does not say how it is"


class WatchedRuntime(Protocol):
    async def runtime_status(self) -> RuntimeConditions: ...

    async def version(self) -> RuntimeVersion: ...


class ListingRuntime(Protocol):
    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...


class RuntimeWatch:
    """Asks the runtime for its status every 5 s (NODE-050). `ready` is set once, the first time
    the runtime is ready, after `at_first` was called: no pod is looked at before that."""

    def __init__(
        self,
        runtime: WatchedRuntime,
        state: RuntimeState,
        clock: Clock,
        at_first: Callable[[], None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._state = state
        self._clock = clock
        self._at_first = at_first
        self._name: str | None = None
        self._complaints = Complaints(log, clock)
        self.ready = asyncio.Event()

    def runtime_name(self) -> str:
        """The runtime's own name, the scheme of container IDs in statuses."""
        return self._name or "unknown"

    async def run(self) -> None:
        while True:
            await self.look()
            await self._clock.sleep(STATUS_PERIOD_S)

    async def look(self) -> None:
        """Ask once; a failing call changes nothing until the last good answer is too old."""
        try:
            if self._name is None:
                self._name = (await self._runtime.version()).runtime_name
            self._state.observe(await self._runtime.runtime_status())
        except Exception as error:
            self._complaints.failed(SILENT, error, CriCallError)
            return
        self._complaints.over(SILENT)
        if self._state.seen_ready and not self.ready.is_set():
            self._at_first()
            self.ready.set()


class GarbageCollection:
    """Container garbage collection every 60 s, the first at once (GC-001)."""

    def __init__(
        self,
        collector: ContainerGC,
        sources_ready: Callable[[], bool],
        recorder: EventRecorder,
        clock: Clock,
        forget_old: Callable[[], None] = lambda: None,
    ) -> None:
        self._forget_old = forget_old
        self._collector = collector
        self._sources_ready = sources_ready
        self._recorder = recorder
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self.collect()
            await self._clock.sleep(CONTAINER_GC_PERIOD_S)

    async def collect(self, *, evict_terminated: bool = False) -> None:
        """One run; a failure is an event on the node, never an exception."""
        self._forget_old()
        try:
            errors = await self._collector.garbage_collect(self._sources_ready(), evict_terminated)
        except Exception as error:
            log.exception("container garbage collection failed")
            errors = [str(error)]
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
            self._recorder.node_event("Warning", "ContainerGCFailed", text)

    async def reclaim(self) -> None:
        """Under disk pressure: everything of terminated pods too (GC-004)."""
        await self.collect(evict_terminated=True)


async def running_containers(runtime: ListingRuntime) -> Iterable[tuple[str, str]]:
    """The containers that run, as (pod UID, container name); none while the runtime is away."""
    try:
        pods = await runtime.get_pods(all_states=False)
    except CriCallError as error:
        log.warning("which containers run is not known: %s", error.text)
        return ()
    return [(pod.uid, c.name) for pod in pods for c in pod.in_state(ContainerState.RUNNING)]


def resize_limits(config: KubeletConfiguration, machine: Machine) -> ResizeLimits:
    """What forbids resizes on this node for ever (CG-062)."""
    swap = config.memory_swap.swap_behavior == LIMITED_SWAP and machine.cgroup_version() == 2
    return ResizeLimits(config.cpu_manager_policy, config.memory_manager_policy, swap)


def pod_group_config(cgroups: ContainerManager | None, pod: Pod) -> ResourceConfig | None:
    """The limits of a pod's cgroup as they are; None where it has none, or they cannot be read."""
    if cgroups is None:
        return None
    try:
        return merged(cgroups.read_config(pod, MEMORY), cgroups.read_config(pod, CPU))
    except (OSError, ValueError) as error:
        log.debug("cannot read the cgroup of %s: %s", pod_ref(pod), error)  # it is over
        return None


def eviction_config(config: KubeletConfiguration) -> EvictionConfig:
    """The thresholds and times of a node. Raises `ThresholdError`."""
    return EvictionConfig.from_settings(
        hard=config.eviction_hard or {},
        soft=config.eviction_soft,
        soft_grace_period=config.eviction_soft_grace_period,
        minimum_reclaim=config.eviction_minimum_reclaim,
        enforced=config.enforce_node_allocatable,
        pressure_transition_s=config.eviction_pressure_transition_period_s,
        max_pod_grace_s=config.eviction_max_pod_grace_period,
        local_storage_isolation=config.local_storage_capacity_isolation,
        memcg_notification=config.kernel_memcg_notification,
    )


def is_crio(config: KubeletConfiguration) -> bool:
    """Whether the runtime is CRI-O, told by its socket, as upstream does (EVIC-030, EVIC-040)."""
    return config.container_runtime_endpoint.endswith(CRIO_SOCKET)


def pods_cgroup(config: KubeletConfiguration) -> str:
    """The path of the cgroup that holds all pods; "" where pods have no cgroups."""
    if not config.cgroups_per_qos:
        return ""
    return cgroup_path(node_group(config.cgroup_root), config.cgroup_driver)


def pod_cgroup_of(config: KubeletConfiguration) -> Callable[[Pod], str] | None:
    """What finds the path of a pod's cgroup; None where pods have none."""
    if not config.cgroups_per_qos:
        return None
    root = node_group(config.cgroup_root)
    return lambda pod: cgroup_path(pod_group(root, pod), config.cgroup_driver)


def ids_per_pod(config: KubeletConfiguration) -> int:
    """How many user ids a pod with a user namespace of its own gets."""
    return config.user_namespaces.ids_per_pod if config.user_namespaces else IDS_PER_POD


def image_gc_policy(config: KubeletConfiguration) -> ImageGcPolicy:
    """When images are removed (GC-101..104)."""
    return ImageGcPolicy(
        high_percent=config.image_gc_high_threshold_percent,
        low_percent=config.image_gc_low_threshold_percent,
        min_age_s=config.image_minimum_gc_age_s,
        max_age_s=config.image_maximum_gc_age_s,
    )


def dns_options(config: KubeletConfiguration) -> DnsOptions:
    """Cluster DNS from the configuration, the rest from the node's resolv.conf."""
    try:
        node = read_resolv_conf(config.resolv_conf)
    except OSError as error:
        log.warning("cannot read resolvConf %s: %s", config.resolv_conf, error)
        node = DnsOptions()
    return DnsOptions(
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        node_servers=node.node_servers,
        node_searches=node.node_searches,
        node_options=node.node_options,
        no_resolv_conf=node.no_resolv_conf,
    )


def restart_delays(config: KubeletConfiguration) -> BackoffLimits:
    """First and greatest delay of a restart; the configured maximum wins over the gate's own
    (BACK-013, BACK-014)."""
    reduced = config.feature_gates.get("ReduceDefaultCrashLoopBackOffDecay", False)
    initial_s, max_s = (1.0, 60.0) if reduced else (INITIAL_DELAY_S, MAX_DELAY_S)
    if config.feature_gates.get("KubeletCrashLoopBackOffMax", True):
        max_s = config.crash_loop_back_off.max_container_restart_period_s
    return BackoffLimits.up_to(max_s, initial_s)


def verification_policy(config: KubeletConfiguration) -> VerificationPolicy | None:
    """None while the gate is off (BACK-210)."""
    if not config.feature_gates.get("KubeletEnsureSecretPulledImages", True):
        return None
    return VerificationPolicy(
        config.image_pull_credentials_verification_policy,
        config.preloaded_images_verification_allowlist,
    )


def memory_options(config: KubeletConfiguration, machine: Machine) -> MemoryOptions:
    """CG-033, CG-050."""
    v2, total_bytes = machine.cgroup_version() == 2, machine.memory().total_bytes
    reserved = (parsed(config.kube_reserved), parsed(config.system_reserved))
    left = enforced({"memory": total_bytes * NANO}, reserved)["memory"]
    return MemoryOptions(
        swap_controller=machine.limits_swap(),
        limited_swap=v2 and config.memory_swap.swap_behavior == LIMITED_SWAP,
        swap_bytes=machine.swap_bytes(),
        capacity_bytes=total_bytes,
        memory_qos=v2 and config.feature_gates.get("MemoryQoS", False),
        reserve=config.memory_reservation_policy == TIERED,
        throttling_factor=config.memory_throttling_factor,
        allocatable_bytes=left // NANO,
    )


def runtime_options(
    config: KubeletConfiguration,
    machine: Machine,
    *,
    node_name: str,
    node_ips: tuple[str, ...],
    root_dir: Path,
    container_logs_dir: Path | None,
    allocatable: Mapping[str, int],
    login_dirs: LoginDirs | None = None,
) -> RuntimeOptions:
    """What of the configuration and of the machine concerns the runtime manager."""
    single_kill, cgroup_v2 = config.single_process_oom_kill, machine.cgroup_version() == 2
    return RuntimeOptions(
        root_dir=root_dir,
        pod_logs_dir=Path(config.pod_logs_dir),
        container_logs_dir=container_logs_dir,
        node_name=node_name,
        node_ips=node_ips,
        restart_delays=restart_delays(config),
        memory_capacity_bytes=machine.memory().total_bytes,
        allocatable=allocatable,
        cgroup_root=f"{config.cgroup_root.rstrip('/')}/kubepods",
        cgroup_driver=config.cgroup_driver,
        cgroups_per_qos=config.cgroups_per_qos,
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_cfs_quota_period_us=round(config.cpu_cfs_quota_period_s * 1_000_000),
        hugepage_sizes=tuple(map(page_size_name, page_sizes(machine.topology()))),
        memory=memory_options(config, machine),
        cgroup_v2=cgroup_v2,
        single_process_oom_kill=not cgroup_v2 if single_kill is None else single_kill,
        seccomp_default=config.seccomp_default,
        dns=dns_options(config),
        images=ImageOptions(
            serialize_pulls=config.serialize_image_pulls,
            max_parallel_pulls=config.max_parallel_image_pulls,
            pull_qps=float(config.registry_pull_qps),
            pull_burst=config.registry_burst,
            verification=verification_policy(config),
            docker_config_files=docker_config_files(root_dir, login_dirs),
        ),
    )
