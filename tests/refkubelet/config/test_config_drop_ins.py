"""--config-dir: which files are read, and what they change (CFG-001, CFG-003)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refkubelet.config import ConfigError, KubeletConfiguration, load_config

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


class Node:
    """A file, and drop-ins beside it."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "kubelet.yaml"
        self.drop_ins = directory / "kubelet.conf.d"
        self.drop_ins.mkdir()
        self.write("")

    def write(self, text: str) -> None:
        self.file.write_text(HEAD + text)

    def drop(self, name: str, text: str, head: str = HEAD) -> Path:
        path = self.drop_ins / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + text)
        return path

    def config(self) -> KubeletConfiguration:
        return load_config(self.file, drop_ins=self.drop_ins)

    def complaints(self) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.config()
        return str(caught.value).splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_drop_ins_win_over_the_file_in_the_order_of_their_names_CFG_003(node: Node) -> None:
    node.write("maxPods: 1\nport: 1001\nhealthzPort: 1002\n")
    node.drop("20-b.conf", "maxPods: 20\n")
    node.drop("10-a.conf", "maxPods: 10\nport: 2001\n")
    node.drop("15/z.conf", "maxPods: 15\npodsPerCore: 15\n")  # after 10-a.conf, before 20-b.conf
    node.drop("15/a.conf", "podsPerCore: 14\neventBurst: 14\n")
    c = node.config()
    assert (c.max_pods, c.port, c.healthz_port) == (20, 2001, 1002)
    assert (c.pods_per_core, c.event_burst) == (15, 14)


def test_only_conf_files_are_read_CFG_003(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="refkubelet")
    (node.drop_ins / "10.yaml").write_text("not: a configuration\n")
    (node.drop_ins / "20.conf~").write_text("maxPods: 7\n")
    assert node.config().max_pods == 110
    assert caplog.messages == [
        f"{node.drop_ins}/{name}: not read, since its name does not end in .conf"
        for name in ("10.yaml", "20.conf~")
    ]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        ("apiVersion: kubelet.config.k8s.io/v1beta1\n", "kind: wanted KubeletConfiguration"),
        ("kind: KubeletConfiguration\n", "apiVersion: wanted kubelet.config.k8s.io/v1beta1"),
        ("apiVersion: v1\nkind: KubeletConfiguration\n", "apiVersion: wanted kubelet.config"),
    ],
)
def test_each_needs_its_version_and_kind_CFG_003(node: Node, head: str, what: str) -> None:
    path = node.drop("a.conf", "maxPods: 5\n", head)
    (complaint,) = node.complaints()
    assert complaint.startswith(str(path))
    assert what in complaint


def test_an_empty_drop_in_is_an_error_CFG_003(node: Node) -> None:
    path = node.drop("a.conf", "", head="")
    assert node.complaints() == [
        f"{path}: the file is empty; wanted a KubeletConfiguration (apiVersion, kind, ...)"
    ]


def test_mistakes_of_all_drop_ins_are_told_by_file_and_line(node: Node) -> None:
    one = node.drop("a.conf", "maxPods: many\n")
    two = node.drop("b.conf", "port: 1\nfailSwapOn: 3\n")
    assert node.complaints() == [
        f"{one}:3: maxPods: wanted an integer of 32 bits, got the text 'many'",
        f"{two}:4: failSwapOn: wanted true or false, got the number 3",
    ]


def test_unknown_fields_of_file_and_drop_ins_are_told_once_each_CFG_003(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """What is null there says nothing, and what is beside it acts."""
    node.write("maxPod: 2\nmetadata: {a: 1}\n")
    one = node.drop("a.conf", "maxPod: {a: 1}\nmaxPods: 7\nmetadata: null\n")
    two = node.drop("b.conf", "logging: {verbose: 3}\n")
    assert node.config().max_pods == 7
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        f"{node.file}:3: maxPod: unknown field, without effect; did you mean maxPods?",
        f"{node.file}:4: metadata: unknown field, without effect",
        f"{one}:3: maxPod: unknown field, without effect; did you mean maxPods?",
        f"{two}:3: logging.verbose: unknown field, without effect; did you mean verbosity?",
    ]


def test_values_that_do_not_fit_together_name_all_files(node: Node) -> None:
    node.write("imageGCHighThresholdPercent: 50\nimageGCLowThresholdPercent: 40\n")
    path = node.drop("a.conf", "imageGCLowThresholdPercent: 60\n")
    (complaint,) = node.complaints()
    assert complaint.startswith(f"{node.file} + {path}: invalid configuration: imageGCLow")


def test_a_directory_that_is_missing(node: Node) -> None:
    node.drop_ins.rmdir()
    assert node.complaints() == [
        f"--config-dir: cannot read the directory of drop-ins {node.drop_ins}: "
        "no such file or directory"
    ]


def merged(node: Node, base: str, patch: str, field: str) -> Any:
    node.write(base)
    node.drop("a.conf", patch)
    value = getattr(node.config(), field)
    return dict(value) if hasattr(value, "items") else value


def test_mappings_merge_and_lists_replace_CFG_003(node: Node) -> None:
    base = "systemReserved: {cpu: 1, memory: 1Gi}\nclusterDNS: [10.0.0.1, 10.0.0.2]\n"
    base = base.replace("cpu: 1,", 'cpu: "1",')
    patch = "systemReserved: {memory: 2Gi, pid: '100'}\nclusterDNS: [10.0.0.3]\n"
    wanted = {"cpu": "1", "memory": "2Gi", "pid": "100"}
    assert merged(node, base, patch, "system_reserved") == wanted
    assert node.config().cluster_dns == ("10.0.0.3",)


def test_gates_of_file_and_drop_in_merge_CFG_003(node: Node) -> None:
    patch = "featureGates: {EventedPLEG: false}\n"
    base = "featureGates: {EventedPLEG: true, MemoryQoS: true}\n"
    wanted = {"EventedPLEG": False, "MemoryQoS": True}
    assert merged(node, base, patch, "feature_gates") == wanted


def test_null_gives_the_default_back_CFG_003(node: Node) -> None:
    assert merged(node, "maxPods: 5\n", "maxPods: null\n", "max_pods") == 110


def test_null_takes_one_key_of_a_mapping_CFG_003(node: Node) -> None:
    base = "kubeReserved: {memory: 1Gi, pid: '9'}\n"
    assert merged(node, base, "kubeReserved: {memory: null}\n", "kube_reserved") == {"pid": "9"}


def test_a_nested_field_leaves_its_neighbours_CFG_003(node: Node) -> None:
    node.write("authentication: {webhook: {cacheTTL: 7s}, anonymous: {enabled: true}}\n")
    node.drop("a.conf", "authentication: {anonymous: {enabled: false}}\n")
    found = node.config().authentication
    assert (found.webhook.cache_ttl_s, found.anonymous.enabled) == (7, False)


def test_the_files_thresholds_are_what_is_merged_into_CFG_004(node: Node) -> None:
    """The defaults belong to a file without evictionHard, before any drop-in."""
    found = merged(node, "", "evictionHard: {memory.available: 1Gi}\n", "eviction_hard")
    assert found["memory.available"] == "1Gi"
    assert found["nodefs.available"] == "10%"


def test_thresholds_that_a_drop_in_removes_are_gone(node: Node) -> None:
    assert merged(node, "", "evictionHard: null\n", "eviction_hard") == {}


def test_a_drop_in_changes_no_default_of_the_file_by_the_way(node: Node) -> None:
    patch = "nodeStatusUpdateFrequency: 3s\n"
    assert merged(node, "", patch, "node_status_report_frequency_s") == 300
    node.drop("a.conf", "maxParallelImagePulls: 5\n")
    (complaint,) = node.complaints()  # serializeImagePulls was true by default
    assert "maxParallelImagePulls cannot be larger than 1 unless" in complaint


def test_without_a_file_the_defaults_are_those_without_a_file_CFG_004(node: Node) -> None:
    node.drop("a.conf", "maxPods: 5\n")
    c = load_config(drop_ins=node.drop_ins)
    assert (c.max_pods, c.read_only_port, c.authorization.mode) == (5, 10255, "AlwaysAllow")
    assert dict(c.eviction_hard or {}) == {}


def test_paths_of_drop_ins_begin_at_the_working_directory(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlike those of the file, which begin where it lies (CFG-002)."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    node.write("staticPodPath: manifests\ntlsCertFile: c\ntlsPrivateKeyFile: k\n")
    node.drop("a.conf", "tlsCertFile: c2\nauthentication: {x509: {clientCAFile: ca}}\n")
    c = node.config()
    assert c.static_pod_path == str(tmp_path / "manifests")
    assert c.tls_private_key_file == str(tmp_path / "k")
    assert c.tls_cert_file == str(here / "c2")
    assert c.authentication.x509.client_ca_file == str(here / "ca")
