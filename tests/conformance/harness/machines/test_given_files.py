"""The files of a given machine say what the fake node is, in the form of the kernel's own files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from fakecri import HugePages, uniform_topology
from kubelet_conformance.harness.machines.given import proc_files, statfs_struct, sys_files
from kubeobjects.machine import FilesystemStats
from refkubelet.host.topology import read_topology

GIB = 1 << 30
TWO_SOCKETS = uniform_topology(
    sockets=2,
    cores=2,
    threads=2,
    memory_bytes=8 * GIB,
    hugepages=(HugePages(2 << 20, 512), HugePages(GIB, 1)),
)


def _fields(text: str) -> dict[str, str]:
    return {name: rest.strip() for name, _, rest in (x.partition(":") for x in text.splitlines())}


def test_meminfo_says_what_is_there_and_what_is_free() -> None:
    found = _fields(proc_files.meminfo(8 * GIB, 3 * GIB, GIB, TWO_SOCKETS))
    assert found["MemTotal"] == f"{8 * GIB // 1024} kB"
    assert found["MemAvailable"] == f"{5 * GIB // 1024} kB"
    assert found["SwapTotal"] == f"{GIB // 1024} kB"
    assert (found["HugePages_Total"], found["Hugetlb"]) == ("1024", f"{2 << 20} kB")


def test_more_memory_used_than_there_is_leaves_none() -> None:
    assert _fields(proc_files.meminfo(GIB, 2 * GIB, 0, TWO_SOCKETS))["MemFree"] == "0 kB"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("meminfo", proc_files.meminfo(8 * GIB, GIB, 0, TWO_SOCKETS)),
        ("stat", proc_files.stat(TWO_SOCKETS, 1_700_000_000)),
        ("loadavg", proc_files.loadavg(123)),
        ("swaps", proc_files.swaps(0)),
    ],
)
def test_every_line_has_the_form_of_the_kernel_s(file: str, text: str) -> None:
    """Its lines as shapes, numbers as `9`, are among those of this machine's file."""
    real = Path("/proc", file).read_text()
    shapes = {_shape(line) for line in real.splitlines()}
    assert {_shape(line) for line in text.splitlines()} - shapes == set()


def _shape(line: str) -> str:
    line = re.sub(r"^(intr|softirq)( \d+)+", r"\1", line)
    return re.sub(r"\d+", "9", re.sub(r" +", " ", line))


def test_cpuinfo_has_a_paragraph_of_every_cpu_with_its_core_and_socket() -> None:
    text = proc_files.cpuinfo(TWO_SOCKETS)
    found = [_fields(paragraph.replace("\t", "")) for paragraph in text.strip().split("\n\n")]
    assert [int(p["processor"]) for p in found] == list(range(8))
    assert {(p["physical id"], p["core id"]) for p in found} == {
        (socket, core) for socket in "01" for core in "01"
    }
    assert {(p["siblings"], p["cpu cores"]) for p in found} == {("4", "2")}
    real = _fields(Path("/proc/cpuinfo").read_text().split("\n\n")[0].replace("\t", ""))
    assert set(found[0]) - set(real) <= {"cpu MHz", "cache size"}


def test_a_process_is_in_the_root_of_every_tree() -> None:
    assert proc_files.own_cgroup(2, [""]) == "0::/\n"
    assert proc_files.own_cgroup(1, ["cpu", "systemd"]) == "2:name=systemd:/\n1:cpu:/\n"


def test_the_directories_below_sys_are_read_as_the_topology_they_were_made_of(
    tmp_path: Path,
) -> None:
    below = tmp_path / "sys/devices/system"
    _write(below / "cpu", sys_files.cpu_directory(TWO_SOCKETS))
    _write(below / "node", sys_files.node_directory(TWO_SOCKETS))
    found = read_topology(below, 8 * GIB)
    assert [(c.cpu, c.core, c.socket, c.node) for c in found.cpus] == [
        (c.cpu, c.core, c.socket, c.node) for c in sorted(TWO_SOCKETS.cpus, key=lambda cpu: cpu.cpu)
    ]
    assert [(n.id, n.memory_bytes, n.distances) for n in found.nodes] == [
        (n.id, n.memory_bytes, n.distances) for n in TWO_SOCKETS.nodes
    ]
    pages = {(p.page_bytes, p.pages) for p in found.nodes[1].hugepages}
    assert pages == {(2 << 20, 512), (GIB, 1)}


def _write(directory: Path, tree: sys_files.Tree) -> None:
    for name, content in tree.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content)
        else:
            path.symlink_to(content.target)


def test_files_of_a_cpu_have_names_that_this_machine_s_have() -> None:
    real = Path("/sys/devices/system/cpu/cpu0")
    if not (real / "cache/index3/id").exists():
        pytest.skip("this machine's CPUs show no last-level cache")
    names = {name for name in sys_files.cpu_directory(TWO_SOCKETS) if name.startswith("cpu0/")}
    assert [name for name in names if not (real.parent / name).exists()] == []


def test_cpus_share_a_cache_with_their_node_or_with_the_cpus_of_its_part() -> None:
    whole = sys_files.cpu_directory(uniform_topology(sockets=2, cores=2))
    assert whole["cpu2/cache/index3/shared_cpu_list"] == "2-3\n"
    parts = sys_files.cpu_directory(uniform_topology(cores=4, caches_per_node=2))
    assert parts["cpu3/cache/index3/shared_cpu_list"] == "2-3\n"
    assert parts["cpu0/cache/index3/id"] != parts["cpu3/cache/index3/id"]


def test_statfs_has_the_exact_sizes_in_the_kernel_s_structure() -> None:
    import struct

    odd = FilesystemStats("disk", 100 * GIB, 7 * GIB + 1, 1000, 10, 0)
    magic, block, blocks, free, available, inodes, left = struct.unpack(
        "=qqQQQQQ", statfs_struct.of_disk(odd)[:56]
    )
    assert (blocks * block, free * block, available * block) == (100 * GIB, 7 * GIB + 1, free)
    assert (magic, inodes, left) == (statfs_struct.EXT4, 1000, 10)
    assert len(statfs_struct.of_disk(odd)) == 120


def test_a_disk_of_whole_blocks_says_blocks_of_4096_bytes_as_this_machine_s_does() -> None:
    even = FilesystemStats("disk", 100 * GIB, 7 * GIB, 1000, 10, 0)
    block = int.from_bytes(statfs_struct.of_disk(even)[8:16], "little")
    assert block == 4096 == os.statvfs("/proc").f_bsize
