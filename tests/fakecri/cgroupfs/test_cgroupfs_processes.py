"""Processes and threads in the fake's groups: where they are, and how many there may be."""

from __future__ import annotations

import pytest
from cgroup_files import refusal, v2

from fakecri.cgroupfs import CgroupFS


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
