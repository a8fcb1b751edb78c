"""What a machine with v1 controllers cannot show of v2, and what only happens with usage: limits,
OOM kills, fork limits, huge pages, events (CG-134, CG-135, CG-141, CG-142)."""

from __future__ import annotations

import pytest
from cgroup_files import MIB, refusal, v2

from fakecri.cgroupfs import CgroupFS, CgroupPath, Process


def hungry(fs: CgroupFS, cgroup: str, size_bytes: int = 0) -> Process:
    process = fs.spawn(cgroup)
    process.set_usage(memory_bytes=size_bytes)
    return process


def event_counts(path: CgroupPath) -> dict[str, int]:
    return {k: int(v) for k, v in (line.split() for line in path.read_text().splitlines())}


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
