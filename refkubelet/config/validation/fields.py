"""Checks single fields of a KubeletConfiguration; each check is a row of `RULES` (CFG-005). Pure.

Texts are those of the kubelet where CFG-005 names them. Upstream:
pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kubeobjects.golang.duration import format_duration
from refkubelet.config.schema.image_policies import (
    NEVER_VERIFY_ALLOWLISTED,
    NEVER_VERIFY_PRELOADED,
    POLICIES,
    is_allowlist_entry,
)
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.cri.records import IDS_PER_POD
from refkubelet.model.cgroups.names import words_of

_PULLED_IMAGES_GATE: Final = "KubeletEnsureSecretPulledImages"

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
        lambda c: c.cgroup_driver != "systemd" or "" not in words_of(c.cgroup_root),  # CG-010
        lambda c: (
            f"cgroupRoot (--cgroup-root) {c.cgroup_root!r} has an empty word between or behind its "
            "slashes, which no systemd slice can have; wanted a path such as /a/b"
        ),
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


def field_problems(config: KubeletConfiguration) -> Iterator[str]:
    """The violations, without `invalid configuration: `."""
    yield from (complaint(config) for holds, complaint in RULES if not holds(config))
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
