"""Memory, CPU and processes of cgroups, read from the fake kernel's files and from plain ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from fakecri import FakeNode
from fakecri.cgroupfs import CgroupFS
from refkubelet.stats.cgroup_files import count_processes, cpu_usage_ns, memory_dir, read_memory
from refkubelet.stats.usage import CgroupMemory

MI = 1 << 20
V1 = {
    "memory.usage_in_bytes": "5000\n",
    "memory.limit_in_bytes": "9000\n",
    "memory.stat": "rss 1\ninactive_file 2\ntotal_inactive_file 1200\ntotal_rss 30\n"
    "pgfault 4\npgmajfault 5\ntotal_pgfault 40\ntotal_pgmajfault 50\n",
}
V2 = {
    "memory.current": "5000\n",
    "memory.max": "max\n",
    "memory.stat": "anon 30\ninactive_file 1200\npgfault 4\npgmajfault 5\n",
}


def group(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def test_memory_of_v1_EVIC_026_SRV_033(tmp_path: Path) -> None:
    found = read_memory(group(tmp_path, V1), 1)
    assert found == CgroupMemory(
        usage_bytes=5000,
        working_set_bytes=3800,
        limit_bytes=9000,
        rss_bytes=30,
        page_faults=4,
        major_page_faults=5,
    )
    assert found.available_bytes == 5200


def test_memory_of_v2_without_limit_EVIC_026_EVIC_027(tmp_path: Path) -> None:
    found = read_memory(group(tmp_path, V2), 2)
    assert found == CgroupMemory(
        usage_bytes=5000,
        working_set_bytes=3800,
        limit_bytes=None,
        rss_bytes=30,
        page_faults=4,
        major_page_faults=5,
    )
    assert found.available_bytes is None


@pytest.mark.parametrize(("limit", "wanted"), [(1 << 62, 1 << 62), ((1 << 62) + 1, None)])
def test_a_huge_limit_is_none_EVIC_027(tmp_path: Path, limit: int, wanted: int | None) -> None:
    found = read_memory(group(tmp_path, V1 | {"memory.limit_in_bytes": f"{limit}\n"}), 1)
    assert found is not None
    assert found.limit_bytes == wanted


def test_a_working_set_is_never_negative_EVIC_026(tmp_path: Path) -> None:
    found = read_memory(group(tmp_path, V2 | {"memory.current": "100\n"}), 2)
    assert found is not None
    assert found.working_set_bytes == 0


def test_a_group_that_is_gone_has_no_memory_EVIC_029(tmp_path: Path) -> None:
    assert read_memory(tmp_path / "gone", 1) is None
    assert read_memory(group(tmp_path, V2 | {"memory.current": "what\n"}), 2) is None


@pytest.mark.parametrize("version", [1, 2])
def test_the_fake_kernel_s_groups_EVIC_021_EVIC_029(version: Literal[1, 2]) -> None:
    node = FakeNode()
    node.cgroups = CgroupFS(version, controllers=["memory"])
    top = node.cgroup_root() / "memory" if version == 1 else node.cgroup_root()
    for directory in (top, top / "kubepods"):
        if version == 2:
            (directory / "cgroup.subtree_control").write_text("+memory")
        if directory is top:
            (top / "kubepods").mkdir()
    for name in ("cri-containerd-abc.scope", "def"):
        (top / "kubepods" / name).mkdir()
    pods = memory_dir(node, "/kubepods")
    limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
    (pods / limit).write_text(str(64 * MI))
    for name, count in (("cri-containerd-abc.scope", 2), ("def", 1)):
        for _ in range(count):
            process = node.cgroups.spawn(f"/kubepods/{name}")
            process.set_usage(memory_bytes=MI)
    found = read_memory(pods, version)
    assert found is not None
    assert (found.usage_bytes, found.limit_bytes) == (3 * MI, 64 * MI)
    assert count_processes(pods, ("abc", "def")) == 3
    assert count_processes(pods, ("abc",)) == 2
    assert count_processes(pods, ()) == 0
    assert count_processes(pods / "gone", ("abc",)) == 0


def test_cpu_time_of_both_versions_EVIC_029(tmp_path: Path) -> None:
    class Machine(FakeNode):
        def cgroup_root(self) -> Any:
            return tmp_path

    one = tmp_path / "cpuacct" / "kubepods"
    one.mkdir(parents=True)
    (one / "cpuacct.usage").write_text("7000\n")
    assert cpu_usage_ns(Machine(cgroups_version=1), "/kubepods") == 7000
    assert cpu_usage_ns(Machine(cgroups_version=1), "/gone") is None
    (tmp_path / "cpu.stat").write_text("usage_usec 7\nuser_usec 3\n")
    assert cpu_usage_ns(Machine(cgroups_version=2), "") == 7000
    (tmp_path / "cpu.stat").write_text("user_usec 3\n")
    assert cpu_usage_ns(Machine(cgroups_version=2), "/") is None
