"""What a KubeletConfiguration may say: each rule a row, every violation reported (CFG-005).

Longer than a sitting because the table is: one row a rule. Texts after `invalid configuration: `
are those of the kubelet where CFG-005 names them. Upstream:
pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Final

from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.config.resource_validation import resource_problems
from refkubelet.model.duration import format_duration
from refkubelet.model.quantity import QuantityError, parse_nano
from refkubelet.runtime.images.records import (
    NEVER_VERIFY_ALLOWLISTED,
    NEVER_VERIFY_PRELOADED,
    POLICIES,
    is_allowlist_entry,
)
from refkubelet.runtime.records import IDS_PER_POD

PREFIX: Final = "invalid configuration: "
_PULLED_IMAGES_GATE: Final = "KubeletEnsureSecretPulledImages"
_CRASH_LOOP_GATE: Final = "KubeletCrashLoopBackOffMax"

C = KubeletConfiguration
Rule = tuple[Callable[[C], bool], Callable[[C], str]]


def _ids_per_pod(config: C) -> int:
    return config.user_namespaces.ids_per_pod if config.user_namespaces else IDS_PER_POD


# (what must hold, the complaint if it does not)
RULES: Final[tuple[Rule, ...]] = (
    (
        lambda c: 1 <= c.port <= 65535,
        lambda c: f"port (--port) {c.port} must be between 1 and 65535, inclusive",
    ),
    (
        lambda c: 0 <= c.read_only_port <= 65535,
        lambda c: (
            f"readOnlyPort (--read-only-port) {c.read_only_port} "
            "must be between 0 and 65535, inclusive"
        ),
    ),
    (
        lambda c: 0 <= c.healthz_port <= 65535,
        lambda c: (
            f"healthzPort (--healthz-port) {c.healthz_port} must be between 1 and 65535, inclusive"
        ),
    ),
    (
        lambda c: _ids_per_pod(c) >= IDS_PER_POD,
        lambda c: f"userNamespaces.idsPerPod must not be less than {IDS_PER_POD}",
    ),
    (
        lambda c: _ids_per_pod(c) % IDS_PER_POD == 0,
        lambda c: f"userNamespaces.idsPerPod must be a multiple of {IDS_PER_POD}",
    ),
    (
        lambda c: _ids_per_pod(c) < 1 << 32,
        lambda c: f"userNamespaces.idsPerPod must not be more than {(1 << 32) - 1}",
    ),
    (
        lambda c: c.node_lease_duration_seconds > 0,
        lambda c: "nodeLeaseDurationSeconds must be greater than 0",
    ),
    (
        lambda c: c.node_status_max_images >= -1,
        lambda c: (
            f"nodeStatusMaxImages (--node-status-max-images) {c.node_status_max_images} "
            "must be -1 or greater"
        ),
    ),
    (
        lambda c: not c.enable_system_log_query or c.enable_system_log_handler,
        lambda c: "enableSystemLogHandler is required for enableSystemLogQuery",
    ),
    (
        lambda c: c.pod_logs_dir.startswith("/"),
        lambda c: f'pod logs path "{c.pod_logs_dir}" must be absolute path',
    ),
    (
        lambda c: 0 <= c.image_gc_low_threshold_percent <= 100,
        lambda c: (
            "imageGCLowThresholdPercent (--image-gc-low-threshold) "
            f"{c.image_gc_low_threshold_percent} must be between 0 and 100, inclusive"
        ),
    ),
    (
        lambda c: 0 <= c.image_gc_high_threshold_percent <= 100,
        lambda c: (
            "imageGCHighThresholdPercent (--image-gc-high-threshold) "
            f"{c.image_gc_high_threshold_percent} must be between 0 and 100, inclusive"
        ),
    ),
    (
        lambda c: c.image_gc_low_threshold_percent < c.image_gc_high_threshold_percent,  # GC-101
        lambda c: (
            f"imageGCLowThresholdPercent (--image-gc-low-threshold) "
            f"{c.image_gc_low_threshold_percent} must be less than imageGCHighThresholdPercent "
            f"(--image-gc-high-threshold) {c.image_gc_high_threshold_percent}"
        ),
    ),
    (
        lambda c: (
            not c.image_maximum_gc_age_s or c.image_maximum_gc_age_s > c.image_minimum_gc_age_s
        ),
        lambda c: (
            f"imageMaximumGCAge {format_duration(c.image_maximum_gc_age_s)} must be greater than "
            f"imageMinimumGCAge {format_duration(c.image_minimum_gc_age_s)}"
        ),
    ),
    (
        lambda c: c.container_log_max_files >= 2,  # GC-201
        lambda c: f"containerLogMaxFiles {c.container_log_max_files} must be greater than 1",
    ),
    (
        lambda c: c.container_log_max_workers >= 1,
        lambda c: f"containerLogMaxWorkers {c.container_log_max_workers} must be greater than 0",
    ),
    (
        lambda c: c.container_log_monitor_interval_s >= 3,
        lambda c: (
            "containerLogMonitorInterval "
            f"{format_duration(c.container_log_monitor_interval_s)} must be at least 3s"
        ),
    ),
    (
        lambda c: 0.001 <= c.cpu_cfs_quota_period_s <= 1,
        lambda c: (
            f"cpuCFSQuotaPeriod (--cpu-cfs-quota-period) "
            f"{format_duration(c.cpu_cfs_quota_period_s)} must be between 1ms and 1sec, inclusive"
        ),
    ),
    (
        lambda c: -1000 <= c.oom_score_adj <= 1000,
        lambda c: (
            f"oomScoreAdj (--oom-score-adj) {c.oom_score_adj} "
            "must be between -1000 and 1000, inclusive"
        ),
    ),
    (
        lambda c: 0 < c.memory_throttling_factor <= 1,
        lambda c: (
            f"memoryThrottlingFactor {c.memory_throttling_factor:g} "
            "must be greater than 0 and less than or equal to 1.0"
        ),
    ),
    (
        lambda c: not c.serialize_image_pulls or (c.max_parallel_image_pulls or 1) <= 1,
        lambda c: (
            f"maxParallelImagePulls {c.max_parallel_image_pulls} "
            "cannot be larger than 1 unless SerializeImagePulls is set to false"
        ),
    ),
    (
        lambda c: c.max_parallel_image_pulls is None or c.max_parallel_image_pulls > 0,
        lambda c: f"maxParallelImagePulls {c.max_parallel_image_pulls} must be a positive number",
    ),
    (
        lambda c: (
            c.feature_gates.get(_PULLED_IMAGES_GATE, True)
            or (
                c.image_pull_credentials_verification_policy == NEVER_VERIFY_PRELOADED
                and not c.preloaded_images_verification_allowlist
            )
        ),
        lambda c: (
            "imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist must "
            f"not be set if {_PULLED_IMAGES_GATE} feature gate is not enabled"
        ),
    ),
    (
        lambda c: c.image_pull_credentials_verification_policy in POLICIES,  # BACK-210
        lambda c: (
            f'option "{c.image_pull_credentials_verification_policy}" specified for '
            "imagePullCredentialsVerificationPolicy. Valid options are "
            f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}"
        ),
    ),
    (
        lambda c: (
            not c.preloaded_images_verification_allowlist
            or c.image_pull_credentials_verification_policy == NEVER_VERIFY_ALLOWLISTED
        ),
        lambda c: (
            "can't set preloadedImagesVerificationAllowlist if "
            f"imagePullCredentialsVerificationPolicy is not {NEVER_VERIFY_ALLOWLISTED}"
        ),
    ),
    (
        lambda c: all(map(is_allowlist_entry, c.preloaded_images_verification_allowlist)),
        lambda c: (
            "invalid image pattern in preloadedImagesVerificationAllowlist: wanted an image name "
            "without tag and digest, or a beginning of names that ends with /*: "
            + ", ".join(
                e for e in c.preloaded_images_verification_allowlist if not is_allowlist_entry(e)
            )
        ),
    ),
    (
        lambda c: not c.run_once,
        lambda c: "runOnce (--runonce) is not supported: it was removed, leave it false",
    ),
)

# (field, flag) of integers that must not be negative
_NOT_NEGATIVE: Final = (
    ("event_burst", "eventBurst (--event-burst)"),
    ("event_record_qps", "eventRecordQPS (--event-qps)"),
    ("kube_api_qps", "kubeAPIQPS (--kube-api-qps)"),
    ("kube_api_burst", "kubeAPIBurst (--kube-api-burst)"),
    ("registry_pull_qps", "registryPullQPS (--registry-qps)"),
    ("registry_burst", "registryBurst (--registry-burst)"),
    ("max_pods", "maxPods (--max-pods)"),
    ("pods_per_core", "podsPerCore (--pods-per-core)"),
    ("max_open_files", "maxOpenFiles (--max-open-files)"),
    ("eviction_max_pod_grace_period", "evictionMaxPodGracePeriod"),
)

# (field, wire name, the words it may hold)
_WORDS: Final = (
    ("cgroup_driver", "cgroupDriver", ("cgroupfs", "systemd")),
    ("hairpin_mode", "hairpinMode", ("hairpin-veth", "promiscuous-bridge", "none")),
    (
        "config_map_and_secret_change_detection_strategy",
        "configMapAndSecretChangeDetectionStrategy",
        ("Get", "Cache", "Watch"),
    ),
    (
        "topology_manager_policy",
        "topologyManagerPolicy",
        ("none", "best-effort", "restricted", "single-numa-node"),
    ),
    ("topology_manager_scope", "topologyManagerScope", ("container", "pod")),
)

_DURATIONS_ABOVE_ZERO: Final = (
    ("file_check_frequency_s", "fileCheckFrequency"),
    ("http_check_frequency_s", "httpCheckFrequency"),
    ("node_status_update_frequency_s", "nodeStatusUpdateFrequency"),
    ("node_status_report_frequency_s", "nodeStatusReportFrequency"),
    ("runtime_request_timeout_s", "runtimeRequestTimeout"),
    ("eviction_pressure_transition_period_s", "evictionPressureTransitionPeriod"),
    ("image_minimum_gc_age_s", "imageMinimumGCAge"),
)

ENFORCEABLE: Final = (
    "pods",
    "system-reserved",
    "system-reserved-compressible",
    "kube-reserved",
    "kube-reserved-compressible",
    "none",
)
_RESERVABLE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})


def validate(config: KubeletConfiguration) -> list[str]:
    """All violations, each a complete sentence; empty when the configuration is usable.

    Eviction thresholds are read, and complained about, by eviction/thresholds.py.
    """
    problems = [complaint(config) for holds, complaint in RULES if not holds(config)]
    for check in (
        _simple_fields,
        _back_off,
        _shutdown,
        _allocatable,
        _reserved,
        resource_problems,
        _addresses,
    ):
        problems.extend(check(config))
    problems = [PREFIX + problem for problem in problems]
    if config.sync_frequency_s <= 0:
        problems.append(f"invalid sync frequency {format_duration(config.sync_frequency_s)}")
    problems.extend(
        f"invalid taint: {t.key}: taint.TimeAdded is not nil"
        for t in config.register_with_taints
        if t.time_added
    )
    return problems


def _simple_fields(config: KubeletConfiguration) -> Iterator[str]:
    for name, label in _NOT_NEGATIVE:
        value = getattr(config, name)
        if value < 0:
            yield f"{label} {value} must not be a negative number"
    for name, wire, words in _WORDS:
        value = getattr(config, name)
        if value not in words:
            yield f"{wire} {value!r} must be one of {', '.join(words)}"
    for name, wire in _DURATIONS_ABOVE_ZERO:
        value = getattr(config, name)
        if value <= 0:
            yield f"{wire} {format_duration(value)} must be greater than 0"
    if config.authorization.mode not in ("AlwaysAllow", "Webhook"):
        yield f"authorization.mode {config.authorization.mode!r} must be AlwaysAllow or Webhook"
    if bool(config.tls_cert_file) != bool(config.tls_private_key_file):
        yield "tlsCertFile and tlsPrivateKeyFile must be set together"


def _back_off(config: KubeletConfiguration) -> Iterator[str]:
    """BACK-013."""
    period_s = config.crash_loop_back_off.max_container_restart_period_s
    if not 1 <= period_s <= 300:
        yield (
            f"CrashLoopBackOff.MaxContainerRestartPeriod (got: {period_s:g} seconds) "
            "must be set between 1s and 300s"
        )
    if period_s != 300 and not config.feature_gates.get(_CRASH_LOOP_GATE, True):
        yield (
            f"FeatureGate {_CRASH_LOOP_GATE} not enabled, "
            "CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
        )


def _shutdown(config: KubeletConfiguration) -> Iterator[str]:
    total_s, critical_s = (
        config.shutdown_grace_period_s,
        config.shutdown_grace_period_critical_pods_s,
    )
    if critical_s > total_s:
        yield (
            f"shutdownGracePeriodCriticalPods {format_duration(critical_s)} must be <= "
            f"shutdownGracePeriod {format_duration(total_s)}"
        )
    for name, value in (
        ("shutdownGracePeriod", total_s),
        ("shutdownGracePeriodCriticalPods", critical_s),
    ):
        if value < 0 or 0 < value < 1:
            yield f"{name} {format_duration(value)} must be either zero or otherwise >= 1 sec"
    gates = config.feature_gates
    if (total_s or critical_s) and not gates.get("GracefulNodeShutdown", True):
        yield (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature "
            "gate GracefulNodeShutdown"
        )
    by_priority = "GracefulNodeShutdownBasedOnPodPriority"
    if config.shutdown_grace_period_by_pod_priority and not gates.get(by_priority, True):
        yield f"Specifying shutdownGracePeriodByPodPriority requires feature gate {by_priority}"
    if config.shutdown_grace_period_by_pod_priority and (total_s or critical_s):
        yield (
            "Cannot specify both shutdownGracePeriodByPodPriority and "
            "shutdownGracePeriod at the same time"
        )


def _allocatable(config: KubeletConfiguration) -> Iterator[str]:
    """CG-034, CG-035."""
    enforced = config.enforce_node_allocatable
    flag = "enforceNodeAllocatable (--enforce-node-allocatable)"
    for name in ("system-reserved", "kube-reserved"):
        if name in enforced and f"{name}-compressible" in enforced:
            yield (
                f'both "{name}" and "{name}-compressible" cannot be specified together in {flag}'
            )
    for n, word in enumerate(enforced):
        if word in enforced[:n]:
            yield f'duplicated enforcements "{word}" in {flag}'
        elif word not in ENFORCEABLE:
            options = ", ".join(f'"{w}"' for w in ENFORCEABLE[:-1])
            yield (
                f'option "{word}" specified for {flag}. Valid options are {options} or '
                f'"{ENFORCEABLE[-1]}"'
            )
        elif word != "none":
            yield from _enforced_group(config, word, flag)
        elif len(enforced) > 1:
            yield f'{flag} may not contain additional enforcements when "none" is specified'


def _enforced_group(config: KubeletConfiguration, word: str, flag: str) -> Iterator[str]:
    groups = {"system": config.system_reserved_cgroup, "kube": config.kube_reserved_cgroup}
    owner = word.partition("-")[0]
    if not groups.get(owner, word):
        yield (
            f"{owner}ReservedCgroup (--{owner}-reserved-cgroup) must be specified when "
            f'"{owner}-reserved" or "{owner}-reserved-compressible" included in {flag}'
        )
    if not config.cgroups_per_qos:
        yield (
            f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{word}" contained in '
            f"{flag}"
        )


def _reserved(config: KubeletConfiguration) -> Iterator[str]:
    for wire, amounts in (
        ("systemReserved", config.system_reserved),
        ("kubeReserved", config.kube_reserved),
    ):
        for name, text in amounts.items():
            if name not in _RESERVABLE:
                yield f"{wire}: cannot reserve {name!r}, only {', '.join(sorted(_RESERVABLE))}"
                continue
            try:
                if parse_nano(text) < 0:
                    yield f"{wire}.{name}: resource quantity cannot be negative: {text}"
            except QuantityError as e:
                yield f"{wire}.{name}: {e}"


def _addresses(config: KubeletConfiguration) -> Iterator[str]:
    for wire, text in (
        ("address", config.address),
        ("healthzBindAddress", config.healthz_bind_address),
    ):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            yield f"{wire} {text!r} is no IP address"
