"""A task that sleeps on the spot, while nothing else happens, goes the same way as one that waits
for a timer: same order, same times, same numbers drawn."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simclock
from simclock import NothingToWaitFor, TimeLimitPassed, VirtualLoop, run_virtual

Sleep = Callable[[float], Awaitable[None]]
STEPS = (
    "sleep", "short", "wake", "wait", "limit", "child", "call", "pipe", "cancel", "paused", "yield",
)  # fmt: skip
Program = list[list[tuple[str, int]]]
PROGRAMS = st.lists(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 12)), max_size=12),
    min_size=1,
    max_size=5,
)


class World:
    """Tasks that run the steps of a program, and what was seen of them."""

    def __init__(self, sleep: Sleep) -> None:
        self.sleep = sleep
        self.seen: list[object] = []
        self.bell = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.tasks: list[asyncio.Task[None]] = []
        self.reader, self.writer = os.pipe()
        self.loop.add_reader(self.reader, self.read)

    def read(self) -> None:
        self.note("read", os.read(self.reader, 1))

    def note(self, *what: object) -> None:
        self.seen.append((*what, self.loop.time()))

    async def run(self, program: Program) -> None:
        self.tasks = [asyncio.create_task(self.steps(n, each)) for n, each in enumerate(program)]
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.loop.remove_reader(self.reader)
        os.close(self.reader)
        os.close(self.writer)

    async def steps(self, name: int, steps: list[tuple[str, int]]) -> None:
        for step, number in steps:
            self.note(name, step, number)
            try:
                await self.step(step, number)
            except TimeoutError:
                self.note(name, "late")

    async def step(self, step: str, number: int) -> None:
        match step:
            case "sleep":
                await self.sleep(number / 10)
            case "short":
                for _ in range(number):
                    await self.sleep(0.01)
            case "wake":
                self.bell.set()
                self.bell.clear()
            case "wait":
                async with asyncio.timeout(number / 7):
                    await self.bell.wait()
            case "limit":
                async with asyncio.timeout(number / 20):
                    await self.sleep(0.3)
            case "child":
                steps = [("sleep", number)]
                await asyncio.gather(self.steps(100 + number, steps), self.sleep(0.2))
            case "call":
                self.loop.call_later(number / 10, self.note, "called", number)
                self.loop.call_soon(self.note, "soon", number)
            case "pipe":
                os.write(self.writer, b"x")
                await self.sleep(number / 10)
            case "yield":
                os.write(self.writer, b"y")
                for _ in range(number):
                    await asyncio.sleep(0)
            case "cancel":
                self.tasks[number % len(self.tasks)].cancel()
                await self.sleep(number / 10)
            case "paused":
                assert isinstance(self.loop, VirtualLoop)
                self.loop.stand_still(number / 30)
                await self.sleep(number / 20)


def lived(program: Program, sleep: Sleep, seed: int | None) -> list[object]:
    """What was seen, the end, how often time jumped, and the next number of the seed's."""

    async def main() -> list[object]:
        world = World(sleep)
        await world.run(program)
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        drawn = loop.shuffle.random() if loop.shuffle else None
        return [*world.seen, loop.time(), loop.jumps, drawn]

    return run_virtual(main, seed=seed)


@given(PROGRAMS, st.none() | st.integers(0, 5))
def test_both_ways_of_sleeping_go_the_same_way(program: Program, seed: int | None) -> None:
    assert lived(program, simclock.sleep, seed) == lived(program, asyncio.sleep, seed)


def test_who_is_alone_needs_no_pass_of_the_loop() -> None:
    async def main() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        before = loop.passes
        for _ in range(1000):
            await loop.clock.sleep(0.5)
        return loop.passes - before, loop.time()

    assert run_virtual(main) == (0, 500.0)


def test_a_limit_of_time_holds_for_who_is_alone() -> None:
    async def main() -> None:
        while True:
            await simclock.sleep(7)

    with pytest.raises(TimeLimitPassed):
        run_virtual(main, limit_s=100)
    with pytest.raises(NothingToWaitFor):
        run_virtual(lambda: simclock.sleep(float("inf")))


def test_a_task_that_was_called_off_by_itself_does_not_sleep() -> None:
    async def main() -> float:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await simclock.sleep(5)
        except asyncio.CancelledError:
            task.uncancel()
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 0.0


def test_the_clock_of_another_loop_does_not_move() -> None:
    other = VirtualLoop()
    try:
        run_virtual(lambda: other.clock.sleep(5))
        assert other.time() == 0.0
    finally:
        other.close()


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="from Python 3.12 on")
def test_an_eager_task_does_not_move_the_clock_of_the_step_that_made_it() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        task = loop.create_task(simclock.sleep(5))
        now = loop.time()
        await task
        return now

    assert run_virtual(main) == 0.0


def test_a_wait_for_a_time_ends_at_that_very_time_or_is_not_begun() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        assert loop.clock.wait_alone(0.1 + 0.2)
        assert loop.clock.monotonic_s() == 0.1 + 0.2
        loop.call_at(1.0, lambda: None)
        assert not loop.clock.wait_alone(1.0)
        assert not simclock.RealClock().wait_alone(1.0)
        assert loop.time() == 0.1 + 0.2

    run_virtual(main)
