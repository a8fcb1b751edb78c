"""Flags of configuration fields: how their texts are read, and that they win (CFG-001, CFG-010)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from kubeobjects.strict.reader import type_of
from refkubelet.cli import _parser
from refkubelet.command_flags import (
    IGNORED,
    NOT_DEPRECATED,
    REFUSED,
    SWITCHES,
    VALUES,
    with_hyphens,
)
from refkubelet.config import ConfigError, Given, KubeletConfiguration, load_config
from refkubelet.config.flags import with_flags
from refkubelet.config.schema.kubelet_config import MemoryReservation, Taint
from refkubelet.daemon import configuration

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
FIELDS = {**SWITCHES, **VALUES}


def read(*words: str) -> KubeletConfiguration:
    """`--flag=value` texts over an otherwise empty configuration."""
    given = []
    for word in words:
        flag, _, text = word.removeprefix("--").partition("=")
        given.append(Given(flag, FIELDS[flag], text))
    config, problems = with_flags(KubeletConfiguration(), given)
    assert problems == []
    return config


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--max-pods=7"], "max_pods", 7),
        (["--max-pods=0x10"], "max_pods", 16),
        (["--max-pods=7", "--max-pods=8"], "max_pods", 8),
        (["--max-pods=0"], "max_pods", 0),  # no default: the file's zero would be one
        (["--max-pods=2147483647"], "max_pods", 2**31 - 1),
        (["--oom-score-adj=-2147483648"], "oom_score_adj", -(2**31)),
        (["--pod-max-pids=99"], "pod_pids_limit", 99),
        (["--pod-max-pids=9223372036854775807"], "pod_pids_limit", 2**63 - 1),
        (
            ["--register-with-taints=a=b:c:NoSchedule"],
            "register_with_taints",
            (Taint(key="a", value="b:c", effect="NoSchedule"),),
        ),
        (["--sync-frequency=1m30s"], "sync_frequency_s", 90),
        (["--fail-swap-on=f"], "fail_swap_on", False),
        (["--fail-cgroupv1=T"], "fail_cgroup_v1", True),
        (["--container-log-max-size=2Mi"], "container_log_max_size_bytes", 2**21),
        (["--cluster-dns=10.0.0.1,10.0.0.2"], "cluster_dns", ("10.0.0.1", "10.0.0.2")),
        (["--cluster-dns=10.0.0.1", "--cluster-dns=::1"], "cluster_dns", ("10.0.0.1", "::1")),
        (["--cluster-dns="], "cluster_dns", ()),
        (["--system-reserved=cpu=1, memory=2Gi"], "system_reserved", {"cpu": "1", "memory": "2Gi"}),
        (
            ["--kube-reserved=cpu=1", "--kube-reserved=pid=2"],
            "kube_reserved",
            {"cpu": "1", "pid": "2"},
        ),
        (["--eviction-hard=memory.available<1Gi"], "eviction_hard", {"memory.available": "1Gi"}),
        (["--eviction-hard="], "eviction_hard", {}),
        (["--eviction-minimum-reclaim=a=1"], "eviction_minimum_reclaim", {"a": "1"}),
        (["--feature-gates=A=true,B=0"], "feature_gates", {"A": True, "B": False}),
        (["--cpu-manager-policy-options=a=1,2"], "cpu_manager_policy_options", {"a": "1,2"}),
        (
            ["--topology-manager-policy-options=a=1,b=2"],
            "topology_manager_policy_options",
            {"a": "1", "b": "2"},
        ),
        (
            ["--manifest-url-header=A:x,A:y,B:z:1"],
            "static_pod_url_header",
            {"A": ("x", "y"), "B": ("z:1",)},
        ),
        (
            ["--register-with-taints=a=b:NoSchedule,c:NoExecute"],
            "register_with_taints",
            (Taint(key="a", value="b", effect="NoSchedule"), Taint(key="c", effect="NoExecute")),
        ),
        (
            ["--register-with-taints=a:NoExecute", "--register-with-taints="],
            "register_with_taints",
            (),
        ),
        (["--resolv-conf="], "resolv_conf", ""),
    ],
)
def test_a_flag_is_read_as_its_field_wants_it_CFG_010(
    words: list[str], field: str, value: Any
) -> None:
    assert getattr(read(*words), field) == value


def test_reserved_memory_has_a_node_for_each_part() -> None:
    found = read("--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi").reserved_memory
    assert [(r.numa_node, dict(r.limits)) for r in found] == [
        (0, {"memory": "1Gi", "hugepages-2Mi": "4Mi"}),
        (1, {"memory": "2Gi"}),
    ]
    assert isinstance(found[0], MemoryReservation)


def test_a_flag_of_a_nested_field_leaves_its_neighbours() -> None:
    found = read("--anonymous-auth=true", "--authentication-token-webhook-cache-ttl=5s")
    assert found.authentication.anonymous.enabled
    assert found.authentication.webhook.cache_ttl_s == 5
    assert found.authentication.webhook.enabled


@pytest.mark.parametrize(
    ("flag", "text", "what"),
    [
        ("max-pods", "many", "wanted an integer of 32 bits"),
        ("max-pods", "2147483648", "wanted an integer of 32 bits"),
        ("oom-score-adj", "-2147483649", "wanted an integer of 32 bits"),
        ("pod-max-pids", "9223372036854775808", "wanted an integer"),
        ("register-with-taints", ":NoSchedule", "taint ':NoSchedule': wanted key=value:effect"),
        (
            "register-with-taints",
            "a:",
            "taint 'a:': wanted key=value:effect, effect one of NoSchedule, PreferNoSchedule, "
            "NoExecute",
        ),
        ("reserved-memory", "0", "'0': wanted numaNodeID:type=quantity"),
        (
            "reserved-memory",
            "٣:memory=1",
            "'٣:memory=1': wanted numaNodeID:type=quantity[,type=quantity...], such as "
            "0:memory=1Gi",
        ),
        ("reserved-memory", "0:a=b:c;1", "'1': wanted numaNodeID"),
        ("fail-swap-on", "maybe", "wanted true or false"),
        ("sync-frequency", "10", "wanted a duration such as 10s or 1m30s"),
        ("container-log-max-size", "big", "wanted a quantity such as 10Mi"),
        ("system-reserved", "cpu", "malformed pair 'cpu', wanted string=string"),
        ("eviction-hard", "a=1", "malformed pair 'a=1', wanted string<string"),
        ("feature-gates", "A=yes", "A=yes: wanted true or false"),
        ("register-with-taints", "a=b:Never", "taint 'a=b:Never': wanted key=value:effect"),
        ("register-with-taints", "a=b", "taint 'a=b': wanted key=value:effect"),
        ("reserved-memory", "x:memory=1", "'x:memory=1': wanted numaNodeID:type=quantity"),
        ("manifest-url-header", "A", "malformed pair 'A', wanted string:string"),
    ],
)
def test_a_text_that_the_field_does_not_take(flag: str, text: str, what: str) -> None:
    before = KubeletConfiguration()
    after, (problem,) = with_flags(before, [Given(flag, FIELDS[flag], text)])
    assert problem.startswith(f"--{flag} {text}: {what}")
    assert after == before


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("--max_pods", "--max-pods"),
        ("--max_pods=a_b=c_d", "--max-pods=a_b=c_d"),
        ("--node-labels=a_b=c", "--node-labels=a_b=c"),
        ("a_b=c", "a_b=c"),
        ("-a_b", "-a_b"),
    ],
)
def test_names_of_flags_may_have_underscores_CFG_010(word: str, wanted: str) -> None:
    assert with_hyphens(["run", word]) == ["run", wanted]


def test_every_flag_has_a_field_that_it_can_set() -> None:
    for flag, field in FIELDS.items():
        schema: Any = type_of(KubeletConfiguration)
        for name in field.split("."):
            schema = next(f.type for f in schema.fields if f.encode_name == name)
        is_switch = isinstance(schema, inspect.BoolType)
        assert (flag in SWITCHES) == is_switch, flag
    assert not set(FIELDS) & (set(REFUSED) | set(IGNORED))
    assert set(FIELDS) >= NOT_DEPRECATED


def run(*words: str) -> KubeletConfiguration:
    return configuration(_parser().parse_args(["run", *words]))


def test_flags_win_over_drop_ins_and_drop_ins_over_the_file_CFG_001(tmp_path: Path) -> None:
    file, drop_ins = tmp_path / "kubelet.yaml", tmp_path / "d"
    drop_ins.mkdir()
    file.write_text(HEAD + "maxPods: 1\nport: 1\npodsPerCore: 1\n")
    (drop_ins / "a.conf").write_text(HEAD + "maxPods: 2\nport: 2\n")
    c = run("--config", str(file), "--config-dir", str(drop_ins), "--max-pods", "3")
    assert (c.max_pods, c.port, c.pods_per_core) == (3, 2, 1)


def test_gates_of_files_and_flags_merge_and_the_flag_wins_CFG_001(tmp_path: Path) -> None:
    file, drop_ins = tmp_path / "kubelet.yaml", tmp_path / "d"
    drop_ins.mkdir()
    file.write_text(HEAD + "featureGates: {EventedPLEG: false, MemoryQoS: true}\n")
    (drop_ins / "a.conf").write_text(HEAD + "featureGates: {PodLevelResources: false}\n")
    words = ["--config", str(file), "--config-dir", str(drop_ins)]
    c = run(*words, "--feature-gates=EventedPLEG=true")
    wanted = {"EventedPLEG": True, "MemoryQoS": True, "PodLevelResources": False}
    assert dict(c.feature_gates) == wanted


def test_other_mappings_of_flags_replace_those_of_the_file_CFG_001(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + "systemReserved: {memory: 1Gi}\n")
    c = run("--config", str(file), "--system-reserved", "pid=5")
    assert dict(c.system_reserved) == {"pid": "5"}


def test_what_flags_make_invalid_is_refused_CFG_005() -> None:
    with pytest.raises(ConfigError, match=r"port .--port. 0 must be between 1 and 65535"):
        run("--port=0")


def test_all_flags_that_are_wrong_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        run("--port=x", "--max-pods=y")
    assert str(caught.value).splitlines() == [
        "--port x: wanted an integer of 32 bits",
        "--max-pods y: wanted an integer of 32 bits",
    ]


def test_the_flag_of_the_runtime_leaves_the_files_image_service_CRI_001(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD + "imageServiceEndpoint: unix:///images.sock\n")
    c = load_config(file, flags=[Given("", VALUES["container-runtime-endpoint"], "unix:///a.sock")])
    assert (c.container_runtime_endpoint, c.image_service_endpoint) == (
        "unix:///a.sock",
        "unix:///images.sock",
    )


@pytest.mark.parametrize(("words", "on"), [([], False), (["--seccomp-default"], True)])
def test_seccomp_default_is_a_flag_beside_the_file_CFG_010(words: list[str], on: bool) -> None:
    assert run(*words).seccomp_default is on


@pytest.mark.parametrize("flag", sorted(REFUSED))
def test_a_flag_whose_effect_is_missing_is_refused_by_name_CFG_010(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["run", f"--{flag}=x"])
    assert f"--{flag} is not supported: {REFUSED[flag]}" in capsys.readouterr().err.replace(
        "\n", " "
    )
    assert _parser().parse_args(["run", f"--{flag}="]).ignored == []
