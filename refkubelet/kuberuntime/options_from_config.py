"""Makes the `RuntimeOptions` from the kubelet's configuration and the machine.

Rules: BACK-013, BACK-014, BACK-210, CG-033, CG-050.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from kubeobjects.quantity import NANO
from kubeobjects.topology import page_size_name
from refkubelet.admission.features import INIT_RESIZES, POD_LEVEL_RESIZES
from refkubelet.allocation.feasibility import LIMITED_SWAP
from refkubelet.config.schema.image_policies import VerificationPolicy
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import enforced, parsed
from refkubelet.container_manager.cgroups.node_config import TIERED, pod_cgroup_of
from refkubelet.cri.records import IDS_PER_POD
from refkubelet.host.machine import Machine, page_sizes
from refkubelet.kuberuntime.common.runtime_options import (
    DnsOptions,
    ImageOptions,
    MemoryOptions,
    ResourceOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.config.dns import node_resolver, resolv_conf_problem
from refkubelet.kuberuntime.decisions.backoff import INITIAL_DELAY_S, MAX_DELAY_S, BackoffLimits
from refkubelet.kuberuntime.images.node_credentials import LoginDirs, docker_config_files

log = logging.getLogger(__name__)

CRIO_SOCKET: Final = "run/crio/crio.sock"


class Surroundings(Struct, frozen=True):
    """Facts about the node and its directories."""

    root_dir: Path
    node_name: str = ""
    node_ips: tuple[str, ...] = ()  # the primary one first
    has_api: bool = True
    container_logs_dir: Path | None = None  # None: no links to container logs
    allocatable: Mapping[str, int] = field(default_factory=dict)  # for all pods, in nano units
    login_dirs: LoginDirs | None = None
    """Where the node's registry credentials are searched for; None: in `root_dir`."""


def image_options(
    config: KubeletConfiguration, root_dir: Path, login_dirs: LoginDirs | None
) -> ImageOptions:
    """The options for pulling images (BACK-208..210)."""
    return ImageOptions(
        serialize_pulls=config.serialize_image_pulls,
        max_parallel_pulls=config.max_parallel_image_pulls,
        pull_qps=float(config.registry_pull_qps),
        pull_burst=config.registry_burst,
        verification=verification_policy(config),
        docker_config_files=docker_config_files(root_dir, login_dirs),
    )


def runtime_options(
    config: KubeletConfiguration, machine: Machine, around: Surroundings
) -> RuntimeOptions:
    """The options of the runtime manager."""
    return RuntimeOptions(
        root_dir=around.root_dir,
        pod_logs_dir=Path(config.pod_logs_dir),
        container_logs_dir=around.container_logs_dir,
        node_name=around.node_name,
        node_ips=around.node_ips,
        host_network_ips=around.node_ips if around.has_api else (),
        restart_delays=restart_delays(config),
        allocatable=around.allocatable,
        pod_cgroup=pod_cgroup_of(config),
        resources=resource_options(config, machine),
        seccomp_default=config.seccomp_default,
        dns=dns_options(config),
        images=image_options(config, around.root_dir, around.login_dirs),
    )


def dns_options(config: KubeletConfiguration) -> DnsOptions:
    """Cluster DNS from the configuration, the rest from the node's resolv.conf, which may be
    unreadable (logged)."""
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


def resolv_conf_event(config: KubeletConfiguration) -> str | None:
    """What the node is told of its resolv.conf at the start of the kubelet: that it cannot be read,
    or says more than pods can have (NODE-221); None: nothing."""
    path = config.resolv_conf
    try:
        read_resolv_conf(path)
    except OSError as error:
        return f"open {path}: {(error.strerror or str(error)).lower()}"
    return resolv_conf_problem(path, dns_options(config)) if path else None


def read_resolv_conf(path: str) -> DnsOptions:
    """The node's servers, searches and options (resolvConf). An empty path means "no file": pods
    with the node's DNS then get 127.0.0.1 and the search path `.`. Raises OSError."""
    if not path:
        return DnsOptions(no_resolv_conf=True)
    return node_resolver(Path(path).read_text(errors="replace"))


def restart_delays(config: KubeletConfiguration) -> BackoffLimits:
    """The first and greatest delay of a restart; a configured maximum overrides the gate's
    (BACK-013, BACK-014)."""
    reduced = config.feature_gates.get("ReduceDefaultCrashLoopBackOffDecay", False)
    initial_s, max_s = (1.0, 60.0) if reduced else (INITIAL_DELAY_S, MAX_DELAY_S)
    if config.feature_gates.get("KubeletCrashLoopBackOffMax", True):
        max_s = config.crash_loop_back_off.max_container_restart_period_s
    return BackoffLimits.up_to(max_s, initial_s)


def verification_policy(config: KubeletConfiguration) -> VerificationPolicy | None:
    """The policy for present images; None if its gate is off (BACK-210)."""
    if not config.feature_gates.get("KubeletEnsureSecretPulledImages", True):
        return None
    return VerificationPolicy(
        config.image_pull_credentials_verification_policy,
        config.preloaded_images_verification_allowlist,
    )


def resource_options(config: KubeletConfiguration, machine: Machine) -> ResourceOptions:
    """How CPU and memory of containers are limited (EVIC-122)."""
    single_kill, cgroup_v2 = config.single_process_oom_kill, machine.cgroup_version() == 2
    return ResourceOptions(
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_cfs_quota_period_us=round(config.cpu_cfs_quota_period_s * 1_000_000),
        hugepage_sizes=tuple(map(page_size_name, page_sizes(machine.topology()))),
        cgroup_v2=cgroup_v2,
        single_process_oom_kill=not cgroup_v2 if single_kill is None else single_kill,
        resizes_pods=config.feature_gates.get(POD_LEVEL_RESIZES, True),
        resizes_init_containers=config.feature_gates.get(INIT_RESIZES, True),
        memory=memory_options(config, machine),
    )


def memory_options(config: KubeletConfiguration, machine: Machine) -> MemoryOptions:
    """The options for swap and memory protection (CG-033, CG-050)."""
    v2, total_bytes = machine.cgroup_version() == 2, machine.memory().total_bytes
    reserved = (parsed(config.kube_reserved), parsed(config.system_reserved))
    allocatable = enforced({"memory": total_bytes * NANO}, reserved)["memory"]
    return MemoryOptions(
        swap_controller=machine.limits_swap(),
        limited_swap=v2 and config.memory_swap.swap_behavior == LIMITED_SWAP,
        swap_bytes=machine.swap_bytes(),
        capacity_bytes=total_bytes,
        memory_qos=v2 and config.feature_gates.get("MemoryQoS", False),
        reserve=config.memory_reservation_policy == TIERED,
        throttling_factor=config.memory_throttling_factor,
        allocatable_bytes=allocatable // NANO,
    )


def is_crio(config: KubeletConfiguration) -> bool:
    """Whether the runtime is CRI-O, recognized by its socket as in upstream (EVIC-030,
    EVIC-040)."""
    return config.container_runtime_endpoint.endswith(CRIO_SOCKET)


def ids_per_pod(config: KubeletConfiguration) -> int:
    """How many user ids a pod with a user namespace gets."""
    return config.user_namespaces.ids_per_pod if config.user_namespaces else IDS_PER_POD
