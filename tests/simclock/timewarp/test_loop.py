"""The asyncio loop alone and with other loops."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from simclock import Clock, timewarp
from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.loop import WarpedLoop
from simclock.timewarp.members import Kind, Members
from simclock.timewarp.pages import TimePage
from simclock.timewarp.watch import Watch

SHORT_S = 20.0


def test_a_day_takes_no_time_and_timers_keep_their_order() -> None:
    async def main() -> list[str]:
        fired: list[str] = []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)
        began_s, began_ns = loop.time(), loop.clock.wall_ns()
        for name, at_s in (("third", 86_400), ("first", 0.001), ("second", 5)):
            loop.call_later(at_s, fired.append, name)
        await asyncio.sleep(86_400.5)
        assert loop.time() - began_s == pytest.approx(86_400.5, abs=0.5)
        assert (loop.clock.wall_ns() - began_ns) / 1e9 == pytest.approx(86_400.5, abs=0.5)
        assert isinstance(loop.clock, Clock)
        return fired

    began_s = time.monotonic()
    assert timewarp.run(main) == ["first", "second", "third"]
    assert time.monotonic() - began_s < SHORT_S


@pytest.mark.parametrize(("others_s", "ends_s"), [((0.05, 0.13, 0.3), 0.13), ((0.05,), 0.2)])
def test_a_sleep_with_slack_ends_with_the_next_jump(
    others_s: tuple[float, ...], ends_s: float
) -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)
        began_s = loop.time()
        for other_s in others_s:
            loop.call_later(other_s, int)
        await loop.clock.sleep(0.1, slack_s=0.1)
        assert loop.jumper is not None
        return loop.time() - began_s, loop.jumper.jumps

    took_s, jumps = timewarp.run(main)
    assert took_s == pytest.approx(ends_s, abs=0.03)
    assert jumps == 2


def test_a_sleep_with_slack_can_be_cancelled_when_it_is_over() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)
        problems: list[str] = []
        loop.set_exception_handler(lambda _, context: problems.append(context["message"]))
        task = loop.create_task(loop.clock.sleep(10, slack_s=10))
        await asyncio.sleep(0)
        loop.call_later(1, time.sleep, 0.1)  # then both are due
        loop.call_later(19, task.cancel)
        await asyncio.wait([task])
        assert task.cancelled()
        assert not problems

    with closing(TimePage.create(1000)) as page:
        timewarp.run(main, page)


def test_sockets_are_real(tmp_path: Path) -> None:
    async def main() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readline()
            await asyncio.sleep(1000)
            writer.write(line.upper())
            writer.close()

        server = await asyncio.start_unix_server(answer, tmp_path / "socket")
        async with server:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
            writer.write(b"hello\n")
            line = await reader.read()
            writer.close()
            await writer.wait_closed()
            return line

    assert timewarp.run(main) == b"HELLO\n"


def test_a_thread_that_works_is_waited_for() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.wait_for(loop.run_in_executor(None, time.sleep, 0.3), timeout=5)
        return loop.time() - began_s

    assert timewarp.run(main) < 1


def test_a_thread_that_waits_for_us_is_not() -> None:
    async def main() -> None:
        gate = threading.Event()
        waiting = asyncio.get_running_loop().run_in_executor(None, gate.wait, SHORT_S)
        await asyncio.sleep(1000)
        gate.set()
        assert await waiting

    began_s = time.monotonic()
    timewarp.run(main)
    assert time.monotonic() - began_s < SHORT_S / 2


@pytest.mark.parametrize("works", [True, False])
def test_a_child_in_real_time_holds_the_time_up_while_it_works(works: bool) -> None:
    line = "sleep 0.4; true" if works else "read _"

    async def main() -> float:
        loop = asyncio.get_running_loop()
        child = await asyncio.create_subprocess_exec("sh", "-c", line, stdin=subprocess.PIPE)
        began_s, real_s = loop.time(), time.monotonic()
        await asyncio.sleep(0.5 if works else 100)
        real_s = time.monotonic() - real_s
        assert child.stdin is not None
        child.stdin.close()
        await child.wait()
        assert loop.time() > began_s
        return real_s

    real_s = timewarp.run(main)
    if works:
        assert real_s > 0.3
    else:
        assert real_s < SHORT_S


OTHER = """
import asyncio, sys
from simclock import timewarp
async def main():
    reader, writer = await asyncio.open_unix_connection(sys.argv[2])
    for _ in range(5):
        await asyncio.sleep(100)
        writer.write(b"%d\\n" % asyncio.get_running_loop().clock.wall_ns())
    await asyncio.sleep(1)
    writer.close()
timewarp.run(main, timewarp.TimePage.open(sys.argv[1]))
"""


def test_loops_of_several_processes_share_a_page(time_page: TimePage, tmp_path: Path) -> None:
    """Whoever leads wakes the other, and both see one time."""

    async def main() -> list[float]:
        late: list[float] = []
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                late.append((loop.clock.wall_ns() - int(line)) / 1e9)
            writer.close()
            ended.set()

        async with await asyncio.start_unix_server(note, tmp_path / "socket"):
            command = [sys.executable, "-c", OTHER, time_page.path, str(tmp_path / "socket")]
            other = await asyncio.create_subprocess_exec(*command)
            began_s = loop.time()
            await ended.wait()
            assert loop.time() - began_s == pytest.approx(501, abs=2)
            assert await other.wait() == 0
        return late

    began_s = time.monotonic()
    late = timewarp.run(main, time_page)
    assert time.monotonic() - began_s < SHORT_S
    assert len(late) == 5
    assert all(0 <= seconds < 0.5 for seconds in late)


def test_when_the_leader_ends_another_loop_leads(tmp_path: Path) -> None:
    path = str(tmp_path / "page")
    leader = TimePage.create(path=path)
    assert leader.lead()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)
        threading.Timer(0.3, leader.close).start()
        await asyncio.sleep(1000)
        assert loop.jumper is not None

    began_s = time.monotonic()
    timewarp.run(main, TimePage.open(path))
    assert time.monotonic() - began_s < SHORT_S


def test_a_fixed_speed_scales_waiting() -> None:
    page = TimePage.create(50)
    began_s = time.monotonic()
    timewarp.run(lambda: asyncio.sleep(25), page)
    assert 0.45 < time.monotonic() - began_s < SHORT_S


def test_what_is_sent_during_the_look_is_read_before_the_jump(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has sent something and waits now has given the work on: nobody else works, but this loop
    does."""
    reader, writer = socket.socketpair()
    look, sent = Watch.all_due, []

    def sends_during_the_look(watch: Watch) -> object:
        due = look(watch)
        if due is not None and not sent:
            sent.append(writer.send(b"x"))
        return due

    async def main() -> float:
        loop = asyncio.get_running_loop()
        began_s, heard = loop.time(), loop.create_future()

        def hear() -> None:
            loop.remove_reader(reader)
            heard.set_result(loop.time() - began_s)

        loop.add_reader(reader, hear)
        loop.call_later(3600, lambda: None)
        waited_s: float = await heard
        return waited_s

    monkeypatch.setattr(Watch, "all_due", sends_during_the_look)
    with reader, writer:
        assert timewarp.run(main) < 1


def test_a_loop_that_worked_during_the_look_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(TimePage.create()) as page:
        members = Members(page)
        row = members.join(Kind.LOOP, pid=os.getpid())
        watch = Watch(page, this_architecture().calls, None)
        later, sooner = page.monotonic_ns() + 2_000_000_000, page.monotonic_ns() + 1_000_000_000
        members.wait_until(row, later)

        def look() -> bool:
            members.wait_until(row, sooner)
            return True

        monkeypatch.setattr(watch, "_nobody_runs", look)
        assert watch.all_due() is None
        due = watch.all_due()
        assert due is not None
        assert [one.instant_ns for one in due] == [sooner]
        watch.close()


def test_a_member_killed_at_work_holds_nothing_up_before_its_parent_asks(
    time_page: TimePage,
) -> None:
    """Who worked at the last look is looked at first, and alone while it works. Killed, its one
    thread is still there, in no call in which threads wait."""
    with (
        closing(Watch(time_page, this_architecture().calls, None)) as watch,
        subprocess.Popen(["sh", "-c", "while :; do :; done"]) as member,
    ):
        try:
            Members(time_page).join(Kind.PROGRAM, pid=member.pid)
            assert {watch.all_due() is None for _ in range(20)} == {True}
            assert [row.pid for row in watch.rows] == [member.pid]
        finally:
            member.kill()
        until_s = time.monotonic() + SHORT_S
        while watch.all_due() is None:
            assert time.monotonic() < until_s
        assert watch.rows == []
