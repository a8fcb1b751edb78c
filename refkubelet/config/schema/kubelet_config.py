"""The schema of KubeletConfiguration, kubelet.config.k8s.io/v1beta1: every field with its default.

Durations are in seconds (`..._s`), sizes in bytes (`..._bytes`); names are those of the file in
snake case. Fields without effect are those of `not_acted_on`. Defaults: CFG-005's
table, EVIC-006, EVIC-007, GC-101, GC-201.

kubernetes.io documents each field.
"""
# ruff: noqa: RUF009 - the calls make `dataclasses.field`, once per class, as that rule wants it

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class X509Authentication:
    client_ca_file: str = f.path("clientCAFile")


@dataclass(frozen=True, slots=True)
class WebhookAuthentication:
    enabled: bool = f.boolean("enabled", True)
    cache_ttl_s: float = f.duration("cacheTTL", 120.0)


@dataclass(frozen=True, slots=True)
class AnonymousAuthentication:
    enabled: bool = f.boolean("enabled", False)


@dataclass(frozen=True, slots=True)
class Authentication:
    """How clients of the main port are authenticated."""

    x509: X509Authentication = f.struct("x509", X509Authentication)
    webhook: WebhookAuthentication = f.struct("webhook", WebhookAuthentication)
    anonymous: AnonymousAuthentication = f.struct("anonymous", AnonymousAuthentication)


@dataclass(frozen=True, slots=True)
class WebhookAuthorization:
    cache_authorized_ttl_s: float = f.duration("cacheAuthorizedTTL", 300.0)
    cache_unauthorized_ttl_s: float = f.duration("cacheUnauthorizedTTL", 30.0)


@dataclass(frozen=True, slots=True)
class Authorization:
    mode: str = f.text("mode", "Webhook")
    webhook: WebhookAuthorization = f.struct("webhook", WebhookAuthorization)


@dataclass(frozen=True, slots=True)
class VModuleItem:
    """How talkative the files of a name are, which is checked and has no effect here."""

    file_pattern: str = f.text("filePattern")
    verbosity: int = f.uint32("verbosity")


@dataclass(frozen=True, slots=True)
class OutputRouting:
    """Where a log of one format goes; checked, without effect here."""

    split_stream: bool = f.boolean("splitStream", False)
    info_buffer_size_bytes: int = f.quantity("infoBufferSize", 0)


@dataclass(frozen=True, slots=True)
class LogFormatOptions:
    text: OutputRouting = f.struct("text", OutputRouting)
    json: OutputRouting = f.struct("json", OutputRouting)


@dataclass(frozen=True, slots=True)
class Logging:
    """How the log is written. `format`: text or json; `verbosity`: as often as -v."""

    format: str = f.text("format", "text")
    flush_frequency_s: float = f.duration_or_ns("flushFrequency", 5.0)
    verbosity: int = f.uint32("verbosity")
    vmodule: tuple[VModuleItem, ...] = f.structs("vmodule", VModuleItem)
    options: LogFormatOptions = f.struct("options", LogFormatOptions)


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where spans go. `endpoint`: of a collector, None: localhost:4317;
    `sampling_rate_per_million`: None or 0: none but those of sampled parents."""

    endpoint: str | None = f.text("endpoint", keeps_empty=True, default=None)
    sampling_rate_per_million: int | None = f.int32("samplingRatePerMillion", None)


@dataclass(frozen=True, slots=True)
class CrashLoopBackOff:
    """`max_container_restart_period_s`: the longest delay of a restart, 1 to 300 s (BACK-013)."""

    max_container_restart_period_s: float = f.duration(
        "maxContainerRestartPeriod", 300.0, keeps_zero=True
    )


@dataclass(frozen=True, slots=True)
class Taint:
    key: str = f.text("key")
    value: str = f.text("value")
    effect: str = f.text("effect")
    time_added: str = f.text("timeAdded")


@dataclass(frozen=True, slots=True)
class ShutdownGracePeriodByPodPriority:
    priority: int = f.int32("priority")
    shutdown_grace_period_seconds: int = f.int64("shutdownGracePeriodSeconds")


@dataclass(frozen=True, slots=True)
class MemoryReservation:
    numa_node: int = f.int32("numaNode")
    limits: Mapping[str, str] = f.string_map("limits")


@dataclass(frozen=True, slots=True)
class MemorySwap:
    swap_behavior: str = f.text("swapBehavior")


@dataclass(frozen=True, slots=True)
class UserNamespaces:
    ids_per_pod: int = f.int64("idsPerPod", 65_536)


@dataclass(frozen=True, slots=True)
class KubeletConfiguration:
    """The configuration of a node. `KubeletConfiguration()` is that of an otherwise empty file."""

    # Pod sources.
    static_pod_path: str = f.path("staticPodPath")
    static_pod_url: str = f.text("staticPodURL")
    static_pod_url_header: Mapping[str, tuple[str, ...]] = f.strings_map("staticPodURLHeader")
    http_check_frequency_s: float = f.duration("httpCheckFrequency", 20.0)
    file_check_frequency_s: float = f.duration("fileCheckFrequency", 20.0)
    sync_frequency_s: float = f.duration("syncFrequency", 60.0)
    # Servers.
    enable_server: bool = f.boolean("enableServer", True)
    address: str = f.text("address", "0.0.0.0")
    port: int = f.int32("port", 10250, zero_is_default=True)
    read_only_port: int = f.int32("readOnlyPort", 0)
    healthz_port: int = f.int32("healthzPort", 10248)
    healthz_bind_address: str = f.text("healthzBindAddress", "127.0.0.1")
    tls_cert_file: str = f.path("tlsCertFile")
    tls_private_key_file: str = f.path("tlsPrivateKeyFile")
    tls_cipher_suites: tuple[str, ...] = f.strings("tlsCipherSuites")
    tls_min_version: str = f.text("tlsMinVersion")
    enable_debugging_handlers: bool = f.boolean("enableDebuggingHandlers", True)
    enable_profiling_handler: bool = f.boolean("enableProfilingHandler", True)
    enable_system_log_handler: bool = f.boolean("enableSystemLogHandler", True)
    authentication: Authentication = f.struct("authentication", Authentication)
    authorization: Authorization = f.struct("authorization", Authorization)
    # Runtime.
    container_runtime_endpoint: str = f.text(
        "containerRuntimeEndpoint", "unix:///run/containerd/containerd.sock"
    )
    image_service_endpoint: str = f.text("imageServiceEndpoint")
    runtime_request_timeout_s: float = f.duration("runtimeRequestTimeout", 120.0)
    pod_logs_dir: str = f.path("podLogsDir", str(POD_LOGS))
    registry_pull_qps: int = f.int32("registryPullQPS", 5)
    registry_burst: int = f.int32("registryBurst", 10, zero_is_default=True)
    serialize_image_pulls: bool = f.boolean("serializeImagePulls", True)
    max_parallel_image_pulls: int | None = f.int32("maxParallelImagePulls", None)
    image_pull_credentials_verification_policy: str = f.text(
        "imagePullCredentialsVerificationPolicy", "NeverVerifyPreloadedImages"
    )
    preloaded_images_verification_allowlist: tuple[str, ...] = f.strings(
        "preloadedImagesVerificationAllowlist"
    )
    crash_loop_back_off: CrashLoopBackOff = f.struct("crashLoopBackOff", CrashLoopBackOff)
    image_minimum_gc_age_s: float = f.duration("imageMinimumGCAge", 120.0)
    image_maximum_gc_age_s: float = f.duration("imageMaximumGCAge", 0.0, keeps_zero=True)
    image_gc_high_threshold_percent: int = f.int32("imageGCHighThresholdPercent", 85)
    image_gc_low_threshold_percent: int = f.int32("imageGCLowThresholdPercent", 80)
    container_log_max_size_bytes: int = f.quantity("containerLogMaxSize", 10 * 1024 * 1024)
    container_log_max_files: int = f.int32("containerLogMaxFiles", 5)
    container_log_max_workers: int = f.int32("containerLogMaxWorkers", 1)
    container_log_monitor_interval_s: float = f.duration("containerLogMonitorInterval", 10.0)
    # Cgroups and resources.
    cgroup_root: str = f.text("cgroupRoot")
    cgroups_per_qos: bool = f.boolean("cgroupsPerQOS", True)
    cgroup_driver: str = f.text("cgroupDriver", "cgroupfs")
    fail_cgroup_v1: bool = f.boolean("failCgroupV1", True)
    protect_kernel_defaults: bool = f.boolean("protectKernelDefaults", False)
    fail_swap_on: bool = f.boolean("failSwapOn", True)
    cpu_cfs_quota: bool = f.boolean("cpuCFSQuota", True)
    cpu_cfs_quota_period_s: float = f.duration("cpuCFSQuotaPeriod", 0.1)
    system_reserved: Mapping[str, str] = f.string_map("systemReserved")
    kube_reserved: Mapping[str, str] = f.string_map("kubeReserved")
    memory_throttling_factor: float = f.number("memoryThrottlingFactor", 0.9)
    memory_swap: MemorySwap = f.struct("memorySwap", MemorySwap)
    memory_reservation_policy: str = f.text("memoryReservationPolicy", "None")
    pod_pids_limit: int = f.int64("podPidsLimit", -1)
    enforce_node_allocatable: tuple[str, ...] = f.strings("enforceNodeAllocatable", ("pods",))
    kube_reserved_cgroup: str = f.text("kubeReservedCgroup")
    system_reserved_cgroup: str = f.text("systemReservedCgroup")
    reserved_system_cpus: str = f.text("reservedSystemCPUs")
    cpu_manager_policy: str = f.text("cpuManagerPolicy", "none")
    cpu_manager_policy_options: Mapping[str, str] = f.string_map("cpuManagerPolicyOptions")
    cpu_manager_reconcile_period_s: float = f.duration("cpuManagerReconcilePeriod", 10.0)
    memory_manager_policy: str = f.text("memoryManagerPolicy", "None")
    reserved_memory: tuple[MemoryReservation, ...] = f.structs("reservedMemory", MemoryReservation)
    topology_manager_policy: str = f.text("topologyManagerPolicy", "none")
    topology_manager_scope: str = f.text("topologyManagerScope", "container")
    topology_manager_policy_options: Mapping[str, str] = f.string_map(
        "topologyManagerPolicyOptions"
    )
    max_pods: int = f.int32("maxPods", 110, zero_is_default=True)
    pods_per_core: int = f.int32("podsPerCore", 0)
    # Eviction: texts, which config/eviction_grammar.py parses. None: the file has no evictionHard;
    # `load_config` replaces that with the defaults (EVIC-006).
    eviction_hard: Mapping[str, str] | None = f.string_map("evictionHard", None)
    eviction_soft: Mapping[str, str] = f.string_map("evictionSoft")
    eviction_soft_grace_period: Mapping[str, str] = f.string_map("evictionSoftGracePeriod")
    eviction_minimum_reclaim: Mapping[str, str] = f.string_map("evictionMinimumReclaim")
    eviction_pressure_transition_period_s: float = f.duration(
        "evictionPressureTransitionPeriod", 300.0
    )
    eviction_max_pod_grace_period: int = f.int32("evictionMaxPodGracePeriod", 0)
    merge_default_eviction_settings: bool = f.boolean("mergeDefaultEvictionSettings", False)
    local_storage_capacity_isolation: bool = f.boolean("localStorageCapacityIsolation", True)
    volume_stats_agg_period_s: float = f.duration("volumeStatsAggPeriod", 60.0)
    kernel_memcg_notification: bool = f.boolean("kernelMemcgNotification", False)
    # Node object and API client.
    register_node: bool = f.boolean("registerNode", True)
    register_with_taints: tuple[Taint, ...] = f.structs("registerWithTaints", Taint)
    enable_controller_attach_detach: bool = f.boolean("enableControllerAttachDetach", True)
    node_status_update_frequency_s: float = f.duration("nodeStatusUpdateFrequency", 10.0)
    node_status_report_frequency_s: float = f.duration("nodeStatusReportFrequency", 300.0)
    node_lease_duration_seconds: int = f.int32("nodeLeaseDurationSeconds", 40, zero_is_default=True)
    pod_cidr: str = f.text("podCIDR")
    provider_id: str = f.text("providerID")
    event_record_qps: int = f.int32("eventRecordQPS", 50)
    event_burst: int = f.int32("eventBurst", 100, zero_is_default=True)
    feature_gates: Mapping[str, bool] = f.bool_map("featureGates")
    # Name resolution.
    cluster_dns: tuple[str, ...] = f.strings("clusterDNS")
    cluster_domain: str = f.text("clusterDomain")
    resolv_conf: str = f.path("resolvConf", "/etc/resolv.conf", keeps_empty=True)
    # Security.
    seccomp_default: bool = f.boolean("seccompDefault", False)
    user_namespaces: UserNamespaces | None = f.optional_struct("userNamespaces", UserNamespaces)

    single_process_oom_kill: bool | None = f.boolean("singleProcessOOMKill", None)
    shutdown_grace_period_s: float = f.duration("shutdownGracePeriod", 0.0, keeps_zero=True)
    shutdown_grace_period_critical_pods_s: float = f.duration(
        "shutdownGracePeriodCriticalPods", 0.0, keeps_zero=True
    )
    shutdown_grace_period_by_pod_priority: tuple[ShutdownGracePeriodByPodPriority, ...] = f.structs(
        "shutdownGracePeriodByPodPriority", ShutdownGracePeriodByPodPriority
    )
    node_status_max_images: int = f.int32("nodeStatusMaxImages", 50)
    allowed_unsafe_sysctls: tuple[str, ...] = f.strings("allowedUnsafeSysctls")
    # What others see of it.
    logging: Logging = f.struct("logging", Logging)
    tracing: Tracing | None = f.optional_struct("tracing", Tracing)

    # What this process may use, what it tells, and what has no effect (`not_acted_on`).
    tls_curve_preferences: tuple[int, ...] = f.ints("tlsCurvePreferences")
    rotate_certificates: bool = f.boolean("rotateCertificates", False)
    server_tls_bootstrap: bool = f.boolean("serverTLSBootstrap", False)
    enable_contention_profiling: bool = f.boolean("enableContentionProfiling", False)
    enable_debug_flags_handler: bool = f.boolean("enableDebugFlagsHandler", True)
    enable_system_log_query: bool = f.boolean("enableSystemLogQuery", False)
    oom_score_adj: int = f.int32("oomScoreAdj", -999)
    streaming_connection_idle_timeout_s: float = f.duration(
        "streamingConnectionIdleTimeout", 14400.0
    )
    kubelet_cgroups: str = f.text("kubeletCgroups")
    system_cgroups: str = f.text("systemCgroups")
    qos_reserved: Mapping[str, str] = f.string_map("qosReserved")
    hairpin_mode: str = f.text("hairpinMode", "promiscuous-bridge")
    run_once: bool = f.boolean("runOnce", False)
    max_open_files: int = f.int64("maxOpenFiles", 1_000_000)
    content_type: str = f.text("contentType", "application/vnd.kubernetes.protobuf")
    kube_api_qps: int = f.int32("kubeAPIQPS", 50)
    kube_api_burst: int = f.int32("kubeAPIBurst", 100, zero_is_default=True)
    make_iptables_util_chains: bool = f.boolean("makeIPTablesUtilChains", True)
    iptables_masquerade_bit: int = f.int32("iptablesMasqueradeBit", 14)
    iptables_drop_bit: int = f.int32("iptablesDropBit", 15)
    config_map_and_secret_change_detection_strategy: str = f.text(
        "configMapAndSecretChangeDetectionStrategy", "Watch"
    )
    show_hidden_metrics_for_version: str = f.text("showHiddenMetricsForVersion")
    volume_plugin_dir: str = f.path(
        "volumePluginDir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
    )
