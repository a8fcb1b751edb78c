"""The shared numbers and the table of members."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.members import (
    FIRST_WORD,
    NEVER,
    ROW_WORDS,
    ROWS,
    WORD_BORN,
    Kind,
    Members,
    born,
)
from simclock.timewarp.pages import SIZE, WORD_BOOT, TimePage
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.watch import Watch


def test_a_new_time_is_the_machines_and_passes_at_its_rate() -> None:
    before = (time.monotonic_ns(), time.time_ns())
    page = TimePage.create(8)
    assert before[0] <= page.monotonic_ns() <= time.monotonic_ns() + 10**9
    assert abs(page.wall_ns() - before[1]) < 5 * 10**9
    real, seen = time.monotonic_ns(), page.monotonic_ns()
    while time.monotonic_ns() < real + 20_000_000:
        pass
    low = time.monotonic_ns() - real
    passed = page.monotonic_ns() - seen
    assert 8 * low * 0.9 < passed < 8 * (time.monotonic_ns() - real) * 1.1
    assert not page.jumps
    assert page.real_s(8 * 10**9) == 1.0


def test_a_jump_moves_both_clocks_for_everybody(tmp_path: Path) -> None:
    page = TimePage.create(path=str(tmp_path / "page"))
    other = TimePage.open(page.path)
    wall, mono = other.wall_ns(), other.monotonic_ns()
    page.jump(3_600 * 10**9)
    assert 3_600 * 10**9 <= other.wall_ns() - wall < 3_601 * 10**9
    assert 3_600 * 10**9 <= other.monotonic_ns() - mono < 3_601 * 10**9
    assert other.jumps
    with pytest.raises(ValueError, match="time does not go back"):
        page.jump(-1)


@pytest.mark.parametrize("rate", [0, -1, 5000])
def test_rates_have_a_range(rate: float) -> None:
    with pytest.raises(ValueError, match="wanted one from 1/1024 to 1024"):
        TimePage.create(rate)


def test_one_leads_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "page")
    first, second = TimePage.open_or_create(path), TimePage.open_or_create(path)
    assert first.lead()
    assert first.lead()
    assert not second.lead()
    first.close()
    assert second.lead()


def test_what_is_no_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotWarp, match="cannot be opened: No such file"):
        TimePage.open(str(tmp_path / "none"))
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(CannotWarp, match="no clock page: it has not the size"):
        TimePage.open(str(tmp_path / "small"))
    (tmp_path / "empty").write_bytes(bytes(SIZE))
    with pytest.raises(CannotWarp, match="another version"):
        TimePage.open(str(tmp_path / "empty"))
    page = TimePage.create(path=str(tmp_path / "page"))
    page.words[WORD_BOOT] ^= 1
    with pytest.raises(CannotWarp, match="older than this start of the machine"):
        TimePage.open(str(tmp_path / "page"))
    with pytest.raises(CannotWarp, match="cannot be made: No such file"):
        TimePage.open_or_create(str(tmp_path / "none" / "page"))


def test_members_come_change_and_go() -> None:
    members = Members(TimePage.create())
    before = members.changes()
    first = members.join(Kind.STARTING, pid=os.getpid())
    second = members.join(Kind.LOOP, pid=os.getpid(), wake_fd=7, tid=9)
    members.become(first, Kind.PROGRAM)
    kinds = [(row.number, row.kind, row.wake_fd, row.tid) for row in members.rows()]
    assert kinds == [(first, Kind.PROGRAM, 0, 0), (second, Kind.LOOP, 7, 9)]
    assert {row.born for row in members.rows()} == {born(os.getpid())}
    members.wait_until(second, NEVER)
    assert members.until(second) == NEVER
    members.become(first, Kind.FREE)
    assert [row.number for row in members.rows()] == [second]
    assert members.changes() == before + 4


def test_a_full_table_says_so() -> None:
    members = Members(TimePage.create())
    for _ in range(ROWS):
        members.join(Kind.LOOP, pid=1)
    with pytest.raises(CannotWarp, match=f"{ROWS} members already"):
        members.join(Kind.LOOP, pid=1)


def test_rows_of_processes_that_ended_are_freed() -> None:
    page = TimePage.create()
    members = Members(page)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    members.join(Kind.PROGRAM, pid=child)
    reused = members.join(Kind.PROGRAM, pid=os.getpid())  # another process had this PID
    page.words[FIRST_WORD + reused * ROW_WORDS + WORD_BORN] -= 1
    watch = Watch(page, this_architecture().calls, None)
    assert watch.all_due() == []
    assert members.rows() == []
    watch.close()
