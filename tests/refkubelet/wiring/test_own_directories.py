"""The directories that a kubelet has to itself; what it says of those that it cannot have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from refkubelet.config import ConfigError, KubeletConfiguration, load_config
from refkubelet.host.places import ROOT_DIR, container_logs_dir, default_pod_logs_dir
from refkubelet.wiring.own_directories import own_directories, shared_cgroups

ELSEWHERE = Path("/tmp/k")
LOGS = Path("/var/log/pods")
LINKS = Path("/var/log/containers")


@pytest.mark.parametrize(
    ("root", "logs", "links"),
    [
        (ROOT_DIR, LOGS, LINKS),
        (ROOT_DIR, Path("/disk/logs"), LINKS),  # as upstream has it
        (ELSEWHERE, ELSEWHERE / "logs/pods", ELSEWHERE / "logs/containers"),
        (ELSEWHERE, Path("/disk/logs"), ELSEWHERE / "logs/containers"),
        (ELSEWHERE, LOGS, LINKS),  # it was told so
    ],
)
def test_links_to_logs_are_the_machines_for_its_own_kubelet_LIFE_136_GC_011(
    root: Path, logs: Path, links: Path
) -> None:
    assert container_logs_dir(root, logs) == links


def test_pod_logs_are_below_the_root_directory_unless_a_place_is_named_NODE_200(
    tmp_path: Path,
) -> None:
    own = default_pod_logs_dir(ELSEWHERE)
    kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file, drop_in = tmp_path / "kubelet.yaml", tmp_path / "d" / "1.conf"
    drop_in.parent.mkdir()
    assert load_config(pod_logs_dir=own).pod_logs_dir == "/tmp/k/logs/pods"
    file.write_text(kind)
    assert load_config(file, pod_logs_dir=own).pod_logs_dir == "/tmp/k/logs/pods"
    assert load_config(file).pod_logs_dir == "/var/log/pods"
    drop_in.write_text(f"{kind}podLogsDir: /var/log/pods\n")
    merged = load_config(file, drop_ins=drop_in.parent, pod_logs_dir=own)
    assert merged.pod_logs_dir == "/var/log/pods"
    file.write_text(f"{kind}podLogsDir: /var/log/pods\n")
    assert load_config(file, pod_logs_dir=own).pod_logs_dir == "/var/log/pods"


def test_they_are_made(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "pods"
    made = own_directories(str(tmp_path), KubeletConfiguration(pod_logs_dir=str(logs)))
    assert made == (tmp_path, tmp_path / "logs" / "containers")
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == [
        "logs",
        "logs/containers",
        "logs/pods",
        "pods",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="wants an ordinary user: root writes anywhere")
@pytest.mark.parametrize(
    ("closed", "told"),
    [
        ("root", "--root-dir {}: cannot be used: perm"),
        ("logs", "podLogsDir {}: cannot be used: perm"),
    ],
)
def test_a_directory_of_another_kubelet_is_one_sentence(
    tmp_path: Path, closed: str, told: str
) -> None:
    (tmp_path / "root" / "pods").mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / closed).chmod(0o555)
    config = KubeletConfiguration(pod_logs_dir=str(tmp_path / "logs"))
    with pytest.raises(ConfigError) as refused:
        own_directories(str(tmp_path / "root"), config)
    assert str(refused.value).startswith(told.format(tmp_path / closed))


def test_a_place_that_is_no_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = KubeletConfiguration(pod_logs_dir=str(tmp_path / "file" / "logs"))
    with pytest.raises(ConfigError, match=r"podLogsDir .*/file/logs: cannot be used: not a dir"):
        own_directories(str(tmp_path / "root"), config)
    with pytest.raises(ConfigError, match=r"--root-dir .*/file/x: cannot be used: not a directory"):
        own_directories(str(tmp_path / "file" / "x"), config)


def test_without_a_place_for_links_there_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "containers").touch()
    config = KubeletConfiguration(pod_logs_dir=str(tmp_path / "logs" / "pods"))
    assert own_directories(str(tmp_path), config) == (tmp_path, None)
    assert caplog.messages == [
        f"{tmp_path}/logs/containers: cannot be used: file exists; there are no links to logs"
    ]


@pytest.mark.parametrize(
    ("root", "fields", "warns"),
    [
        (ELSEWHERE, {}, True),
        (ELSEWHERE, {"cgroup_root": "/mine"}, False),
        (ELSEWHERE, {"cgroup_root": "/"}, False),
        (ELSEWHERE, {"cgroups_per_qos": False}, False),
        (ROOT_DIR, {}, False),
    ],
)
def test_cgroups_shared_with_another_kubelet_are_told_CG_043(
    root: Path, fields: dict[str, object], warns: bool
) -> None:
    told = shared_cgroups(root, KubeletConfiguration(**fields))  # type: ignore[arg-type]
    assert bool(told) is warns
