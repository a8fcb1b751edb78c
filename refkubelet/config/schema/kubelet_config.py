"""The schema of KubeletConfiguration, kubelet.config.k8s.io/v1beta1: every field with its default.

Durations are in seconds (`..._s`), sizes in bytes (`..._bytes`); names are those of the file in
snake case. Fields without effect are those of `not_acted_on`. Defaults: CFG-005's
table, EVIC-006, EVIC-007, GC-101, GC-201.

kubernetes.io documents each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from refkubelet.config.schema import fields as f
from refkubelet.host.places import POD_LOGS

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"
DEFAULT_EVICTION_HARD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
)  # EVIC-006


class X509Authentication(f.Schema, frozen=True):
    client_ca_file: f.Path = ""


class WebhookAuthentication(f.Schema, frozen=True):
    enabled: bool = True
    cache_ttl_s: f.DurationOrDefault = 120.0


class AnonymousAuthentication(f.Schema, frozen=True):
    enabled: bool = False


class Authentication(f.Schema, frozen=True):
    """How clients of the main port are authenticated."""

    x509: X509Authentication = X509Authentication()
    webhook: WebhookAuthentication = WebhookAuthentication()
    anonymous: AnonymousAuthentication = AnonymousAuthentication()


class WebhookAuthorization(f.Schema, frozen=True):
    cache_authorized_ttl_s: f.DurationOrDefault = 300.0
    cache_unauthorized_ttl_s: f.DurationOrDefault = 30.0


class Authorization(f.Schema, frozen=True):
    mode: f.TextOrDefault = "Webhook"
    webhook: WebhookAuthorization = WebhookAuthorization()


class VModuleItem(f.Schema, frozen=True):
    """How talkative the files of a name are, which is checked and has no effect here."""

    file_pattern: str = ""
    verbosity: f.UInt32 = 0


class OutputRouting(f.Schema, frozen=True):
    """Where a log of one format goes; checked, without effect here."""

    split_stream: bool = False
    info_buffer_size_bytes: f.Quantity = 0


class LogFormatOptions(f.Schema, frozen=True):
    text: OutputRouting = OutputRouting()
    json: OutputRouting = OutputRouting()


class Logging(f.Schema, frozen=True):
    """How the log is written. `format`: text or json; `verbosity`: as often as -v."""

    format: f.TextOrDefault = "text"
    flush_frequency_s: f.DurationOrNs = 5.0
    verbosity: f.UInt32 = 0
    vmodule: tuple[VModuleItem, ...] = ()
    options: LogFormatOptions = LogFormatOptions()


class Tracing(f.Schema, frozen=True):
    """Where spans go. `endpoint`: of a collector, None: localhost:4317;
    `sampling_rate_per_million`: None or 0: none but those of sampled parents."""

    endpoint: str | None = None
    sampling_rate_per_million: f.Int32 | None = None


class CrashLoopBackOff(f.Schema, frozen=True):
    """`max_container_restart_period_s`: the longest delay of a restart, 1 to 300 s (BACK-013)."""

    max_container_restart_period_s: f.Duration = 300.0


class Taint(f.Schema, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class ShutdownGracePeriodByPodPriority(f.Schema, frozen=True):
    priority: f.Int32 = 0
    shutdown_grace_period_seconds: f.Int64 = 0


class MemoryReservation(f.Schema, frozen=True):
    numa_node: f.Int32 = 0
    limits: Mapping[str, str] = f.EMPTY


class MemorySwap(f.Schema, frozen=True):
    swap_behavior: str = ""


class UserNamespaces(f.Schema, frozen=True):
    ids_per_pod: f.Int64 = 65_536


class KubeletConfiguration(f.Schema, frozen=True):
    """The configuration of a node. `KubeletConfiguration()` is that of an otherwise empty file."""

    # Pod sources.
    static_pod_path: f.Path = ""
    static_pod_url: str = ""
    static_pod_url_header: Mapping[str, tuple[str, ...]] = f.EMPTY
    http_check_frequency_s: f.DurationOrDefault = 20.0
    file_check_frequency_s: f.DurationOrDefault = 20.0
    sync_frequency_s: f.DurationOrDefault = 60.0
    # Servers.
    enable_server: bool = True
    address: f.TextOrDefault = "0.0.0.0"
    port: f.Int32OrDefault = 10250
    read_only_port: f.Int32 = 0
    healthz_port: f.Int32 = 10248
    healthz_bind_address: f.TextOrDefault = "127.0.0.1"
    tls_cert_file: f.Path = ""
    tls_private_key_file: f.Path = ""
    tls_cipher_suites: tuple[str, ...] = ()
    tls_min_version: str = ""
    enable_debugging_handlers: bool = True
    enable_profiling_handler: bool = True
    enable_system_log_handler: bool = True
    authentication: Authentication = Authentication()
    authorization: Authorization = Authorization()
    # Runtime.
    container_runtime_endpoint: f.TextOrDefault = "unix:///run/containerd/containerd.sock"
    image_service_endpoint: str = ""
    runtime_request_timeout_s: f.DurationOrDefault = 120.0
    pod_logs_dir: f.PathOrDefault = str(POD_LOGS)
    registry_pull_qps: f.Int32 = 5
    registry_burst: f.Int32OrDefault = 10
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: f.Int32 | None = None
    image_pull_credentials_verification_policy: f.TextOrDefault = "NeverVerifyPreloadedImages"
    preloaded_images_verification_allowlist: tuple[str, ...] = ()
    crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff()
    image_minimum_gc_age_s: f.DurationOrDefault = 120.0
    image_maximum_gc_age_s: f.Duration = 0.0
    image_gc_high_threshold_percent: f.Int32 = 85
    image_gc_low_threshold_percent: f.Int32 = 80
    container_log_max_size_bytes: f.Quantity = 10 * 1024 * 1024
    container_log_max_files: f.Int32 = 5
    container_log_max_workers: f.Int32 = 1
    container_log_monitor_interval_s: f.DurationOrDefault = 10.0
    # Cgroups and resources.
    cgroup_root: str = ""
    cgroups_per_qos: bool = True
    cgroup_driver: f.TextOrDefault = "cgroupfs"
    fail_cgroup_v1: bool = True
    protect_kernel_defaults: bool = False
    fail_swap_on: bool = True
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period_s: f.DurationOrDefault = 0.1
    system_reserved: Mapping[str, str] = f.EMPTY
    kube_reserved: Mapping[str, str] = f.EMPTY
    memory_throttling_factor: float = 0.9
    memory_swap: MemorySwap = MemorySwap()
    memory_reservation_policy: f.TextOrDefault = "None"
    pod_pids_limit: f.Int64 = -1
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    reserved_system_cpus: str = ""
    cpu_manager_policy: f.TextOrDefault = "none"
    cpu_manager_policy_options: Mapping[str, str] = f.EMPTY
    cpu_manager_reconcile_period_s: f.DurationOrDefault = 10.0
    memory_manager_policy: f.TextOrDefault = "None"
    reserved_memory: tuple[MemoryReservation, ...] = ()
    topology_manager_policy: f.TextOrDefault = "none"
    topology_manager_scope: f.TextOrDefault = "container"
    topology_manager_policy_options: Mapping[str, str] = f.EMPTY
    max_pods: f.Int32OrDefault = 110
    pods_per_core: f.Int32 = 0
    # Eviction: texts, which config/eviction_grammar.py parses. None: the file has no evictionHard;
    # `load_config` replaces that with the defaults (EVIC-006).
    eviction_hard: Mapping[str, str] | None = None
    eviction_soft: Mapping[str, str] = f.EMPTY
    eviction_soft_grace_period: Mapping[str, str] = f.EMPTY
    eviction_minimum_reclaim: Mapping[str, str] = f.EMPTY
    eviction_pressure_transition_period_s: f.DurationOrDefault = 300.0
    eviction_max_pod_grace_period: f.Int32 = 0
    merge_default_eviction_settings: bool = False
    local_storage_capacity_isolation: bool = True
    volume_stats_agg_period_s: f.DurationOrDefault = 60.0
    kernel_memcg_notification: bool = False
    # Node object and API client.
    register_node: bool = True
    register_with_taints: tuple[Taint, ...] = ()
    enable_controller_attach_detach: bool = True
    node_status_update_frequency_s: f.DurationOrDefault = 10.0
    node_status_report_frequency_s: f.DurationOrDefault = 300.0
    node_lease_duration_seconds: f.Int32OrDefault = 40
    pod_cidr: str = ""
    provider_id: str = ""
    event_record_qps: f.Int32 = 50
    event_burst: f.Int32OrDefault = 100
    feature_gates: Mapping[str, bool] = f.EMPTY
    # Name resolution.
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: f.Path = "/etc/resolv.conf"
    # Security.
    seccomp_default: bool = False
    user_namespaces: UserNamespaces | None = None

    single_process_oom_kill: bool | None = None
    shutdown_grace_period_s: f.Duration = 0.0
    shutdown_grace_period_critical_pods_s: f.Duration = 0.0
    shutdown_grace_period_by_pod_priority: tuple[ShutdownGracePeriodByPodPriority, ...] = ()
    node_status_max_images: f.Int32 = 50
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    # What others see of it.
    logging: Logging = Logging()
    tracing: Tracing | None = None

    # What this process may use, what it tells, and what has no effect (`not_acted_on`).
    tls_curve_preferences: tuple[f.Int32, ...] = ()
    rotate_certificates: bool = False
    server_tls_bootstrap: bool = False
    enable_contention_profiling: bool = False
    enable_debug_flags_handler: bool = True
    enable_system_log_query: bool = False
    oom_score_adj: f.Int32 = -999
    streaming_connection_idle_timeout_s: f.DurationOrDefault = 14400.0
    kubelet_cgroups: str = ""
    system_cgroups: str = ""
    qos_reserved: Mapping[str, str] = f.EMPTY
    hairpin_mode: f.TextOrDefault = "promiscuous-bridge"
    run_once: bool = False
    max_open_files: f.Int64 = 1_000_000
    content_type: f.TextOrDefault = "application/vnd.kubernetes.protobuf"
    kube_api_qps: f.Int32 = 50
    kube_api_burst: f.Int32OrDefault = 100
    make_iptables_util_chains: bool = True
    iptables_masquerade_bit: f.Int32 = 14
    iptables_drop_bit: f.Int32 = 15
    config_map_and_secret_change_detection_strategy: f.TextOrDefault = "Watch"
    show_hidden_metrics_for_version: str = ""
    volume_plugin_dir: f.PathOrDefault = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
