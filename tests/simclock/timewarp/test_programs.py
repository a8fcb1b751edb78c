"""Go programs in warped time, by the command line and beside an asyncio loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from go_programs import built

from simclock import timewarp
from simclock.timewarp.pages import TimePage

SHORT_S = 20.0
"""Far less than the program would sleep, far more than it takes on a busy machine."""


def run(*words: str | Path, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """`python -m simclock.timewarp` with that program; it must not take long."""
    command = [sys.executable, "-m", "simclock.timewarp", *options, "--", *map(str, words)]
    began_s = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert time.monotonic() - began_s < SHORT_S
    return ended


def told(text: str) -> dict[str, float]:
    """What the program said -> when, in its own seconds."""
    return {line.split(" ", 1)[1]: float(line.split(" ", 1)[0]) for line in text.splitlines()}


def test_sleeps_of_an_hour_take_no_time_and_are_exact(sleeper: Path) -> None:
    ended = run(sleeper, "sleep", "3600", "0.25", "60")
    times = [float(line.split()[0]) for line in ended.stdout.splitlines()]
    assert times == pytest.approx([3600, 3600.25, 3660.25], abs=0.1)
    assert all(seen >= wanted for seen, wanted in zip(times, [3600, 3600.25, 3660.25], strict=True))
    assert ended.returncode == 0


def test_every_way_to_wait_ends_when_it_should(sleeper: Path) -> None:
    seen = told(run(sleeper, "ways").stdout)
    wanted = {"sleep": 10, "deadline": 15, "func": 25, "ticker": 30, "context": 35, "after": 60}
    assert list(seen) == list(wanted)
    assert seen == pytest.approx(wanted, abs=0.1)


def test_a_ticker_misses_no_tick(sleeper: Path) -> None:
    mean_s, worst_s = map(float, run(sleeper, "ticks", "600").stdout.split())
    assert 0 <= mean_s < 0.01
    assert worst_s < 0.1


@pytest.mark.parametrize("options", [["-ldflags=-s -w"], ["-buildmode=pie"]])
def test_stripped_and_movable_programs_are_as_others(tmp_path: Path, options: list[str]) -> None:
    program = built(tmp_path / "program", *options)
    assert list(told(run(program, "ways").stdout)) == [
        *("sleep", "deadline", "func", "ticker", "context", "after")
    ]


def test_the_wall_clock_is_the_machines_at_first(sleeper: Path) -> None:
    wall, close = run(sleeper, "now").stdout.split()
    assert abs(int(wall) - time.time_ns()) < SHORT_S * 1e9
    assert close == "true"


def test_a_child_of_the_program_lives_in_real_time_and_is_waited_for(sleeper: Path) -> None:
    began_s = time.monotonic()
    seen = told(run(sleeper, "fork").stdout)
    assert time.monotonic() - began_s > 0.5
    assert seen['child "done\\n" <nil>'] < 1
    assert seen["slept"] == pytest.approx(60, abs=1)


def test_while_a_program_computes_its_time_passes_slowly(sleeper: Path) -> None:
    began_s = time.monotonic()
    assert "spun" in run(sleeper, "spin").stdout
    assert time.monotonic() - began_s > 5


def test_a_fixed_speed_is_kept_roughly(sleeper: Path) -> None:
    began_s = time.monotonic()
    ended = run(sleeper, "sleep", "20", "20", options=["--speed", "20"])
    times = [float(line.split()[0]) for line in ended.stdout.splitlines()]
    assert times[0] >= 20
    assert times[1] >= 40
    assert time.monotonic() - began_s >= 2


def test_exit_codes_and_signals_are_those_of_the_program(sleeper: Path) -> None:
    """Also where these tests run in the background of a shell, which ignores SIGINT there."""
    command = ["env", "--default-signal=INT", sys.executable, "-m", "simclock.timewarp", "--"]
    for number, code in ((signal.SIGTERM, 7), (signal.SIGINT, 130)):
        with subprocess.Popen(
            [*command, str(sleeper), "forever"], stdout=subprocess.PIPE, text=True
        ) as program:
            try:
                assert program.stdout is not None
                assert "ready" in program.stdout.readline()
                program.send_signal(number)
                assert program.wait(SHORT_S) == code
            finally:
                program.kill()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["/bin/sh"], "/bin/sh was not built by Go"),
        (["/no/such/program"], "/no/such/program: no such program"),
    ],
)
def test_refusals_are_one_sentence_and_exit_code_2(words: list[str], why: str) -> None:
    ended = run(*words)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"timewarp: {why}")
    assert len(ended.stderr.splitlines()) == 1


def test_wrong_options_are_exit_code_2(sleeper: Path) -> None:
    ended = run(sleeper, "now", options=["--speed", "0.5"])
    assert ended.returncode == 2
    assert "--speed 0.5: wanted more than 1, at most 1024" in ended.stderr


# -- beside a loop -----------------------------------------------------------------------------


async def started(page: TimePage, *words: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *page.prefix, *map(str, words), stdout=asyncio.subprocess.PIPE
    )


async def output(program: asyncio.subprocess.Process) -> str:
    assert program.stdout is not None
    return (await program.stdout.read()).decode()


def test_a_loop_and_programs_have_one_time(sleeper: Path, time_page: TimePage) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        first = await started(time_page, sleeper, "forever")
        assert first.stdout is not None
        assert b"ready" in await first.stdout.readline()
        began_s = loop.time()
        second = await started(time_page, sleeper, "sleep", "100")
        assert told(await output(second))["slept"] == pytest.approx(100, abs=0.1)
        assert loop.time() - began_s == pytest.approx(100, abs=1)
        await asyncio.sleep(900)
        first.terminate()
        assert told(await output(first))["told"] == pytest.approx(1000, abs=1)
        assert [await first.wait(), await second.wait()] == [7, 0]

    began_s = time.monotonic()
    timewarp.run(main, time_page)
    assert time.monotonic() - began_s < SHORT_S


def test_a_killed_program_holds_nothing_up(sleeper: Path, time_page: TimePage) -> None:
    async def main() -> None:
        for _ in range(3):
            program = await started(time_page, sleeper, "forever")
            assert program.stdout is not None
            assert b"ready" in await program.stdout.readline()
            program.kill()
            await output(program)
            await program.wait()
            await asyncio.sleep(3600)

    began_s = time.monotonic()
    timewarp.run(main, time_page)
    assert time.monotonic() - began_s < SHORT_S


def test_programs_with_pages_of_their_own_have_times_of_their_own(sleeper: Path) -> None:
    pages = [TimePage.create(), TimePage.create()]
    pages[1].jump(10**9 * 86_400)

    async def wall(page: TimePage) -> int:
        program = await started(page, sleeper, "now")
        said = await output(program)
        assert await program.wait() == 0
        return int(said.split()[0])

    first = timewarp.run(lambda: wall(pages[0]), pages[0])
    second = timewarp.run(lambda: wall(pages[1]), pages[1])
    assert 86_400 <= (second - first) / 1e9 < 86_400 + SHORT_S


def test_the_program_keeps_its_process_and_gets_no_descriptor(
    sleeper: Path, time_page: TimePage
) -> None:
    async def main() -> None:
        program = await started(time_page, sleeper, "forever")
        assert program.stdout is not None
        await program.stdout.readline()
        assert os.readlink(f"/proc/{program.pid}/exe") == str(sleeper)
        links = [os.readlink(f"/proc/{program.pid}/fd/{n}") for n in range(3)]
        status = Path(f"/proc/{program.pid}/status").read_text()
        assert "TracerPid:\t0" in status
        opened = os.listdir(f"/proc/{program.pid}/fd")
        found = [os.readlink(f"/proc/{program.pid}/fd/{number}") for number in opened]
        assert not [link for link in found if "timewarp" in link], links
        program.kill()
        await output(program)
        await program.wait()

    timewarp.run(main, time_page)


def test_a_program_does_not_wait_for_imports_of_a_loop(tmp_path: Path) -> None:
    """Each start of a program in a suite begins with this prefix."""
    python, *options, _, end = TimePage.create().prefix
    command = [python, "-X", "importtime", *options, str(tmp_path / "page"), end, "program"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = process.stderr.splitlines()
    modules = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    assert "simclock.timewarp.joining" in modules
    assert modules.isdisjoint(
        {"asyncio", "simclock", "simclock.virtual_loop", "argparse", "shutil"}
    )
