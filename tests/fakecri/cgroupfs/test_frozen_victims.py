"""A frozen process cannot die, so the OOM killer does not wait for it (CG-132, CG-144)."""

from __future__ import annotations

import asyncio
import errno
import math

import pytest

from fakecri.cgroupfs import CgroupFS
from simclock import NothingToWaitFor, VirtualLoop, run_virtual

MIB = 1 << 20


def test_a_frozen_process_is_no_victim_of_the_oom_killer_CG_132_CG_144() -> None:
    fs = CgroupFS(version=1, controllers=["memory", "freezer"])
    for mount in ("memory", "freezer"):
        fs.path(f"/{mount}/web").mkdir()
    fs.path("/freezer/cold").mkdir()
    big, small = fs.spawn("/web"), fs.spawn("/web")
    big.set_usage(memory_bytes=30 * MIB)
    fs.path("/memory/web/memory.limit_in_bytes").write_text("40M")
    fs.path("/freezer/cold/cgroup.procs").write_text(str(big.pid))
    fs.path("/freezer/cold/freezer.state").write_text("FROZEN")
    small.set_usage(memory_bytes=20 * MIB)
    assert (big.alive, small.alive) == (True, False)


def test_where_nobody_can_be_killed_memory_is_refused_CG_132() -> None:
    fs = CgroupFS(version=1, controllers=["memory", "freezer"])
    for mount in ("memory", "freezer"):
        fs.path(f"/{mount}/web").mkdir()
    only = fs.spawn("/web")
    fs.path("/memory/web/memory.limit_in_bytes").write_text("40M")
    fs.path("/freezer/web/freezer.state").write_text("FROZEN")
    with pytest.raises(OSError) as refused:
        only.set_usage(memory_bytes=50 * MIB)
    assert refused.value.errno == errno.ENOMEM
    assert only.alive


def test_who_sleeps_for_ever_waits_for_nothing() -> None:
    with pytest.raises(NothingToWaitFor):
        run_virtual(lambda: asyncio.sleep(math.inf))


def test_a_timer_that_ran_and_is_cancelled_then_does_not_count() -> None:
    loop = VirtualLoop()
    timers = [loop.call_at(0, lambda: None) for _ in range(300)]
    loop.call_at(1, loop.stop)
    loop.run_forever()
    for timer in timers:
        timer.cancel()
    assert loop._cancelled_timers == 0
    loop.close()
