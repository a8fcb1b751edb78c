"""The kernel's rules for cgroups, held on the fake and, with REFKUBELET_CGROUPS=1, on this kernel.

What a test says here is what Linux does (docs/spec/cgroups.md, part 8): it runs unchanged on both.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

import pytest
from cgroup_differences import DIFFERENCES, row_for
from cgroup_sides import NO_SUCH_PID, TREES, V1
from cgroupfs_helpers import UNLIMITED, equal, eventually, group, outcome, put, read, write

DEFAULTS: Final = {
    "cpu": {
        "cpu.shares": "1024\n",
        "cpu.cfs_period_us": "100000\n",
        "cpu.cfs_quota_us": "-1\n",
        "cpu.cfs_burst_us": "0\n",
        "cpu.idle": "0\n",
        "cgroup.procs": "",
        "cgroup.clone_children": "0\n",
        "notify_on_release": "0\n",
        "tasks": "",
    },
    "cpuacct": {"cpuacct.usage": "0\n", "cpuacct.stat": "user 0\nsystem 0\n"},
    "cpuset": {
        "cpuset.cpus": "\n",
        "cpuset.mems": "\n",
        "cpuset.effective_cpus": "\n",
        "cpuset.sched_load_balance": "1\n",
        "cpuset.sched_relax_domain_level": "-1\n",
        "cpuset.cpu_exclusive": "0\n",
    },
    "memory": {
        "memory.limit_in_bytes": UNLIMITED,
        "memory.memsw.limit_in_bytes": UNLIMITED,
        "memory.soft_limit_in_bytes": UNLIMITED,
        "memory.kmem.limit_in_bytes": UNLIMITED,
        "memory.usage_in_bytes": "0\n",
        "memory.failcnt": "0\n",
        "memory.use_hierarchy": "1\n",
        "memory.swappiness": "60\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        "memory.force_empty": "EINVAL",
        "memory.pressure_level": "EINVAL",
        "cgroup.event_control": "EINVAL",
    },
    "devices": {
        "devices.list": "a *:* rwm\n",
        "devices.allow": "EINVAL",
        "devices.deny": "EINVAL",
    },
    "blkio": {
        "blkio.throttle.read_bps_device": "",
        "blkio.throttle.write_iops_device": "",
        "blkio.throttle.io_serviced": "Total 0\n",
        "blkio.throttle.io_service_bytes_recursive": "Total 0\n",
        "blkio.bfq.weight": "100\n",
        "blkio.bfq.weight_device": "default 100\n",
        "blkio.bfq.io_serviced": "Total 0\n",
        "blkio.reset_stats": "EINVAL",
    },
    "freezer": {
        "freezer.state": "THAWED\n",
        "freezer.self_freezing": "0\n",
        "freezer.parent_freezing": "0\n",
    },
    "pids": {
        "pids.max": "max\n",
        "pids.current": "0\n",
        "pids.peak": "0\n",
        "pids.events": "max 0\n",
    },
    "systemd": {"tasks": "", "cgroup.procs": ""},
    "unified": {
        "cgroup.controllers": "",
        "cgroup.subtree_control": "",
        "cgroup.events": "populated 0\nfrozen 0\n",
        "cgroup.freeze": "0\n",
        "cgroup.kill": "EINVAL",
        "cgroup.max.depth": "max\n",
        "cgroup.max.descendants": "max\n",
        "cgroup.type": "domain\n",
        "cgroup.pressure": "1\n",
        "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\nnice_usec 0\n",
        "cpu.stat.local": "",
        "memory.pressure": (
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        ),
    },
}


# tree, file -> what is written -> the errno, or what it then reads
WRITES: Final = {
    ("cpu", "cpu.shares"): {
        "2": "2", "1": "2", "0": "2", "0x10": "16", "010": "8", "+5": "5", "7\n": "7",
        "262145": "262144", "18446744073709551615": "262144", "18446744073709551616": "ERANGE",
        "-1": "EINVAL", " 7": "EINVAL", "7 ": "EINVAL", "7\n\n": "EINVAL", "": None,
        "abc": "EINVAL", "1K": "EINVAL", "99999999999999999999x": "ERANGE", "08": "EINVAL",
    },
    ("cpu", "cpu.cfs_period_us"): {"1000": "1000", "999": "EINVAL", "1000001": "EINVAL"},
    ("cpu", "cpu.cfs_quota_us"): {
        "1000": "1000", "999": "EINVAL", "0": "EINVAL", "-7": "-1", "17592186044415":
        "17592186044415", "17592186044416": "EINVAL", "18446744073709551615": "ERANGE",
    },
    ("cpu", "cpu.idle"): {"1": "1", "2": "EINVAL", "-1": "EINVAL", "0": "0"},
    ("cpuacct", "cpuacct.usage"): {"0": "0", "1": "EINVAL", "x": "EINVAL"},
    ("cpuset", "cpuset.cpus"): {
        "0": "0", "0,0": "0", "0,": "0", ",0": "0", " 0 ": "0", "0-0": "0", "0\n": "0",
        "0:1/1": "EINVAL", "0-0:1/1": "0", "0-": "EINVAL", "-1": "EINVAL", "0x0": "EINVAL",
        "4096": "ERANGE", "99999999999": "EOVERFLOW", "0/1": "EINVAL", "a": "EINVAL",
        "\n": "",
    },
    ("cpuset", "cpuset.mems"): {"0": "0", "512": "EINVAL", "4096": "ERANGE", "all": "EINVAL"},
    ("cpuset", "cpuset.memory_migrate"): {
        "7": "1", "0": "0", "4294967297": "1", "4294967296": "0", "-1": "EINVAL", "x": "EINVAL",
    },
    ("memory", "memory.limit_in_bytes"): {
        "4095": "0", "4096": "4096", "5000": "4096", "1M": "1048576", "1m": "1048576",
        " 8K\n": "8192", "1G": "1073741824", "-1": UNLIMITED[:-1], "K": "0", "": None, "\n": "0",
        "max": "EINVAL", "-2": "EINVAL", "64MB": "EINVAL", "1.5G": "EINVAL", "+5": "EINVAL",
        "16E": "0", "18446744073709551615": UNLIMITED[:-1], "08": "EINVAL", "0x2000": "8192",
    },
    ("memory", "memory.kmem.limit_in_bytes"): {"4096": UNLIMITED[:-1], "max": "EINVAL"},
    ("memory", "memory.swappiness"): {"0": "0", "200": "200", "201": "EINVAL"},
    ("memory", "memory.use_hierarchy"): {"1": "1", "0": "EINVAL"},
    ("memory", "memory.failcnt"): {"anything": "0"},
    ("memory", "memory.usage_in_bytes"): {"0": "EINVAL"},
    ("pids", "pids.max"): {
        "0": "0", "4194304": "4194304", "4194305": "EINVAL", "max": "max", " max\n": "max",
        "-1": "EINVAL", "9223372036854775808": "ERANGE", "MAX": "EINVAL",
    },
    ("freezer", "freezer.state"): {
        "FROZEN": "FROZEN", "FREEZING": "EINVAL", " THAWED\n": "THAWED", "frozen": "EINVAL",
    },
    ("blkio", "blkio.bfq.weight"): {
        "1": "1", "1000": "1000", "0": "ERANGE", "1001": "ERANGE", "-1": "EINVAL", " 5": "EINVAL",
        "5\n": "5", "0x10": "16", "010": "8", "default 7": "EINVAL", "\n": "EINVAL", "": None,
    },
    ("blkio", "blkio.bfq.weight_device"): {
        "5": "default 5", "default 9": "default 9", "default 0": "ERANGE", "default": "EINVAL",
        "default\t8": "default 8", " default 7 \n": "default 7", "default 010": "default 10",
        "default 8x": "default 8", "0x10": "default 16", "default 0x10": "ERANGE", "8x": "EINVAL",
        "default:9": "EINVAL", "254:1000 x": "ENODEV", "254:1000": "EINVAL", "+6": "EINVAL",
        "1001": "ERANGE", "default 18446744073709551624": "default 8",
    },
    ("blkio", "blkio.reset_stats"): {"x": "EINVAL", "-1": "EINVAL"},
    ("blkio", "blkio.throttle.io_serviced"): {"0": "EINVAL"},
    ("systemd", "notify_on_release"): {"7": "1", "0": "0", "-1": "EINVAL"},
    ("unified", "cgroup.max.depth"): {
        "0": "0", "max": "max", "2147483647": "max", "2147483648": "ERANGE", "-1": "ERANGE",
        " 5 ": "5", "0x10": "16", "x": "EINVAL",
    },
    ("unified", "cgroup.freeze"): {"1": "1", "2": "ERANGE", "x": "EINVAL", "0": "0"},
    ("unified", "cgroup.pressure"): {"0": "0", "2": "ERANGE", "1": "1"},
    ("unified", "cgroup.subtree_control"): {
        "+nonsense": "EINVAL", "hugetlb": "EINVAL", "+memory": "ENOENT", "-memory": "",
        "+hugetlb": "ENOENT", "+memory -memory": "", "+": "EINVAL", "\n": "",
    },
    ("unified", "cgroup.type"): {"domain": "EINVAL", "threaded": "threaded", "x": "EINVAL"},
}  # fmt: skip


@pytest.mark.parametrize("tree", TREES)
def test_a_new_group_has_the_kernels_files_and_defaults_CG_100_CG_120_CG_145(
    side: Any, tree: str
) -> None:
    path = group(side, tree)
    assert {name: read(path / name) for name in DEFAULTS[tree]} == DEFAULTS[tree]
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.iterdir()}
    assert set(modes.values()) <= {0o644, 0o444, 0o200}
    if tree != "unified":
        assert modes["tasks"] == modes["cgroup.procs"] == 0o644


@pytest.mark.parametrize("tree", TREES)
def test_making_and_removing_CG_100_CG_102(side: Any, tree: str) -> None:
    path = group(side, tree)
    assert outcome(path.mkdir) == "EEXIST"
    assert outcome((path / "cgroup.procs").mkdir) == "EEXIST"
    assert outcome((path / "no" / "such").mkdir) == "ENOENT"
    assert outcome((path / "cgroup.procs" / "x").mkdir) == "ENOTDIR"
    assert outcome((path / "a\nb").mkdir) == "EINVAL"
    (path / ("a" * 300)).mkdir()  # longer than NAME_MAX: cgroup directories do not care
    (path / ("a" * 300)).rmdir()
    (path / "child").mkdir()
    assert path.stat().st_nlink == 3
    assert outcome(path.rmdir) == "EBUSY"
    assert outcome((path / "cgroup.procs").rmdir) == "ENOTDIR"
    assert outcome((path / "missing").rmdir) == "ENOENT"
    assert outcome(side.root(tree).rmdir) == "EBUSY"
    (path / "child").rmdir()
    path.rmdir()
    assert not path.exists()


@pytest.mark.parametrize("tree", ["pids", "unified"])
def test_files_cannot_be_made_removed_or_renamed_CG_101(side: Any, tree: str) -> None:
    path = group(side, tree)
    assert write(path / "new", "1") == "EACCES"
    assert write(path / "no" / "new", "1") == "ENOENT"
    assert write(path, "1") == "EISDIR"
    assert read(path) == "EISDIR"
    assert read(path / "new") == "ENOENT"
    assert outcome((path / "cgroup.procs").unlink) == "EPERM"
    assert outcome(path.unlink) == "EISDIR"
    assert outcome(lambda: list((path / "cgroup.procs").iterdir())) == "ENOTDIR"
    assert outcome(lambda: list((path / "missing").iterdir())) == "ENOENT"


def test_renaming_a_group_CG_101(side: Any) -> None:
    one, two = group(side, "pids", "one"), group(side, "pids", "two")
    assert outcome(lambda: one.rename(two / "one")) == "EIO"
    assert outcome(lambda: one.rename(two)) == "EEXIST"
    assert outcome(lambda: one.rename(two / "tasks")) == "ENOTDIR"
    one.rename(side.tree("pids") / "three")
    assert not one.exists()
    assert read(side.tree("pids") / "three" / "pids.max") == "max\n"
    v2 = group(side, "unified")
    assert outcome(lambda: v2.rename(side.tree("unified") / "h")) == "EPERM"


@pytest.mark.parametrize(("tree", "file"), WRITES)
def test_what_a_file_takes_and_what_it_then_reads_CG_104_CG_105_CG_130(
    side: Any, tree: str, file: str
) -> None:
    path = group(side, tree) / file
    for text, wanted in WRITES[tree, file].items():
        before = read(path)
        result = write(path, text)
        if wanted is None or wanted.startswith("E"):
            assert result == (wanted or "ok"), text
            assert read(path) == before, text
        else:
            assert (result, read(path).rstrip("\n")) == ("ok", wanted), text


def test_a_write_of_more_than_a_page_is_too_big_CG_104(side: Any) -> None:
    path = group(side, "pids") / "pids.max"
    assert write(path, "5" + " " * 4095) == "ok"
    assert read(path) == "5\n"
    assert write(path, "6" + " " * 4096) == "E2BIG"


@pytest.mark.parametrize("tree", ["pids", "unified"])
def test_an_open_file_of_a_removed_group_is_gone_CG_103(side: Any, tree: str) -> None:
    path = group(side, tree)
    with (path / "cgroup.procs").open() as opened:
        path.rmdir()
        assert outcome(opened.read) == "ENODEV"


@pytest.mark.parametrize("tree", ["pids", "systemd", "unified"])
def test_moving_processes_CG_110(side: Any, tree: str) -> None:
    path, child = group(side, tree), side.child()
    for text in (f"{child.pid}", f" {child.pid}\n", f"+{child.pid}", hex(child.pid)):
        assert write(path / "cgroup.procs", text) == "ok", text
        assert read(path / "cgroup.procs") == f"{child.pid}\n"
    for text in ("x", "-1", f"{child.pid} {child.pid}", "99999999999", " ", "2"):
        assert write(path / "cgroup.procs", text) == "EINVAL", text
    assert write(path / "cgroup.procs", str(NO_SUCH_PID)) == "ESRCH"
    threads = path / ("cgroup.threads" if tree == "unified" else "tasks")
    assert read(threads) == f"{child.pid}\n"
    assert outcome(path.rmdir) == "EBUSY"


def test_a_zombie_keeps_its_place_in_the_count_and_nothing_else_CG_102_CG_142(side: Any) -> None:
    outer, child = group(side, "pids"), side.child()
    inner, other = outer / "inner", group(side, "pids", "other")
    inner.mkdir()
    put(child, inner)
    assert read(outer / "pids.current") == "1\n"
    child.kill(signal.SIGKILL)
    eventually(lambda: equal(read(inner / "cgroup.procs"), ""))
    assert read(inner / "pids.current") == "1\n"
    assert write(other / "cgroup.procs", str(child.pid)) == "ok"
    assert read(other / "pids.current") == "0\n"
    eventually(inner.rmdir)
    assert read(outer / "pids.current") == "1\n"
    assert child.reap() == -signal.SIGKILL
    eventually(lambda: equal(read(outer / "pids.current"), "0\n"))
    assert write(other / "cgroup.procs", str(child.pid)) == "ESRCH"


def test_pids_max_below_the_count_is_no_error_CG_142(side: Any) -> None:
    path, one, two = group(side, "pids"), side.child(), side.child()
    put(one, path)
    assert write(path / "pids.max", "0") == "ok"
    put(two, path)
    assert read(path / "pids.current") == "2\n"
    assert read(path / "pids.peak") == "2\n"
    assert read(path / "pids.events") == "max 0\n"


def test_cpu_bandwidth_of_a_child_is_within_its_parents_CG_140(side: Any) -> None:
    a = group(side, "cpu")
    b = a / "b"
    c = b / "c"
    b.mkdir()
    c.mkdir()
    quota = "cpu.cfs_quota_us"
    assert write(a / quota, "50000") == "ok"
    assert write(b / quota, "60000") == "EINVAL"
    assert write(c / quota, "50001") == "EINVAL"
    assert write(c / quota, "50000") == "ok"
    assert write(a / quota, "40000") == "EINVAL"
    assert write(c / "cpu.cfs_period_us", "99999") == "EINVAL"
    assert write(a / "cpu.cfs_period_us", "100001") == "EINVAL"
    assert write(a / quota, "-1") == "ok"
    assert write(c / "cpu.cfs_burst_us", "50001") == "EINVAL"
    assert write(c / "cpu.cfs_burst_us", "50000") == "ok"
    assert write(c / quota, "49999") == "EINVAL"
    assert read(c / quota) == "50000\n"


def test_an_idle_group_has_three_shares_CG_140(side: Any) -> None:
    path = group(side, "cpu")
    assert write(path / "cpu.shares", "512") == "ok"
    assert write(path / "cpu.idle", "1") == "ok"
    assert read(path / "cpu.shares") == "3\n"
    assert write(path / "cpu.shares", "512") == "EINVAL"
    assert write(path / "cpu.idle", "0") == "ok"
    assert read(path / "cpu.shares") == "1024\n"


def test_a_v1_cpuset_must_be_filled_before_processes_come_CG_143(side: Any) -> None:
    path, child = group(side, "cpuset"), side.child()
    assert write(path / "cgroup.procs", str(child.pid)) == "ENOSPC"
    assert write(path / "cpuset.cpus", "0") == "ok"
    assert write(path / "cgroup.procs", str(child.pid)) == "ENOSPC"
    assert write(path / "cpuset.mems", "0") == "ok"
    assert write(path / "cgroup.procs", str(child.pid)) == "ok"
    assert write(path / "cpuset.cpus", "\n") == "ENOSPC"


def test_v1_cpusets_are_nested_CG_143(side: Any) -> None:
    path = group(side, "cpuset")
    child = path / "child"
    child.mkdir()
    assert write(child / "cpuset.cpus", "0") == "EACCES"
    assert write(path / "cpuset.cpus", "0") == "ok"
    assert write(path / "cpuset.mems", "0") == "ok"
    assert write(child / "cpuset.cpus", "0") == "ok"
    assert write(path / "cpuset.cpus", "\n") == "EBUSY"
    assert write(child / "cpuset.cpu_exclusive", "1") == "EACCES"
    assert write(path / "cgroup.clone_children", "1") == "ok"
    clone = path / "clone"
    clone.mkdir()
    assert (read(clone / "cpuset.cpus"), read(clone / "cpuset.mems")) == ("0\n", "0\n")
    assert read(clone / "cgroup.clone_children") == "1\n"


def test_the_v1_freezer_stops_the_subtree_and_holds_back_signals_CG_144(side: Any) -> None:
    path, process = group(side, "freezer"), side.child()
    child = path / "child"
    child.mkdir()
    put(process, child)
    assert write(path / "freezer.state", "FROZEN") == "ok"
    eventually(lambda: equal(read(path / "freezer.state"), "FROZEN\n"))
    assert read(child / "freezer.state") == "FROZEN\n"
    assert read(child / "freezer.parent_freezing") == "1\n"
    assert read(child / "freezer.self_freezing") == "0\n"
    assert write(child / "freezer.state", "THAWED") == "ok"
    assert read(child / "freezer.state") == "FROZEN\n"
    process.kill(signal.SIGKILL)
    assert read(child / "cgroup.procs") == f"{process.pid}\n"
    assert write(path / "freezer.state", "THAWED") == "ok"
    eventually(lambda: equal(read(child / "cgroup.procs"), ""))
    assert process.reap() == -signal.SIGKILL


def test_every_difference_says_why() -> None:
    assert all(len(row.reason) > 20 for row in DIFFERENCES)
    assert row_for("cpu", "cpu.rt_period_us")
    assert not row_for("cpu", "cpu.shares")


def test_nothing_is_left_of_former_runs() -> None:
    left = [
        f"{tree}/{name}"
        for tree in (*V1, "unified")
        if os.path.isdir(f"/sys/fs/cgroup/{tree}")
        for name in os.listdir(f"/sys/fs/cgroup/{tree}")
        if name.startswith(f"refkubelet-cgroupfs-{os.getpid()}-")
    ]
    assert left == []
