"""The limits of a KubeletConfiguration's fields, and what they say of each other (CFG-005)."""

from __future__ import annotations

from typing import Any

import pytest

from refkubelet.config.schema.image_policies import VerificationPolicy, is_allowlist_entry
from refkubelet.config.schema.kubelet_config import (
    Authorization,
    CrashLoopBackOff,
    KubeletConfiguration,
    MemoryReservation,
    ShutdownGracePeriodByPodPriority,
    Taint,
    UserNamespaces,
)
from refkubelet.config.validation.fields import field_problems
from refkubelet.config.validation.resources import with_named_cpus
from refkubelet.config.validation.whole import validate

FLAG = "enforceNodeAllocatable (--enforce-node-allocatable)"


def problems(**fields: Any) -> list[str]:
    """Of a configuration, without `invalid configuration: `, with which each must begin."""
    found = validate(KubeletConfiguration(**fields))
    assert all(problem.startswith("invalid configuration: ") for problem in found)
    return [problem.removeprefix("invalid configuration: ") for problem in found]


def test_the_defaults_are_valid_CFG_005() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("field", "valid", "wrong", "why"),
    [
        ("port", (1, 65535), (0, 65536), "port (--port) {} must be between 1 and 65535, inclusive"),
        ("read_only_port", (0, 65535), (-1, 65536),
         "readOnlyPort (--read-only-port) {} must be between 0 and 65535, inclusive"),
        ("healthz_port", (0, 65535), (-1, 65536),
         "healthzPort (--healthz-port) {} must be between 1 and 65535, inclusive"),
        ("node_lease_duration_seconds", (1,), (0,),
         "nodeLeaseDurationSeconds must be greater than 0"),
        ("node_status_max_images", (-1,), (-2,),
         "nodeStatusMaxImages (--node-status-max-images) {} must be -1 or greater"),
        ("image_gc_low_threshold_percent", (0,), (-1,),
         "imageGCLowThresholdPercent (--image-gc-low-threshold) {} "
         "must be between 0 and 100, inclusive"),
        ("image_gc_high_threshold_percent", (100,), (101,),
         "imageGCHighThresholdPercent (--image-gc-high-threshold) {} "
         "must be between 0 and 100, inclusive"),
        ("container_log_max_files", (2,), (1,), "containerLogMaxFiles must be greater than 1"),
        ("container_log_max_workers", (1,), (0,),
         "containerLogMaxWorkers must be greater than or equal to 1"),
        ("container_log_monitor_interval_s", (3.0,), (2,),
         "containerLogMonitorInterval must be a positive time duration "
         "greater than or equal to 3s"),
        ("cpu_cfs_quota_period_s", (0.001, 1.0), (2,),
         "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {}s must be between 1ms and 1sec, inclusive"),
        ("oom_score_adj", (-1000, 1000), (-1001, 1001),
         "oomScoreAdj (--oom-score-adj) {} must be between -1000 and 1000, inclusive"),
        ("memory_throttling_factor", (0.1, 1.0), (0, 1.5, -1),
         "memoryThrottlingFactor {} must be greater than 0 and less than or equal to 1.0"),
        ("max_parallel_image_pulls", (1, None), (0, -1),
         "maxParallelImagePulls {} must be a positive number"),
        ("pod_logs_dir", ("/a",), ("a",), 'pod logs path "{}" must be absolute path'),
        *(
            (field, (0,), (-1,), f"{label} {{}} must not be a negative number")
            for field, label in (
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
        ),
        *(
            (field, (0.5,), (0, -1), f"{wire} {{}}s must be greater than 0")
            for field, wire in (
                ("file_check_frequency_s", "fileCheckFrequency"),
                ("http_check_frequency_s", "httpCheckFrequency"),
                ("node_status_update_frequency_s", "nodeStatusUpdateFrequency"),
                ("node_status_report_frequency_s", "nodeStatusReportFrequency"),
                ("runtime_request_timeout_s", "runtimeRequestTimeout"),
                ("eviction_pressure_transition_period_s", "evictionPressureTransitionPeriod"),
            )
        ),
        ("image_minimum_gc_age_s", (0,), (-1,), "imageMinimumGCAge {}s must not be negative"),
        ("image_maximum_gc_age_s", (0,), (-1,), "imageMaximumGCAge {}s must not be negative"),
        ("cgroup_driver", ("cgroupfs", "systemd"), ("x",),
         "cgroupDriver '{}' must be one of cgroupfs, systemd"),
        ("hairpin_mode", ("hairpin-veth", "promiscuous-bridge", "none"), ("x",),
         'option "{}" specified for hairpinMode (--hairpin-mode). Valid options are "none", '
         '"hairpin-veth" or "promiscuous-bridge"'),
        ("config_map_and_secret_change_detection_strategy", ("Get", "Cache", "Watch"), ("x",),
         "configMapAndSecretChangeDetectionStrategy '{}' must be one of Get, Cache, Watch"),
        ("topology_manager_policy", ("none", "best-effort", "restricted", "single-numa-node"),
         ("x",), 'topologyManagerPolicy (--topology-manager-policy) "{}" must be one of: ["none" '
         '"best-effort" "restricted" "single-numa-node"]'),
        ("topology_manager_scope", ("container", "pod"), ("x",),
         'topologyManagerScope (--topology-manager-scope) "{}" must be one of: '
         '"container", or "pod"'),
        ("address", ("10.0.0.1", "::"), ("localhost",), "address '{}' is not an IP address"),
        ("healthz_bind_address", ("10.0.0.1", "::"), ("",),
         "healthzBindAddress '{}' is not an IP address"),
    ],
)  # fmt: skip
def test_limits_of_single_fields_CFG_005(
    field: str, valid: tuple[Any, ...], wrong: tuple[Any, ...], why: str
) -> None:
    for value in valid:
        assert problems(**{field: value}) == []
    for value in wrong:
        assert problems(**{field: value}) == [why.format(value)]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (65536, []),
        (131072, []),
        (0, ["not be less than 65536"]),
        (65537, ["be a multiple of 65536"]),
        (1 << 32, ["not be more than 4294967295"]),
    ],
)
def test_ids_of_user_namespaces_CFG_005(ids: int, wanted: list[str]) -> None:
    found = problems(user_namespaces=UserNamespaces(ids_per_pod=ids))
    assert found == [f"userNamespaces.idsPerPod must {why}" for why in wanted]


def test_authorization_and_certificates_CFG_005() -> None:
    both = {"tls_cert_file": "/a", "tls_private_key_file": "/b"}
    assert problems(**both) == []
    for name, file in both.items():
        assert problems(**{name: file}) == [
            "tlsCertFile and tlsPrivateKeyFile must be set together"
        ]
    for mode in ("AlwaysAllow", "Webhook"):
        assert problems(authorization=Authorization(mode=mode)) == []
    assert problems(authorization=Authorization(mode="RBAC")) == [
        "authorization.mode 'RBAC' must be AlwaysAllow or Webhook"
    ]


def test_several_complaints_come_in_order_CFG_005() -> None:
    config = KubeletConfiguration(port=0, max_pods=-1, cgroup_driver="x", tls_cert_file="/a")
    assert [problem.split()[0] for problem in field_problems(config)] == [
        "port",
        "maxPods",
        "cgroupDriver",
        "tlsCertFile",
    ]


def test_taints_and_syncs_have_no_prefix_CFG_005() -> None:
    taints = (Taint(key="a"), Taint(key="b", time_added="2026-01-01T00:00:00Z"))
    assert validate(KubeletConfiguration(sync_frequency_s=0, register_with_taints=taints)) == [
        "invalid sync frequency 0s",
        "invalid taint: b: taint.TimeAdded is not nil",
    ]
    assert (
        validate(KubeletConfiguration(sync_frequency_s=0.5, register_with_taints=taints[:1])) == []
    )


@pytest.mark.parametrize(
    ("period_s", "gate", "wanted"),
    [
        (1, True, []),
        (300, True, []),
        (300, False, []),
        (0.5, True, ["(got: 0.5 seconds) must be set between 1s and 300s"]),
        (301, True, ["(got: 301 seconds) must be set between 1s and 300s"]),
    ],
)
def test_the_longest_delay_of_a_restart_BACK_013(
    period_s: float, gate: bool, wanted: list[str]
) -> None:
    found = problems(
        crash_loop_back_off=CrashLoopBackOff(period_s),
        feature_gates={"KubeletCrashLoopBackOffMax": gate},
    )
    assert found == [f"CrashLoopBackOff.MaxContainerRestartPeriod {why}" for why in wanted]


def test_the_longest_delay_of_a_restart_has_a_gate_BACK_013() -> None:
    short = {"crash_loop_back_off": CrashLoopBackOff(299)}
    assert problems(**short) == problems(**short, feature_gates={"Other": False}) == []
    assert problems(**short, feature_gates={"KubeletCrashLoopBackOffMax": False}) == [
        "FeatureGate KubeletCrashLoopBackOffMax not enabled, "
        "CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
    ]


def of_shutdown(
    total_s: float, critical_s: float, *, by_priority: bool = False, **gates: bool
) -> list[str]:
    periods = (ShutdownGracePeriodByPodPriority(0, 10),) if by_priority else ()
    return problems(
        shutdown_grace_period_s=total_s,
        shutdown_grace_period_critical_pods_s=critical_s,
        shutdown_grace_period_by_pod_priority=periods,
        feature_gates=gates,
    )


@pytest.mark.parametrize(
    ("total_s", "critical_s", "wanted"),
    [
        (0, 0, []),
        (1, 0, []),
        (1, 1, []),
        (30, 10, []),
        (10, 10.5, ["shutdownGracePeriodCriticalPods 10.5s must be <= shutdownGracePeriod 10s"]),
        (0.5, 0, ["shutdownGracePeriod 500ms must be either zero or otherwise >= 1 sec"]),
        (-1, -2, [
            "shutdownGracePeriod -1s must be either zero or otherwise >= 1 sec",
            "shutdownGracePeriodCriticalPods -2s must be either zero or otherwise >= 1 sec",
        ]),
        (5, 0.5, [
            "shutdownGracePeriodCriticalPods 500ms must be either zero or otherwise >= 1 sec"
        ]),
    ],
)  # fmt: skip
def test_grace_periods_of_a_shutdown_CFG_005(
    total_s: float, critical_s: float, wanted: list[str]
) -> None:
    assert of_shutdown(total_s, critical_s) == wanted


def test_a_shutdown_s_gates_CFG_005() -> None:
    off = {"GracefulNodeShutdown": False}
    assert of_shutdown(0, 0, **off) == of_shutdown(2, 1, Other=False) == []
    need = (
        "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate "
        "GracefulNodeShutdown"
    )
    assert of_shutdown(2, 1, **off) == of_shutdown(2, 0, **off) == [need]
    order = "shutdownGracePeriodCriticalPods 2s must be <= shutdownGracePeriod 0s"
    assert of_shutdown(0, 2, **off) == [order, need]


def test_periods_by_priority_are_alone_CFG_005() -> None:
    gate = "GracefulNodeShutdownBasedOnPodPriority"
    assert of_shutdown(0, 0, by_priority=True) == []
    assert of_shutdown(0, 0, by_priority=True, Other=False) == []
    assert of_shutdown(2, 1, **{gate: False}) == []
    assert of_shutdown(0, 0, by_priority=True, **{gate: False}) == [
        f"Specifying shutdownGracePeriodByPodPriority requires feature gate {gate}"
    ]
    assert of_shutdown(2, 0, by_priority=True) == [
        "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same "
        "time"
    ]


CGROUPS = {"system_reserved_cgroup": "/s", "kube_reserved_cgroup": "/k"}


def enforced(*words: str, **fields: Any) -> list[str]:
    return problems(enforce_node_allocatable=words, **fields)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("none",),
        ("pods",),
        ("pods", "system-reserved", "kube-reserved"),
        ("pods", "system-reserved-compressible", "kube-reserved-compressible"),
        ("system-reserved", "kube-reserved-compressible"),
    ],
)
def test_what_can_be_enforced_CG_034_CG_035(words: tuple[str, ...]) -> None:
    assert enforced(*words, **CGROUPS) == []


def test_what_is_enforced_is_known_and_there_once_CG_034_CG_035() -> None:
    assert enforced("pods", "pods", "x") == [
        f'duplicated enforcements "pods" in {FLAG}',
        f'option "x" specified for {FLAG}. Valid options are "pods", "system-reserved", '
        '"system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"',
    ]
    assert enforced("none", "pods") == [
        f'{FLAG} may not contain additional enforcements when "none" is specified'
    ]
    for name in ("system-reserved", "kube-reserved"):
        assert enforced(name, f"{name}-compressible", **CGROUPS) == [
            f'both "{name}" and "{name}-compressible" cannot be specified together in {FLAG}'
        ]


@pytest.mark.parametrize("owner", ["system", "kube"])
@pytest.mark.parametrize("rest", ["", "-compressible"])
def test_reservations_that_are_enforced_have_a_cgroup_CG_034(owner: str, rest: str) -> None:
    other = f"{'kube' if owner == 'system' else 'system'}_reserved_cgroup"
    assert enforced(f"{owner}-reserved{rest}", **{other: "/a"}) == [
        f"{owner}ReservedCgroup (--{owner}-reserved-cgroup) must be specified when "
        f'"{owner}-reserved" or "{owner}-reserved-compressible" included in {FLAG}'
    ]
    assert enforced(f"{owner}-reserved{rest}", **{f"{owner}_reserved_cgroup": "/a"}) == []


def test_enforcement_needs_cgroups_of_pods_CG_034() -> None:
    assert enforced("none", cgroups_per_qos=False) == enforced(cgroups_per_qos=False) == []
    assert enforced("pods", "kube-reserved", cgroups_per_qos=False, **CGROUPS) == [
        f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{word}" contained in {FLAG}'
        for word in ("pods", "kube-reserved")
    ]


@pytest.mark.parametrize(
    ("field", "wire"), [("system_reserved", "systemReserved"), ("kube_reserved", "kubeReserved")]
)
def test_amounts_of_reservations_CG_034(field: str, wire: str) -> None:
    valid = {"cpu": "0", "memory": "1Mi", "ephemeral-storage": "1", "pid": "1000"}
    assert problems(**{field: valid}) == []
    found = problems(**{field: {"disk": "x", "memory": "-1m", "cpu": "1x"}})
    assert found[:2] == [
        f"{wire}: cannot reserve 'disk', only cpu, ephemeral-storage, memory, pid",
        f"{wire}.memory: resource quantity cannot be negative: -1m",
    ]
    assert found[2].startswith(f"{wire}.cpu: '1x' is no quantity: ")


def test_reserved_cpus_CG_081() -> None:
    flag = "reservedSystemCPUs (--reserved-cpus)"
    assert problems(reserved_system_cpus="0-1") == problems(**CGROUPS) == []
    for name, path in CGROUPS.items():
        assert problems(reserved_system_cpus="0-1", **{name: path}) == [
            f"can't use {flag} with systemReservedCgroup (--system-reserved-cgroup) or "
            "kubeReservedCgroup (--kube-reserved-cgroup)"
        ]
    (why,) = problems(reserved_system_cpus="0-x")
    assert why.startswith(f"unable to parse {flag} 0-x, error: ")


def test_reserved_memory_CG_082() -> None:
    def found(*entries: tuple[int, dict[str, str]]) -> list[str]:
        return problems(reserved_memory=tuple(MemoryReservation(*entry) for entry in entries))

    assert found((0, {"memory": "1", "hugepages-2Mi": "2Mi"}), (1, {"memory": "1"})) == []
    assert found((0, {"cpu": "1", "memory": "0"}), (0, {"memory": "1"})) == [
        'the limit type "cpu" for NUMA node 0 is not supported, '
        "only [memory hugepages-<HugePageSize>] is accepted",
        'reserved memory may not be zero for NUMA node 0 and resource "memory"',
        'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
    ]
    (why,) = found((3, {"memory": "x"}))
    assert why.startswith("reservedMemory of NUMA node 3, memory: 'x' is no quantity: ")


def test_named_cpus_are_the_only_ones_that_are_reserved_CG_081() -> None:
    amounts = {
        "system_reserved": {"cpu": "5", "pid": "9"},
        "kube_reserved": {"cpu": "1", "memory": "1"},
    }
    plain = KubeletConfiguration(**amounts)
    assert with_named_cpus(plain) is plain
    named = with_named_cpus(KubeletConfiguration(**amounts, reserved_system_cpus="0,2-3"))
    assert named.system_reserved == {"cpu": "3", "pid": "9"}
    assert named.kube_reserved == {"memory": "1"}
    assert named.reserved_system_cpus == "0,2-3"


@pytest.mark.parametrize(
    ("entry", "valid"),
    [
        ("reg.io/app", True),
        ("reg.io/*", True),
        ("a/*", True),
        ("/*", False),
        ("*", False),
        ("a*", False),
        ("a*/*", False),
        ("*/*", False),
        (" a/*", False),
        ("reg.io/app:1", False),
        ("Reg.io/App", False),
        ("", False),
    ],
)
def test_entries_of_the_list_of_preloaded_images_BACK_210(entry: str, valid: bool) -> None:
    assert is_allowlist_entry(entry) is valid


@pytest.mark.parametrize(
    ("policy", "pulled", "preloaded"),
    [
        ("NeverVerify", False, False),
        ("NeverVerifyPreloadedImages", True, False),
        ("AlwaysVerify", True, True),
    ],
)
def test_which_images_are_verified_BACK_210(policy: str, pulled: bool, preloaded: bool) -> None:
    verification = VerificationPolicy(policy, ("reg.io/*",))
    assert verification.verifies("reg.io/a:1", pulled_by_kubelet=True) is pulled
    assert verification.verifies("reg.io/a:1", pulled_by_kubelet=False) is preloaded


@pytest.mark.parametrize(
    ("image", "listed"),
    [
        ("reg.io/a:1", True),
        ("reg.io/b/c", True),
        ("x.io/y:2", True),
        ("x.io/yz", False),
        ("reg", False),
    ],
)
def test_listed_images_are_not_verified_BACK_210(image: str, listed: bool) -> None:
    verification = VerificationPolicy("NeverVerifyAllowlistedImages", ("reg.io/*", "x.io/y"))
    for pulled in (True, False):
        assert verification.verifies(image, pulled_by_kubelet=pulled) is not listed
