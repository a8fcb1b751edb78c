"""KubeletConfiguration files: what is accepted, and how mistakes are told (CFG-002, CFG-005)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

import refkubelet
from refkubelet.config import ConfigError, KubeletConfiguration, load_config, parse_config
from refkubelet.config.load import defaults_without_file
from refkubelet.config.not_acted_on import NOT_ACTED_ON
from refkubelet.config.schema.image_policies import VerificationPolicy
from refkubelet.kuberuntime.decisions.backoff import BackoffLimits
from refkubelet.kuberuntime.options_from_config import restart_delays, verification_policy

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def config(text: str, file: str = "/etc/kubelet/config.yaml") -> KubeletConfiguration:
    return parse_config((HEAD + text).encode(), file)


def complaints(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(text, "k.yaml")
    return str(caught.value).splitlines()


def test_an_almost_empty_file_gives_the_defaults_CFG_005() -> None:
    c = config("")
    assert (c.port, c.read_only_port, c.healthz_port, c.healthz_bind_address) == (
        10250,
        0,
        10248,
        "127.0.0.1",
    )
    assert (c.sync_frequency_s, c.file_check_frequency_s) == (60, 20)
    assert c.crash_loop_back_off.max_container_restart_period_s == 300
    assert c.pod_logs_dir == "/var/log/pods"
    assert c.enforce_node_allocatable == ("pods",)


def test_a_real_file_is_read_as_it_is(tmp_path: Path) -> None:
    """The configuration of the recorded runs, fields refkubelet does not act on included."""
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        HEAD
        + """
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
staticPodPath: manifests
fileCheckFrequency: 2s
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /
enforceNodeAllocatable: [pods]
oomScoreAdj: 0
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
resolvConf: ""
clusterDNS: [10.98.0.10]
crashLoopBackOff: {maxContainerRestartPeriod: 5s}
containerLogMaxSize: 1Mi
logging: {verbosity: 4}
""",
    )
    c = load_config(file)
    assert c.static_pod_path == str(tmp_path / "manifests")
    assert c.file_check_frequency_s == 2
    assert c.crash_loop_back_off.max_container_restart_period_s == 5
    assert c.resolv_conf == ""
    assert c.container_log_max_size_bytes == 2**20
    assert dict(c.eviction_hard or {}) == {
        "memory.available": "100Mi",
        "nodefs.available": "1%",
        "imagefs.available": "1%",
    }


def test_relative_paths_resolve_against_the_file_CFG_002() -> None:
    c = config(
        "staticPodPath: m\npodLogsDir: logs\ntlsCertFile: c.pem\ntlsPrivateKeyFile: /k.pem\n"
    )
    assert (c.static_pod_path, c.pod_logs_dir) == ("/etc/kubelet/m", "/etc/kubelet/logs")
    assert (c.tls_cert_file, c.tls_private_key_file) == ("/etc/kubelet/c.pem", "/k.pem")


def test_eviction_defaults_only_when_the_file_says_nothing_EVIC_006() -> None:
    assert (config("").eviction_hard or {})["imagefs.inodesFree"] == "5%"
    assert dict(config("evictionHard: {memory.available: 1Gi}").eviction_hard or {}) == {
        "memory.available": "1Gi"
    }
    merged = config("mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi}")
    assert (merged.eviction_hard or {})["nodefs.available"] == "10%"
    assert (merged.eviction_hard or {})["memory.available"] == "1Gi"


def test_report_frequency_follows_the_update_frequency_CFG_005() -> None:
    assert config("nodeStatusUpdateFrequency: 4s").node_status_report_frequency_s == 4
    assert config("").node_status_report_frequency_s == 300


def test_without_a_file_the_old_open_defaults_hold_CFG_004() -> None:
    """CFG-004.1."""
    c = defaults_without_file()
    assert (c.read_only_port, dict(c.eviction_hard or {})) == (10255, {})
    assert (c.authorization.mode, c.authentication.anonymous.enabled) == ("AlwaysAllow", True)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


def test_an_unknown_field_is_overlooked_with_its_line_and_a_guess_CFG_002(
    caplog: pytest.LogCaptureFixture,
) -> None:
    c = config(
        "port: 1\nfileChekFrequency: 3s\nmetadata: {name: [x]}\n"
        "authentication:\n  anonymous: {enable: 7, enabled: true}\n",
        "k.yaml",
    )
    assert (c.port, c.file_check_frequency_s, c.authentication.anonymous.enabled) == (1, 20, True)
    assert warnings(caplog) == [
        "k.yaml:4: fileChekFrequency: unknown field, without effect; "
        "did you mean fileCheckFrequency?",
        "k.yaml:5: metadata: unknown field, without effect",
        "k.yaml:7: authentication.anonymous.enable: unknown field, without effect; "
        "did you mean enabled?",
    ]


def test_a_field_in_wrong_case_is_unknown_too_CFG_002(caplog: pytest.LogCaptureFixture) -> None:
    assert config("staticPodURl: x\n", "k.yaml").static_pod_url == ""
    assert warnings(caplog) == [
        "k.yaml:3: staticPodURl: unknown field, without effect; did you mean staticPodURL?"
    ]


def test_all_mistakes_of_a_file_are_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    assert complaints(
        "port: ten\nsyncFrequency: 10\ncrashLoopBackOff:\n  maxContainerRestartPeriod: 5 s\n"
        "evictionHard: {memory.available: 100}\nfailSwapOn: 'no'\nclusterDNS: 10.0.0.1\n"
        "registerWithTaints: [{key: a, valu: b}]\ncontainerLogMaxSize: 5MB\n"
    ) == [
        "k.yaml:3: port: wanted an integer of 32 bits, got the text 'ten'",
        "k.yaml:4: syncFrequency: wanted a duration such as 10s or 1m30s, got the number 10",
        "k.yaml:6: crashLoopBackOff.maxContainerRestartPeriod: "
        "wanted a duration such as 10s or 1m30s, got the text '5 s'",
        "k.yaml:7: evictionHard.memory.available: wanted a text, got the number 100; "
        'put it in quotes: "100"',
        "k.yaml:8: failSwapOn: wanted true or false, got the text 'no'",
        "k.yaml:9: clusterDNS: wanted a list of texts, got the text '10.0.0.1'",
        "k.yaml:11: containerLogMaxSize: wanted a quantity such as 10Mi, got the text '5MB'",
    ]
    assert warnings(caplog) == [
        "k.yaml:10: registerWithTaints[0].valu: unknown field, without effect; did you mean value?"
    ]


def test_a_duplicate_key_is_an_error() -> None:
    assert complaints("port: 1\nport: 2\n") == [
        "k.yaml:4: not readable as YAML or JSON: duplicate key 'port', first on line 3"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "k.yaml: the file is empty; wanted a KubeletConfiguration (apiVersion, kind, ...)"),
        ("[]", "k.yaml: wanted a KubeletConfiguration, got a list"),
        (
            "apiVersion: v1\nkind: KubeletConfiguration\n",
            "k.yaml:1: apiVersion: wanted kubelet.config.k8s.io/v1beta1, got the text 'v1'",
        ),
        (
            HEAD + "---\na: 1\n",
            "k.yaml: holds more than one document; wanted one KubeletConfiguration",
        ),
    ],
)
def test_what_is_no_kubelet_configuration_is_refused_CFG_002(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), "k.yaml")
    assert str(caught.value) == problem


def test_a_missing_file_is_one_line() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("/nowhere/kubelet.yaml")
    assert str(caught.value) == (
        "cannot read the configuration file /nowhere/kubelet.yaml: no such file or directory"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port: 70000", "port (--port) 70000 must be between 1 and 65535, inclusive"),
        (
            "healthzPort: -1",
            "healthzPort (--healthz-port) -1 must be between 1 and 65535, inclusive",
        ),
        (
            "readOnlyPort: 65536",
            "readOnlyPort (--read-only-port) 65536 must be between 0 and 65535, inclusive",
        ),
        ("nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds must be greater than 0"),
        (
            "nodeStatusMaxImages: -2",
            "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater",
        ),
        ("eventBurst: -1", "eventBurst (--event-burst) -1 must not be a negative number"),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 0s}",
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: 0 seconds) "
            "must be set between 1s and 300s",
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 301s}",
            "CrashLoopBackOff.MaxContainerRestartPeriod (got: 301 seconds) "
            "must be set between 1s and 300s",
        ),
        (
            "shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s",
            "shutdownGracePeriodCriticalPods 20s must be <= shutdownGracePeriod 10s",
        ),
        (
            "enableSystemLogQuery: true\nenableSystemLogHandler: false",
            "enableSystemLogHandler is required for enableSystemLogQuery",
        ),
        (
            "imageGCHighThresholdPercent: 80",
            "imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must be less than "
            "imageGCHighThresholdPercent (--image-gc-high-threshold) 80",
        ),
        ("containerLogMaxFiles: 1", "containerLogMaxFiles must be greater than 1"),
        (
            "cgroupsPerQOS: false",
            'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in '
            "enforceNodeAllocatable (--enforce-node-allocatable)",
        ),
        ("cgroupDriver: cgroup", "cgroupDriver 'cgroup' must be one of cgroupfs, systemd"),
        (
            "maxParallelImagePulls: 2\nserializeImagePulls: true",
            "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false",
        ),
        (
            "imagePullCredentialsVerificationPolicy: Sometimes",
            'option "Sometimes" specified for imagePullCredentialsVerificationPolicy. Valid '
            'options are "NeverVerify", "NeverVerifyPreloadedImages", '
            '"NeverVerifyAllowlistedImages" or "AlwaysVerify"',
        ),
        (
            "preloadedImagesVerificationAllowlist: [reg.io/app]",
            "can't set `preloadedImagesVerificationAllowlist` if "
            '`imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
        ),
        (
            "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [reg.io/app, 'reg.io/*', 'reg.io/app:1', '*']",
            "invalid image pattern in preloadedImagesVerificationAllowlist: wanted an image name "
            "without tag and digest, or a beginning of names that ends with /*: reg.io/app:1, *",
        ),
        (
            "featureGates: {KubeletEnsureSecretPulledImages: false}\n"
            "imagePullCredentialsVerificationPolicy: AlwaysVerify",
            "imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist must "
            "not be set if KubeletEnsureSecretPulledImages feature gate is not enabled",
        ),
        ("runOnce: true", "runOnce (--runonce) is not supported: it was removed, leave it false"),
        ("tlsCertFile: /x", "tlsCertFile and tlsPrivateKeyFile must be set together"),
        ("address: localhost", "address 'localhost' is not an IP address"),
        (
            "systemReserved: {cpu: 100x}",
            "systemReserved.cpu: '100x' is no quantity: wanted a number with an optional suffix, "
            "such as 100Mi, 500m, 2, 1.5G or 1e3",
        ),
    ],
)
def test_values_out_of_bounds_CFG_005_BACK_013_GC_101_GC_201(text: str, problem: str) -> None:
    assert complaints(text) == [f"k.yaml: invalid configuration: {problem}"]


def test_the_restart_period_may_be_one_to_three_hundred_seconds_BACK_013() -> None:
    for period in ("1s", "300s", "5m"):
        config(f"crashLoopBackOff: {{maxContainerRestartPeriod: {period}}}")
    assert complaints(
        "featureGates: {KubeletCrashLoopBackOffMax: false}\n"
        "crashLoopBackOff: {maxContainerRestartPeriod: 5s}"
    ) == [
        "k.yaml: invalid configuration: FeatureGate KubeletCrashLoopBackOffMax not enabled, "
        "CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
    ]


@pytest.mark.parametrize(
    ("text", "first_s", "greatest_s"),
    [
        ("", 10, 300),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 30s}", 10, 30),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 2s}", 2, 2),
        ("featureGates: {ReduceDefaultCrashLoopBackOffDecay: true}", 1, 300),
        (
            "featureGates: {ReduceDefaultCrashLoopBackOffDecay: true, "
            "KubeletCrashLoopBackOffMax: false}",
            1,
            60,
        ),
        ("featureGates: {KubeletCrashLoopBackOffMax: false}", 10, 300),
    ],
)
def test_delays_of_restarts_BACK_013_BACK_014(text: str, first_s: int, greatest_s: int) -> None:
    assert restart_delays(config(text)) == BackoffLimits.up_to(greatest_s, first_s)


@pytest.mark.parametrize(
    ("text", "serial"),
    [
        ("", True),
        ("maxParallelImagePulls: 1", True),
        ("maxParallelImagePulls: 2", False),
        ("serializeImagePulls: false", False),
    ],
)
def test_pulls_are_serial_unless_several_are_allowed_BACK_208(text: str, serial: bool) -> None:
    assert config(text).serialize_image_pulls is serial


def test_the_verification_of_images_has_a_gate_BACK_210() -> None:
    listed = (
        "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
        "preloadedImagesVerificationAllowlist: [a/b]"
    )
    assert verification_policy(config("")) == VerificationPolicy()
    assert verification_policy(config(listed)) == VerificationPolicy(
        "NeverVerifyAllowlistedImages", ("a/b",)
    )
    off = "featureGates: {KubeletEnsureSecretPulledImages: false}"
    assert verification_policy(config(off)) is None


def test_zero_means_the_default_where_the_kubelet_takes_it_so() -> None:
    c = config("port: 0\nsyncFrequency: 0s\nevictionPressureTransitionPeriod: 0s\nhealthzPort: 0")
    assert (c.port, c.sync_frequency_s, c.eviction_pressure_transition_period_s) == (10250, 60, 300)
    assert c.healthz_port == 0  # off


def test_fields_that_are_not_acted_on_are_told(caplog: pytest.LogCaptureFixture) -> None:
    config("hairpinMode: none\nenableSystemLogQuery: true\nport: 1\n", "k.yaml")
    assert caplog.messages == [
        "k.yaml: accepted, but refkubelet does not act on: enableSystemLogQuery (/logs/ answers "
        "no queries), hairpinMode (the network plug-in decides)"
    ]
    assert "port" not in NOT_ACTED_ON


def test_every_other_field_is_read_somewhere() -> None:
    """Each of the fields acts, or `NOT_ACTED_ON` says why not."""
    assert len(fields(KubeletConfiguration)) == 125
    package = Path(refkubelet.__file__).parent
    code = "\n".join(p.read_text() for p in sorted(package.rglob("*.py")))
    wires = [field.encode_name for field in fields(KubeletConfiguration)]
    assert set(NOT_ACTED_ON) <= set(wires)
    unread = [
        field.name
        for field in fields(KubeletConfiguration)
        if field.encode_name not in NOT_ACTED_ON and not re.search(rf"\.{field.name}\b", code)
    ]
    assert unread == []


def test_what_is_acted_on_is_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    config("allowedUnsafeSysctls: [net.*]\nnodeStatusMaxImages: 3\n", "k.yaml")
    assert caplog.messages == []
