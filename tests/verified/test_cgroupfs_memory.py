"""The memory controller of cgroup v1, against the kernel."""

from __future__ import annotations

import signal
from typing import Any, Final

from cgroupfs_helpers import UNLIMITED, equal, eventually, group, put, read, write

MIB: Final = 1 << 20


def test_memory_and_swap_limits_are_raised_and_lowered_in_order_CG_131(side: Any) -> None:
    path = group(side, "memory")
    limit, with_swap = path / "memory.limit_in_bytes", path / "memory.memsw.limit_in_bytes"
    assert write(with_swap, "1M") == "EINVAL"
    assert write(limit, "1M") == "ok"
    assert write(with_swap, "1M") == "ok"
    assert write(limit, "2M") == "EINVAL"
    assert write(with_swap, "512K") == "EINVAL"
    child = path / "child"
    child.mkdir()
    assert write(child / "memory.limit_in_bytes", "8M") == "ok"
    assert "hierarchical_memory_limit 1048576\n" in read(child / "memory.stat")


def test_a_v1_limit_below_the_usage_is_refused_and_kills_nobody_CG_131(side: Any) -> None:
    path, hog = group(side, "memory"), side.hog()
    put(hog, path)
    hog.holds(40 * MIB)
    assert int(read(path / "memory.usage_in_bytes")) >= 40 * MIB
    assert int(read(side.tree("memory") / "memory.usage_in_bytes")) >= 40 * MIB
    assert write(path / "memory.limit_in_bytes", "10M") == "EBUSY"
    assert read(path / "memory.limit_in_bytes") == UNLIMITED
    assert write(path / "memory.limit_in_bytes", "100M") == "ok"
    assert read(path / "cgroup.procs") == f"{hog.pid}\n"


def test_the_oom_killer_comes_at_the_limit_and_counts_in_the_group_CG_132(side: Any) -> None:
    path, hog = group(side, "memory"), side.hog()
    child = path / "child"
    child.mkdir()
    put(hog, child)
    assert write(path / "memory.limit_in_bytes", "20M") == "ok"
    hog.holds(60 * MIB)
    eventually(lambda: equal(read(child / "cgroup.procs"), ""))
    assert hog.reap() == -signal.SIGKILL
    assert "oom_kill 1\n" in read(child / "memory.oom_control")
    assert "oom_kill 0\n" in read(path / "memory.oom_control")
    assert int(read(path / "memory.failcnt")) > 0
    assert int(read(path / "memory.max_usage_in_bytes")) <= 20 * MIB


def test_memory_stays_where_it_was_charged_CG_111(side: Any) -> None:
    old, new, hog = group(side, "memory", "old"), group(side, "memory", "new"), side.hog()
    put(hog, old)
    hog.holds(30 * MIB)
    put(hog, new)
    assert int(read(old / "memory.usage_in_bytes")) >= 30 * MIB
    assert int(read(new / "memory.usage_in_bytes")) < 10 * MIB


def test_usage_thresholds_fire_in_both_directions_and_at_the_end_CG_133(side: Any) -> None:
    path, hog = group(side, "memory"), side.hog()
    put(hog, path)
    seen = side.threshold(path, 30 * MIB)
    assert seen() == 0
    hog.holds(50 * MIB)
    assert eventually(lambda: _some(seen())) >= 1
    hog.holds(1)
    assert eventually(lambda: _some(seen())) >= 1
    put(hog, side.tree("memory"))
    eventually(path.rmdir)
    assert eventually(lambda: _some(seen())) >= 1


def _some(count: int) -> int:
    assert count > 0
    return count


def test_event_control_wants_descriptors_CG_133(side: Any) -> None:
    control = group(side, "memory") / "cgroup.event_control"
    assert write(control, "x") == "EINVAL"
    assert write(control, "7") == "EINVAL"
    assert write(control, "99998 99999 1M") == "EBADF"


def test_new_memory_groups_take_two_settings_of_their_parent_CG_130(side: Any) -> None:
    path = group(side, "memory")
    assert write(path / "memory.swappiness", "10") == "ok"
    assert write(path / "memory.oom_control", "1") == "ok"
    (path / "child").mkdir()
    assert read(path / "child" / "memory.swappiness") == "10\n"
    assert read(path / "child" / "memory.oom_control").startswith("oom_kill_disable 1\n")
    assert write(path / "memory.oom_control", "2") == "EINVAL"
