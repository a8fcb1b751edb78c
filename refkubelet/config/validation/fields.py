"""Checks single fields of a KubeletConfiguration (CFG-005). Pure.

Texts are those of the kubelet where CFG-005 names them. Upstream:
pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Final

from kubeobjects.golang.duration import format_duration
from refkubelet.config.schema.image_policies import (
    NEVER_VERIFY_ALLOWLISTED,
    NEVER_VERIFY_PRELOADED,
    is_allowlist_entry,
)
from refkubelet.config.schema.kubelet_config import KubeletConfiguration, UserNamespaces
from refkubelet.config.validation.words import word_problems
from refkubelet.cri.records import IDS_PER_POD
from refkubelet.model.cgroups.names import words_of

_PULLED_IMAGES_GATE: Final = "KubeletEnsureSecretPulledImages"

_NS: Final = 1e-9
_NEGATIVE: Final = "must not be a negative number"
_PORTS: Final = "must be between 1 and 65535, inclusive"
_PERCENT: Final = "must be between 0 and 100, inclusive"
_NO_TIME: Final = "must be greater than 0"
_NO_PAST: Final = "must not be negative"
_BITS: Final = "must be between 0 and 31, inclusive"

_BOUNDS: Final[tuple[tuple[str, float, float, str], ...]] = (
    ("port (--port)", 1, 65535, _PORTS),
    ("readOnlyPort (--read-only-port)", 0, 65535, "must be between 0 and 65535, inclusive"),
    ("healthzPort (--healthz-port)", 0, 65535, _PORTS),
    ("nodeStatusMaxImages (--node-status-max-images)", -1, inf, "must be -1 or greater"),
    ("imageGCLowThresholdPercent (--image-gc-low-threshold)", 0, 100, _PERCENT),
    ("imageGCHighThresholdPercent (--image-gc-high-threshold)", 0, 100, _PERCENT),
    (
        *("cpuCFSQuotaPeriod (--cpu-cfs-quota-period)", 0.001, 1),
        "must be between 1ms and 1sec, inclusive",
    ),
    ("oomScoreAdj (--oom-score-adj)", -1000, 1000, "must be between -1000 and 1000, inclusive"),
    ("maxParallelImagePulls", 1, inf, "must be a positive number"),
    ("eventBurst (--event-burst)", 0, inf, _NEGATIVE),
    ("eventRecordQPS (--event-qps)", 0, inf, _NEGATIVE),
    ("kubeAPIQPS (--kube-api-qps)", 0, inf, _NEGATIVE),
    ("kubeAPIBurst (--kube-api-burst)", 0, inf, _NEGATIVE),
    ("registryPullQPS (--registry-qps)", 0, inf, _NEGATIVE),
    ("registryBurst (--registry-burst)", 0, inf, _NEGATIVE),
    ("maxPods (--max-pods)", 0, inf, _NEGATIVE),
    ("podsPerCore (--pods-per-core)", 0, inf, _NEGATIVE),
    ("maxOpenFiles (--max-open-files)", 0, inf, _NEGATIVE),
    ("fileCheckFrequency", _NS, inf, _NO_TIME),
    ("httpCheckFrequency", _NS, inf, _NO_TIME),
    ("nodeStatusUpdateFrequency", _NS, inf, _NO_TIME),
    ("nodeStatusReportFrequency", _NS, inf, _NO_TIME),
    ("runtimeRequestTimeout", _NS, inf, _NO_TIME),
    ("evictionPressureTransitionPeriod", _NS, inf, _NO_TIME),
    ("imageMinimumGCAge", 0, inf, _NO_PAST),
    ("imageMaximumGCAge", 0, inf, _NO_PAST),
    ("iptablesDropBit (--iptables-drop-bit)", 0, 31, _BITS),
    ("iptablesMasqueradeBit (--iptables-masquerade-bit)", 0, 31, _BITS),
)
"""What a field is called, the least and the most that it may be, in numbers or seconds, and the
complaint behind its name and value."""
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cgroupDriver": ("cgroupfs", "systemd"),
    "configMapAndSecretChangeDetectionStrategy": ("Get", "Cache", "Watch"),
}
"""The words that a field may hold; upstream finds out later."""
_FIELDS: Final = dict(
    zip(
        KubeletConfiguration.__struct_encode_fields__,
        KubeletConfiguration.__struct_fields__,
        strict=True,
    )
)
"""The name in files -> in Python."""


def field_problems(config: KubeletConfiguration) -> Iterator[str]:
    """The violations, without `invalid configuration: `."""
    for label, low, high, text in _BOUNDS:
        name = _FIELDS[label.partition(" ")[0]]
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            shown = format_duration(value) if name.endswith("_s") else value
            yield f"{label} {shown} {text}"
    for wire, words in _WORDS.items():
        value = getattr(config, _FIELDS[wire])
        if value not in words:
            yield f"{wire} {value!r} must be one of {', '.join(words)}"
    yield from word_problems(config)
    yield from _user_ids(config.user_namespaces)
    yield from _image_collection(config)
    yield from _pull_problems(config)
    yield from _allowlist_problems(config)
    yield from _others(config)


def _user_ids(namespaces: UserNamespaces | None) -> Iterator[str]:
    """The first of them, as upstream tells no more than one."""
    ids = namespaces.ids_per_pod if namespaces else IDS_PER_POD
    if ids < IDS_PER_POD:
        yield f"userNamespaces.idsPerPod must not be less than {IDS_PER_POD}"
    elif ids % IDS_PER_POD:
        yield f"userNamespaces.idsPerPod must be a multiple of {IDS_PER_POD}"
    elif ids >= 1 << 32:
        yield f"userNamespaces.idsPerPod must not be more than {(1 << 32) - 1}"


def _image_collection(c: KubeletConfiguration) -> Iterator[str]:
    low, high = c.image_gc_low_threshold_percent, c.image_gc_high_threshold_percent
    if low >= high:  # GC-101
        yield (
            f"imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        )
    if c.image_maximum_gc_age_s > 0 and c.image_maximum_gc_age_s <= c.image_minimum_gc_age_s:
        yield (
            f"imageMaximumGCAge {format_duration(c.image_maximum_gc_age_s)} must be greater than "
            f"imageMinimumGCAge {format_duration(c.image_minimum_gc_age_s)}"
        )


def _pull_problems(c: KubeletConfiguration) -> Iterator[str]:
    if c.serialize_image_pulls and (c.max_parallel_image_pulls or 1) > 1:
        yield (
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false"
        )


def _allowlist_problems(c: KubeletConfiguration) -> Iterator[str]:
    policy = c.image_pull_credentials_verification_policy
    allowlist = c.preloaded_images_verification_allowlist
    is_set = policy != NEVER_VERIFY_PRELOADED or allowlist
    if is_set and not c.feature_gates.get(_PULLED_IMAGES_GATE, True):
        yield (
            "imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist must "
            f"not be set if {_PULLED_IMAGES_GATE} feature gate is not enabled"
        )
    if allowlist and policy != NEVER_VERIFY_ALLOWLISTED:
        yield (
            "can't set `preloadedImagesVerificationAllowlist` if "
            f'`imagePullCredentialsVertificationPolicy` is not "{NEVER_VERIFY_ALLOWLISTED}"'
        )
    if wrong := [entry for entry in allowlist if not is_allowlist_entry(entry)]:
        yield (
            "invalid image pattern in preloadedImagesVerificationAllowlist: wanted an image name "
            "without tag and digest, or a beginning of names that ends with /*: " + ", ".join(wrong)
        )


def _others(c: KubeletConfiguration) -> Iterator[str]:
    if c.container_log_max_workers < 1:
        yield "containerLogMaxWorkers must be greater than or equal to 1"
    if c.container_log_monitor_interval_s < 3:
        yield (
            "containerLogMonitorInterval must be a positive time duration greater than or equal "
            "to 3s"
        )
    if c.container_log_max_files < 2:  # GC-201
        yield "containerLogMaxFiles must be greater than 1"
    if c.node_lease_duration_seconds <= 0:
        yield "nodeLeaseDurationSeconds must be greater than 0"
    if c.enable_system_log_query and not c.enable_system_log_handler:
        yield "enableSystemLogHandler is required for enableSystemLogQuery"
    if c.cgroup_driver == "systemd" and "" in words_of(c.cgroup_root):  # CG-010
        yield (
            f"cgroupRoot (--cgroup-root) {c.cgroup_root!r} has an empty word between or behind its "
            "slashes, which no systemd slice can have; wanted a path such as /a/b"
        )
    if not c.pod_logs_dir.startswith("/"):
        yield f'pod logs path "{c.pod_logs_dir}" must be absolute path'
    if not 0 < c.memory_throttling_factor <= 1:
        yield (
            f"memoryThrottlingFactor {c.memory_throttling_factor:g} "
            "must be greater than 0 and less than or equal to 1.0"
        )
    if c.run_once:
        yield "runOnce (--runonce) is not supported: it was removed, leave it false"
    if c.authorization.mode not in ("AlwaysAllow", "Webhook"):
        yield f"authorization.mode {c.authorization.mode!r} must be AlwaysAllow or Webhook"
    if bool(c.tls_cert_file) != bool(c.tls_private_key_file):
        yield "tlsCertFile and tlsPrivateKeyFile must be set together"
