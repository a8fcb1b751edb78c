"""Files of the fake's groups: controllers, CPU, disks, huge pages, pressure."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest
from cgroup_files import MIB, refusal, v2

from fakecri.cgroupfs import CgroupFS, Machine


def test_subtree_control_gives_and_takes_files_CG_121() -> None:
    fs = v2("memory", "pids", "hugetlb")
    fs.path("/g/child").mkdir()
    control = fs.path("/g/cgroup.subtree_control")
    assert fs.path("/g/cgroup.controllers").read_text() == "memory hugetlb pids\n"
    assert refusal(lambda: control.write_text("+pids +cpu")) == "ENOENT"
    assert control.read_text() == ""
    control.write_text("+pids +memory -memory")
    assert (control.read_text(), fs.path("/g/child/pids.max").exists()) == ("pids\n", True)
    fs.path("/g/child/cgroup.subtree_control").write_text("+pids")
    assert refusal(lambda: control.write_text("-pids")) == "EBUSY"
    fs.path("/g/child/cgroup.subtree_control").write_text("-pids")
    control.write_text("-pids")
    assert not fs.path("/g/child/pids.max").exists()


def test_v2_cpu_files_CG_141() -> None:
    group = v2("cpu").path("/g")
    for text, reads in (
        ("50000", "50000 100000"),
        ("max 50000", "max 50000"),
        ("20000", "20000 50000"),
    ):
        (group / "cpu.max").write_text(text)
        assert (group / "cpu.max").read_text() == f"{reads}\n"
    for bad in (" ", "999", "1000 999", "5000 2000000", "x", "-1"):
        assert refusal(lambda bad=bad: (group / "cpu.max").write_text(bad)) == "EINVAL"
    (group / "cpu.weight").write_text("39")
    assert (group / "cpu.weight").read_text() == "39\n"
    for bad in ("0", "10001"):
        assert refusal(lambda bad=bad: (group / "cpu.weight").write_text(bad)) == "ERANGE"
    (group / "cpu.weight.nice").write_text("-5")
    assert (group / "cpu.weight").read_text() == "305\n"
    assert (group / "cpu.weight.nice").read_text() == "-5\n"
    group.set_usage(cpu_user_ns=3_000_000, cpu_system_ns=1_000_000)
    group.set_throttling(nr_throttled=2, throttled_ns=5000)
    stat = (group / "cpu.stat").read_text()
    assert stat.startswith("usage_usec 4000\nuser_usec 3000\nsystem_usec 1000\n")
    assert "nr_throttled 2\nthrottled_usec 5\n" in stat


def test_a_v2_child_may_exceed_its_parents_bandwidth_CG_141() -> None:
    fs = v2("cpu")
    fs.path("/g/cgroup.subtree_control").write_text("+cpu")
    fs.path("/g/child").mkdir()
    fs.path("/g/cpu.max").write_text("10000")
    fs.path("/g/child/cpu.max").write_text("90000")
    assert fs.path("/g/child/cpu.max").read_text() == "90000 100000\n"


def test_cpu_time_is_hierarchical_and_can_be_reset() -> None:
    fs = CgroupFS(1, controllers=["cpu,cpuacct"], machine=Machine(cpus=2))
    fs.path("/cpu,cpuacct/g").mkdir()
    fs.path("/cpu/g/child").mkdir()
    fs.spawn("/g/child").set_usage(cpu_user_ns=30_000_000, cpu_system_ns=20_000_000)
    assert fs.path("/cpuacct/g/cpuacct.usage").read_text() == "50000000\n"
    assert fs.path("/cpuacct/g/cpuacct.stat").read_text() == "user 3\nsystem 2\n"
    assert fs.path("/cpuacct/g/cpuacct.usage_percpu").read_text() == "50000000 0 \n"
    fs.path("/cpuacct/g/cpuacct.usage").write_text("0")
    assert fs.path("/cpuacct/g/cpuacct.usage").read_text() == "0\n"


def test_v2_cpusets_inherit_what_is_empty_CG_143() -> None:
    fs = v2("cpuset", machine=Machine(cpus=8, memory_nodes=2))
    fs.path("/g/cgroup.subtree_control").write_text("+cpuset")
    fs.path("/g/child").mkdir()
    fs.path("/g/cpuset.cpus").write_text("2-5")
    assert fs.path("/g/child/cpuset.cpus").read_text() == "\n"
    assert fs.path("/g/child/cpuset.cpus.effective").read_text() == "2-5\n"
    assert fs.path("/g/child/cpuset.mems.effective").read_text() == "0-1\n"
    fs.path("/g/child/cpuset.cpus").write_text("0-3")
    assert fs.path("/g/child/cpuset.cpus.effective").read_text() == "2-3\n"
    fs.spawn("/g/child")


@pytest.mark.parametrize("version", [1, 2])
def test_huge_pages_have_limits_in_whole_pages_CG_127(version: int) -> None:
    fs = CgroupFS(version, controllers=["hugetlb"])
    if version == 2:
        fs.path("/cgroup.subtree_control").write_text("+hugetlb")
    group = fs.path("/g" if version == 2 else "/hugetlb/g")
    group.mkdir()
    limit = group / ("hugetlb.2MB.max" if version == 2 else "hugetlb.2MB.limit_in_bytes")
    assert limit.read_text() == "9223372036854771712\n"
    limit.write_text("5M")
    assert limit.read_text() == f"{4 * MIB}\n"
    group.use_hugepages("2MB", 4 * MIB)
    assert refusal(lambda: group.use_hugepages("2MB", 2 * MIB)) == "ENOMEM"
    if version == 2:
        assert (group / "hugetlb.2MB.events").read_text() == "max 1\n"
        assert refusal(lambda: limit.write_text("-1")) == "EINVAL"
        limit.write_text("max")
        assert limit.read_text() == "max\n"
    else:
        assert (group / "hugetlb.2MB.failcnt").read_text() == "1\n"
        assert (group / "hugetlb.2MB.max_usage_in_bytes").read_text() == f"{4 * MIB}\n"


def test_populated_and_frozen_wake_pollers_CG_122() -> None:
    fs = v2()
    with fs.path("/g/cgroup.events").open() as events:
        assert events.poll()
        assert events.read() == "populated 0\nfrozen 0\n"
        assert not events.poll()
        process = fs.spawn("/g")
        assert events.poll()
        events.seek_start()
        assert events.read() == "populated 1\nfrozen 0\n"
        fs.path("/cgroup.procs").write_text(str(process.pid))
        fs.path("/g").rmdir()
        events.seek_start()
        assert refusal(events.read) == "ENODEV"


def test_partial_reads_go_on_in_their_snapshot_CG_104() -> None:
    fs = v2("memory")
    with fs.path("/g/memory.max").open() as opened:
        assert opened.read(2) == "ma"
        fs.path("/g/memory.max").write_text("0")
        assert opened.read() == "x\n"
        opened.seek_start()
        assert opened.read() == "0\n"


@pytest.mark.virtual_time
async def test_a_pressure_trigger_fires_once_a_window_and_only_for_enough_CG_126() -> None:
    loop: Any = asyncio.get_running_loop()
    fs = CgroupFS(2, clock=loop.clock)
    fs.path("/g").mkdir()
    fired: list[float] = []
    with fs.path("/g/memory.pressure").open() as opened:
        opened.write("some 300000 1000000")
        with pytest.raises(OSError) as second:
            opened.write("some 300000 1000000")
        assert second.value.errno == errno.EBUSY
        for _ in range(8):
            await asyncio.sleep(0.25)
            fs.path("/g").stall("memory", some_us=100_000)
            if opened.poll():
                fired.append(loop.time())
    assert "total=800000\n" in fs.path("/memory.pressure").read_text()
    assert fired == [0.75, 1.75]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"version": 3}, "versions 1 and 2"),
        ({"version": 2, "unified": []}, "only v1"),
        ({"version": 2, "controllers": ["blkio"]}, "'blkio': not one of cpu, cpuset"),
        ({"version": 1, "controllers": ["cpu", "cpu,cpuacct"]}, "mounted twice"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CgroupFS(**arguments)


def test_mkdir_has_pathlibs_options() -> None:
    path = CgroupFS(2).path("/a/b/c")
    path.mkdir(parents=True)
    path.mkdir(exist_ok=True)
    with pytest.raises(FileExistsError):
        path.mkdir()
    assert path.parent.name == "b"
    assert sorted(p.name for p in path.parent.iterdir() if p.is_dir()) == ["c"]


def test_limits_and_use_of_disks_in_v2_CG_148() -> None:
    fs = CgroupFS(2, controllers=["io"], machine=Machine(block_devices=("8:0", "8:16")))
    fs.path("/cgroup.subtree_control").write_text("+io")
    fs.path("/g").mkdir()
    limit, weight = fs.path("/g/io.max"), fs.path("/g/io.weight")
    assert (limit.read_text(), weight.read_text()) == ("", "default 100\n")
    limit.write_text("8:16 rbps=2097152 wiops=120")
    limit.write_text("8:16 wbps=1 wiops=max")
    assert limit.read_text() == "8:16 rbps=2097152 wbps=1 riops=max wiops=max\n"
    limit.write_text("8:16 rbps=max wbps=max")
    assert limit.read_text() == ""
    for text, code in (
        ("8:0 rbps=0", errno.ERANGE),
        ("8:0 rbps=x", errno.EINVAL),
        ("8:0 bps=1", errno.EINVAL),
        ("9:0 rbps=1", errno.ENODEV),
        ("rbps=1", errno.EINVAL),
    ):
        with pytest.raises(OSError) as refused:
            limit.write_text(text)
        assert refused.value.errno == code, text
    for text in ("200", "8:0 50", "8:16 60", "8:16 default"):
        weight.write_text(text)
    assert weight.read_text() == "default 200\n8:0 50\n"
    for text in ("0", "10001", "8:0 0", "x"):
        with pytest.raises(OSError) as refused:
            weight.write_text(text)
        assert refused.value.errno == errno.EINVAL, text


@pytest.mark.parametrize("version", [1, 2])
def test_use_of_disks_adds_up_CG_146_CG_148(version: int) -> None:
    fs = CgroupFS(version, controllers=["blkio" if version == 1 else "io"])
    top = fs.path("/blkio" if version == 1 else "/")
    (top / "g").mkdir()
    if version == 2:
        (top / "cgroup.subtree_control").write_text("+io")
    (top / "g").use_io("8:0", read_bytes=4096, reads=1, written_bytes=8192, writes=2)
    if version == 2:
        assert (top / "io.stat").read_text() == (
            "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
        )
        return
    assert "8:0 Write 2\n" in (top / "g/blkio.throttle.io_serviced").read_text()
    assert (top / "blkio.throttle.io_serviced").read_text().endswith("Total 0\n")
    assert "8:0 Total 12288\n" in (top / "blkio.throttle.io_service_bytes_recursive").read_text()
    (top / "g/blkio.reset_stats").write_text("1")
    assert (top / "blkio.throttle.io_serviced_recursive").read_text().endswith("Total 0\n")
