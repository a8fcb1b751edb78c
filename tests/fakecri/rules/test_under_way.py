"""The limit of a call does what `asyncio.timeout` does, whoever cancels what and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakecri.errors import CriError, unknown
from fakecri.rules.under_way import CallsUnderWay
from simclock import run_virtual

TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.0])
Answer = Callable[[Callable[[], Awaitable[str]], float | None], Awaitable[str]]


async def by_asyncio(work: Callable[[], Awaitable[str]], timeout_s: float | None) -> str:
    async with asyncio.timeout(timeout_s):
        return await work()


async def of_a_mix(answer: Answer, mix: tuple[float | None, float, float | None, str]) -> object:
    """How a call with a limit ends, when, and what its task is told. `mix`: the limit, how long the
    work takes, when the caller cancels it, and what the work does with a cancel."""
    timeout_s, takes_s, cancel_s, manner = mix
    loop = asyncio.get_running_loop()

    async def work() -> str:
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            if manner == "answers":
                return "in the end"
            if manner == "fails":
                raise ValueError("no") from None
            if manner == "lingers":
                await asyncio.sleep(1)
            raise
        if manner == "times out":
            raise TimeoutError("own")
        return "done"

    async def outer() -> str:
        async with asyncio.timeout(2.5):
            return await answer(work, timeout_s)

    task = loop.create_task(outer())
    if cancel_s is not None:
        loop.call_later(cancel_s, task.cancel)
    try:
        ended: object = await task
    except BaseException as error:
        ended = (type(error), str(error))
    return ended, loop.time(), task.cancelled(), task.cancelling()


MIXES = st.tuples(
    st.none() | TIMES,
    TIMES,
    st.none() | TIMES,
    st.sampled_from(["", "answers", "fails", "lingers", "times out"]),
)


@settings(max_examples=400, deadline=None)
@given(MIXES)
def test_a_limit_ends_a_call_as_a_timeout_of_asyncio_does(
    mix: tuple[float | None, float, float | None, str],
) -> None:
    calls = CallsUnderWay()
    ours = run_virtual(lambda: of_a_mix(calls.answer, mix))
    assert ours == run_virtual(lambda: of_a_mix(by_asyncio, mix))
    assert not calls.unary


@pytest.mark.virtual_time
async def test_all_calls_are_broken_off_once_with_the_first_error() -> None:
    calls, loop = CallsUnderWay(), asyncio.get_running_loop()

    async def work() -> str:
        await asyncio.sleep(60)
        return "done"

    tasks = [asyncio.create_task(calls.answer(work, limit)) for limit in (None, 5.0, 90.0)]
    await asyncio.sleep(1)
    calls.break_off(unknown("first"))
    calls.break_off(unknown("second"))
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [end.details() for end in ends if isinstance(end, CriError)] == ["first"] * 3
    assert (loop.time(), calls.unary) == (1.0, {})


def test_without_a_loop_there_is_nothing_to_break_off() -> None:
    CallsUnderWay().break_off(unknown("nobody hears"))
