"""Timers of programs that share jumps, because they may come late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from simclock.timewarp.jumper import Jumper
from simclock.timewarp.loop import WarpedLoop
from simclock.timewarp.members import NEVER, Kind, Row
from simclock.timewarp.pages import TimePage
from simclock.timewarp.threads import Sleep
from simclock.timewarp.watch import Due

MILLISECOND = 1_000_000
SLACK = 25 * MILLISECOND
NO_DRIFT = MILLISECOND
"""The clock goes on by less while a test looks at it."""


@pytest.fixture
def page() -> Iterator[TimePage]:
    with closing(TimePage.create(1 / 1024)) as page:
        yield page


def sleeping(number: int, instant_ns: int) -> Due:
    return Due(instant_ns, sleep=Sleep(1, number, b"%d" % number, 1))


def waiting(number: int, instant_ns: int) -> Due:
    return Due(instant_ns, row=Row(number, Kind.LOOP, 1, 1, 1, 1))


def jumped_to(
    page: TimePage, due: list[Due], until_ns: int = NEVER, slack_ns: int = SLACK
) -> tuple[int, list[Due]]:
    """Where a jump with those members leads to, and whom it wakes."""
    woken: list[Due] = []
    with closing(Jumper(page, timer_slack_ns=slack_ns)) as jumper:
        jumper._watch.all_due = lambda: due  # type: ignore[method-assign]
        jumper._wake = woken.extend  # type: ignore[method-assign,assignment]
        assert jumper.move(until_ns)
    return page.monotonic_ns(), woken


def test_timers_within_the_slack_share_a_jump(page: TimePage) -> None:
    now = page.monotonic_ns()
    early, late, later = (
        sleeping(number, now + at * MILLISECOND) for number, at in enumerate((100, 120, 126))
    )
    instant, woken = jumped_to(page, [later, late, early])
    assert instant - now == pytest.approx(125 * MILLISECOND, abs=NO_DRIFT)
    assert woken == [late, early]


def test_loops_are_never_late_and_take_those_that_are_due_along(page: TimePage) -> None:
    now = page.monotonic_ns()
    program, loop = sleeping(1, now + 100 * MILLISECOND), waiting(2, now + 110 * MILLISECOND)
    instant, woken = jumped_to(page, [program, loop])
    assert instant - now == pytest.approx(110 * MILLISECOND, abs=NO_DRIFT)
    assert woken == [program, loop]


def test_whatever_waits_no_loop_is_late_and_no_program_early_nor_later_than_the_slack(
    page: TimePage,
) -> None:
    random = Random(37)
    for _ in range(2000):
        now = page.monotonic_ns()
        instants = [now + random.randrange(1, 300 * MILLISECOND) for _ in range(6)]
        due = [
            random.choice((sleeping, waiting))(number, instant)
            for number, instant in enumerate(instants)
        ]
        until = random.choice((NEVER, now + random.randrange(1, 300 * MILLISECOND)))
        slack = random.choice((0, SLACK))
        instant, woken = jumped_to(page, due, until, slack)
        assert all(waiter.instant_ns <= instant for waiter in woken)
        assert instant <= until + NO_DRIFT
        for waiter in due:
            may_be_late = slack if waiter.sleep is not None else 0
            assert instant <= waiter.instant_ns + may_be_late + NO_DRIFT
        if not woken:
            assert instant >= until


def test_a_ticker_of_a_program_is_late_by_the_slack_and_misses_no_tick(sleeper: Path) -> None:
    """The loop beside it is not: it sleeps exactly, and its program is woken with it."""

    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpedLoop)
        program = await asyncio.create_subprocess_exec(
            *loop.page.prefix, str(sleeper), "ticks", "200", stdout=asyncio.subprocess.PIPE
        )
        assert program.stdout is not None
        reading = asyncio.ensure_future(program.stdout.read())
        before_s = loop.time()
        await asyncio.sleep(3)
        slept_s = loop.time() - before_s
        mean_s = float((await reading).split()[0])
        await program.wait()
        return mean_s, slept_s

    with asyncio.Runner(loop_factory=lambda: WarpedLoop(timer_slack_s=0.025)) as runner:
        mean_s, slept_s = runner.run(main())
    assert 0.02 < mean_s < 0.04
    assert slept_s == pytest.approx(3, abs=0.01)
