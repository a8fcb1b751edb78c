"""What a machine with v1 controllers cannot show of v2, and what only happens with usage: limits,
OOM kills, fork limits, huge pages, events (CG-134, CG-135, CG-141, CG-142)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from fakecri.cgroupfs import CgroupFS, CgroupPath, Machine, Process
from simtime import run_virtual

MIB = 1 << 20


def v2(*controllers: str, machine: Machine | None = None) -> CgroupFS:
    fs = CgroupFS(2, machine=machine)
    words = " ".join(f"+{name}" for name in controllers)
    fs.path("/cgroup.subtree_control").write_text(words)
    fs.path("/g").mkdir()
    return fs


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(OSError) as refused:
        action()
    return errno.errorcode[refused.value.errno or 0].replace("ENOTSUP", "EOPNOTSUPP")


def event_counts(path: CgroupPath) -> dict[str, int]:
    return {k: int(v) for k, v in (line.split() for line in path.read_text().splitlines())}


def hungry(fs: CgroupFS, cgroup: str, size_bytes: int = 0) -> Process:
    process = fs.spawn(cgroup)
    process.set_usage(memory_bytes=size_bytes)
    return process


def test_v2_memory_files_have_the_kernels_defaults_CG_134() -> None:
    group = v2("memory").path("/g")
    wanted = {
        "current": "0", "peak": "0", "min": "0", "low": "0", "high": "max", "max": "max",
        "oom.group": "0", "swap.current": "0", "swap.max": "max", "swap.high": "max",
    }  # fmt: skip
    assert {n: (group / f"memory.{n}").read_text() for n in wanted} == {
        name: f"{text}\n" for name, text in wanted.items()
    }
    assert not CgroupFS(2).path("/memory.max").exists()
    assert CgroupFS(2).path("/memory.stat").exists()


@pytest.mark.parametrize(
    ("text", "reads"), [("5000", "4096"), ("1M", "1048576"), ("max", "max"), ("0", "0")]
)
def test_v2_sizes_are_rounded_down_CG_134(text: str, reads: str) -> None:
    group = v2("memory").path("/g")
    for name in ("min", "low", "high", "max", "swap.max"):
        (group / f"memory.{name}").write_text(text)
        assert (group / f"memory.{name}").read_text() == f"{reads}\n"
        assert refusal(lambda name=name: (group / f"memory.{name}").write_text("-1")) == "EINVAL"


def test_v2_max_below_the_usage_reclaims_then_kills_until_it_fits_CG_134() -> None:
    fs = v2("memory")
    small, big = hungry(fs, "/g", 5 * MIB), hungry(fs, "/g", 30 * MIB)
    fs.path("/g").set_usage(cache_bytes=10 * MIB)
    fs.path("/g/memory.max").write_text("38M")
    assert (small.alive, big.alive) == (True, True)
    assert fs.path("/g/memory.current").read_text() == f"{38 * MIB}\n"
    fs.path("/g/memory.max").write_text("10M")
    assert (small.alive, big.exit_status) == (True, -9)
    assert event_counts(fs.path("/g/memory.events"))["oom_kill"] == 1


def test_an_oom_kill_is_counted_here_and_above_and_told_to_watchers_CG_135() -> None:
    fs = v2("memory")
    fs.path("/g/cgroup.subtree_control").write_text("+memory")
    fs.path("/g/child").mkdir()
    fs.path("/g/memory.max").write_text("20M")
    told: list[str] = []
    fs.path("/g/memory.events").watch(lambda: told.append("above"))
    fs.path("/g/child/memory.events").watch(lambda: told.append("here"))
    process = hungry(fs, "/g/child", 10 * MIB)
    process.set_usage(memory_bytes=21 * MIB)
    assert process.exit_status == -9
    above, here = (event_counts(fs.path(f"{p}/memory.events")) for p in ("/g", "/g/child"))
    assert (above["max"], above["oom"], above["oom_kill"]) == (1, 1, 1)
    assert (here["max"], here["oom"], here["oom_kill"]) == (0, 0, 1)
    assert event_counts(fs.path("/g/memory.events.local"))["oom_kill"] == 0
    assert {"above", "here"} == set(told)
    assert fs.path("/g/memory.current").read_text() == "0\n"
    assert fs.path("/g/memory.peak").read_text() == f"{20 * MIB}\n"


def test_oom_group_kills_all_of_the_group_CG_135() -> None:
    fs = v2("memory")
    fs.path("/g/memory.oom.group").write_text("1")
    fs.path("/g/memory.max").write_text("20M")
    assert refusal(lambda: fs.path("/g/memory.oom.group").write_text("2")) == "EINVAL"
    one, two, outside = hungry(fs, "/g", MIB), hungry(fs, "/g", MIB), hungry(fs, "/", 99 * MIB)
    one.set_usage(memory_bytes=30 * MIB)
    assert (one.exit_status, two.exit_status, outside.alive) == (-9, -9, True)
    counts = event_counts(fs.path("/g/memory.events"))
    assert (counts["oom_kill"], counts["oom_group_kill"]) == (2, 1)


def test_without_the_oom_killer_a_process_hangs_until_there_is_room_CG_132() -> None:
    fs = CgroupFS(1, controllers=["memory"])
    group = fs.path("/memory/g")
    group.mkdir()
    (group / "memory.oom_control").write_text("1")
    (group / "memory.limit_in_bytes").write_text("10M")
    process = hungry(fs, "/g")
    process.set_usage(memory_bytes=20 * MIB)
    assert (process.hung, process.alive, process.memory_bytes) == (True, True, 10 * MIB)
    assert "under_oom 1\n" in (group / "memory.oom_control").read_text()
    (group / "memory.limit_in_bytes").write_text("30M")
    assert (process.hung, process.memory_bytes) == (False, 20 * MIB)
    assert "under_oom 0\n" in (group / "memory.oom_control").read_text()


def test_a_hung_process_dies_of_sigkill_CG_132() -> None:
    fs = CgroupFS(1, controllers=["memory"])
    fs.path("/memory/g").mkdir()
    fs.path("/memory/g/memory.oom_control").write_text("1")
    fs.path("/memory/g/memory.limit_in_bytes").write_text("0")
    process = hungry(fs, "/g")
    process.set_usage(memory_bytes=MIB)
    process.kill()
    fs.path("/memory/g/memory.limit_in_bytes").write_text("-1")
    assert (process.exit_status, process.memory_bytes) == (-9, 0)


def test_page_cache_takes_what_room_there_is_and_makes_room_CG_131() -> None:
    fs = v2("memory")
    fs.path("/g/memory.max").write_text("20M")
    process = hungry(fs, "/g", 5 * MIB)
    fs.path("/g").set_usage(cache_bytes=50 * MIB)
    assert fs.path("/g/memory.current").read_text() == f"{20 * MIB}\n"
    process.set_usage(memory_bytes=18 * MIB)
    assert f"\nfile {2 * MIB}\n" in fs.path("/g/memory.stat").read_text()
    assert refusal(lambda: fs.path("/g/memory.reclaim").write_text("3M")) == "EAGAIN"
    assert fs.path("/g/memory.current").read_text() == f"{18 * MIB}\n"


def test_charges_move_to_the_parent_when_a_group_goes_CG_102() -> None:
    fs = CgroupFS(1, controllers=["memory"])
    fs.path("/memory/g").mkdir()
    fs.path("/memory/g/child").mkdir()
    process = hungry(fs, "/g/child", 3 * MIB)
    fs.path("/memory/g/child").set_usage(cache_bytes=MIB)
    fs.path("/memory/cgroup.procs").write_text(str(process.pid))
    fs.path("/memory/g/child").rmdir()
    stat = fs.path("/memory/g/memory.stat").read_text()
    assert f"rss {3 * MIB}\n" in stat
    assert f"cache {MIB}\n" in stat
    process.exit()
    assert fs.path("/memory/g/memory.usage_in_bytes").read_text() == f"{MIB}\n"


def test_memory_of_a_group_needs_a_process() -> None:
    fs = v2("memory")
    assert refusal(lambda: fs.path("/g").set_usage(memory_bytes=1)) == "ESRCH"
    one, two = hungry(fs, "/g"), hungry(fs, "/g")
    fs.path("/g").set_usage(memory_bytes=5 * MIB)
    two.set_usage(memory_bytes=MIB)
    fs.path("/g").set_usage(memory_bytes=MIB // 2)
    assert (one.memory_bytes, two.memory_bytes) == (0, MIB // 2)


def test_v1_counts_a_refused_fork_where_it_was_tried_CG_142() -> None:
    fs = CgroupFS(1, controllers=["pids"])
    fs.path("/pids/g").mkdir()
    fs.path("/pids/g/child").mkdir()
    process = fs.spawn("/g/child")
    fs.path("/pids/g/pids.max").write_text("2")
    thread = process.start_thread()
    assert refusal(process.fork) == refusal(process.start_thread) == "EAGAIN"
    assert fs.path("/pids/g/pids.events").read_text() == "max 0\n"
    assert fs.path("/pids/g/child/pids.events").read_text() == "max 2\n"
    assert fs.path("/pids/g/child/tasks").read_text() == f"{process.pid}\n{thread}\n"
    assert fs.path("/pids/g/child/cgroup.procs").read_text() == f"{process.pid}\n"


def test_v2_counts_it_where_the_limit_is_CG_142() -> None:
    fs = v2("pids")
    fs.path("/g/cgroup.subtree_control").write_text("+pids")
    fs.path("/g/child").mkdir()
    process = fs.spawn("/g/child")
    fs.path("/g/pids.max").write_text("1")
    assert refusal(process.fork) == "EAGAIN"
    texts = [
        fs.path(f"/g/{p}pids.events{s}").read_text() for p in ("", "child/") for s in ("", ".local")
    ]
    assert texts == ["max 1\n", "max 1\n", "max 0\n", "max 0\n"]


def test_a_fork_is_where_its_parent_is_CG_111() -> None:
    fs = CgroupFS(1)
    for mount in fs.mounts:
        fs.path(f"/{mount}/g").mkdir()
    for kind in ("cpus", "mems"):
        fs.path(f"/cpuset/g/cpuset.{kind}").write_text("0")
    child = fs.spawn("/g").fork()
    assert {child.cgroup(mount) for mount in fs.mounts} == {"/g"}


def test_a_thread_can_be_moved_alone_in_v1_and_takes_all_with_cgroup_procs_CG_110() -> None:
    fs = CgroupFS(1, controllers=["pids"])
    fs.path("/pids/g").mkdir()
    process = fs.spawn()
    thread = process.start_thread()
    fs.path("/pids/g/tasks").write_text(str(thread))
    assert fs.path("/pids/g/tasks").read_text() == f"{thread}\n"
    assert fs.path("/pids/g/pids.current").read_text() == "1\n"
    fs.path("/pids/g/cgroup.procs").write_text(str(thread))
    assert fs.path("/pids/g/tasks").read_text() == f"{process.pid}\n{thread}\n"


def test_spawning_where_a_tree_has_no_such_group_leaves_nothing_behind() -> None:
    fs = CgroupFS(1, controllers=["pids", "memory"])
    fs.path("/pids/g").mkdir()
    with pytest.raises(FileNotFoundError) as missing:
        fs.spawn("/g")
    assert missing.value.filename == "/memory/g/cgroup.procs"
    assert sorted(fs.processes.processes) == [fs.init.pid, fs.writer.pid]


def test_the_no_internal_process_rule_CG_112() -> None:
    fs = v2("memory", "pids")
    fs.path("/g/child").mkdir()
    process = fs.spawn("/g")
    control = fs.path("/g/cgroup.subtree_control")
    assert refusal(lambda: control.write_text("+memory")) == "EBUSY"
    fs.path("/g/child/cgroup.procs").write_text(str(process.pid))
    control.write_text("+memory")
    assert fs.path("/g/child/memory.max").exists()
    assert refusal(lambda: fs.path("/g/cgroup.procs").write_text(str(process.pid))) == "EBUSY"
    fs.path("/cgroup.procs").write_text(str(process.pid))  # the root is exempt


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


def test_a_pressure_trigger_fires_once_a_window_and_only_for_enough_CG_126() -> None:
    async def main() -> list[float]:
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
        return fired

    assert run_virtual(main) == [0.75, 1.75]


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


def test_the_oom_killer_goes_by_score_and_spares_who_is_exempt_CG_135() -> None:
    fs = v2("memory")
    fs.path("/g/memory.max").write_text("100M")
    big, pushed, exempt = hungry(fs, "/g", 40 * MIB), hungry(fs, "/g", 20 * MIB), hungry(fs, "/g")
    pushed.oom_score_adj, exempt.oom_score_adj = 300, -1000
    exempt.set_usage(memory_bytes=30 * MIB)
    exempt.set_usage(memory_bytes=50 * MIB)
    assert (pushed.exit_status, pushed.oom_killed, big.alive, exempt.alive) == (
        -9,
        True,
        True,
        True,
    )
    exempt.set_usage(memory_bytes=90 * MIB)
    assert (big.exit_status, exempt.memory_bytes) == (-9, 90 * MIB)
    assert refusal(lambda: exempt.set_usage(memory_bytes=101 * MIB)) == "ENOMEM"
