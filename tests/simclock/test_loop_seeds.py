"""Seeds of the virtual loop: one order of steps for each, timers keep theirs."""

import asyncio
import random  # noqa: TID251 - to show that nothing draws from it

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simclock import NothingToWaitFor, run_virtual


async def three_steps_each(workers: int) -> list[int]:
    order: list[int] = []

    async def worker(number: int) -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(worker(number))
    return order


def order_of_steps(seed: int | None) -> list[int]:
    """Of six workers; each takes three steps, at the same moments as the others."""
    return run_virtual(lambda: three_steps_each(6), seed=seed)


def test_without_a_seed_the_order_is_asyncios_own() -> None:
    """Which is first come, first served, except among timers of one moment (a heap)."""
    order = order_of_steps(None)
    assert order == order_of_steps(None)
    assert [sorted(order[start : start + 6]) for start in (0, 6, 12)] == [list(range(6))] * 3


@given(st.integers(0, 2**64))
def test_a_seed_gives_one_order_in_which_all_take_part(seed: int) -> None:
    order = order_of_steps(seed)
    assert order == order_of_steps(seed)
    for start in range(0, 18, 6):
        assert sorted(order[start : start + 6]) == list(range(6))


def test_seeds_give_different_orders() -> None:
    assert len({tuple(order_of_steps(seed)) for seed in range(10)}) == 10


def test_the_order_does_not_hang_on_the_global_dice() -> None:
    random.seed(1)
    first = order_of_steps(3)
    random.seed(2)
    assert order_of_steps(3) == first


async def tasks_and_calls() -> list[str]:
    """Four of each, by turns: the names of those that ran, in order."""
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    async def step(name: str) -> None:
        seen.append(name)

    tasks = []
    for number in range(4):
        tasks.append(loop.create_task(step(f"task{number}")))
        loop.call_soon(seen.append, f"call{number}")
    await asyncio.gather(*tasks)
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_callbacks_keep_their_place_among_shuffled_steps(seed: int) -> None:
    """Only steps of tasks move: what asyncio itself schedules stays in order."""
    seen = run_virtual(tasks_and_calls, seed=seed)
    assert seen[1::2] == ["call0", "call1", "call2", "call3"]


async def timers(times: list[float], cancelled: set[int]) -> list[int]:
    """The numbers of the timers that ran, in order."""
    loop = asyncio.get_running_loop()
    ran: list[int] = []
    handles = [loop.call_at(when, ran.append, number) for number, when in enumerate(times)]
    for number in sorted(cancelled):
        handles[number].cancel()
    await asyncio.sleep(3)
    return ran


@given(st.lists(st.sampled_from([1.0, 2.0]), min_size=1, max_size=40), st.data())
def test_timers_of_the_same_instant_run_in_the_order_they_were_set(
    times: list[float], data: st.DataObject
) -> None:
    cancelled = data.draw(st.sets(st.integers(0, len(times) - 1)))
    ran = run_virtual(lambda: timers(times, cancelled))
    kept = [number for number in range(len(times)) if number not in cancelled]
    assert ran == sorted(kept, key=lambda number: times[number])


async def sleeps(duration_s: float) -> None:
    await asyncio.sleep(duration_s)


@pytest.mark.parametrize("forever_s", [float("inf"), float("nan")])
def test_a_sleep_without_end_is_nothing_to_wait_for(forever_s: float) -> None:
    with pytest.raises(NothingToWaitFor, match="sleeps for sleep"):
        run_virtual(lambda: sleeps(forever_s))
