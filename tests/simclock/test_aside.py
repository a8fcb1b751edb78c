"""Work beside the loop: who waits for it, for how long, and who does not."""

from __future__ import annotations

import asyncio
import errno
import os
import threading  # noqa: TID251 (which thread works)
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from simclock import RealClock, aside, call_aside
from simclock.aside import PIECE, WAITS


def counting(steps: int) -> Generator[None, None, int]:
    for _ in range(steps):
        yield
    return steps


async def test_on_a_real_loop_it_is_another_thread() -> None:
    assert await call_aside("id", threading.get_ident) != threading.get_ident()
    assert await aside("numbers", counting(3)) == 3


@pytest.mark.virtual_time
async def test_in_virtual_time_it_is_the_loop_and_others_have_their_turn() -> None:
    assert await call_aside("id", threading.get_ident) == threading.get_ident()
    work = asyncio.create_task(aside("numbers", counting(2 * PIECE + 1)))
    for _ in range(3):
        assert not work.done()
        await asyncio.sleep(0)
    assert await work == 2 * PIECE + 1


async def test_errors_come_back() -> None:
    def fail() -> None:
        raise FileNotFoundError(2, "none", "there")

    with pytest.raises(FileNotFoundError, match="there"):
        await call_aside("x", fail)


async def test_a_wait_without_end_is_given_up_and_the_next_at_once(tmp_path: Path) -> None:
    """Reading of a FIFO that nobody writes to stands for a server that does not answer."""
    os.mkfifo(tmp_path / "fifo")
    clock = RealClock()

    def wait() -> bytes:
        return (tmp_path / "fifo").read_bytes()

    with pytest.raises(TimeoutError, match=r"No answer within 0\.2 s: 'disk'"):
        await call_aside("disk", wait, quiet_s=0.2)
    began_s = clock.monotonic_s()
    with pytest.raises(TimeoutError, match="Earlier work there still has no answer"):
        await call_aside("disk", wait, quiet_s=60)
    assert clock.monotonic_s() - began_s < 30
    assert await call_aside("another disk", lambda: 1) == 1
    (tmp_path / "fifo").write_bytes(b"at last")
    async with asyncio.timeout(60):
        while True:
            try:
                assert await call_aside("disk", lambda: 2) == 2
            except TimeoutError:
                await asyncio.sleep(0.01)
            else:
                break


async def test_work_that_goes_on_is_waited_for_however_long_it_takes() -> None:
    tick = threading.Event()

    def slow() -> Generator[None, None, str]:
        for _ in range(8):
            tick.wait(0.1)
            yield
        return "done"

    assert await aside("slow", slow(), quiet_s=0.4) == "done"


async def test_a_cancelled_caller_ends_it_after_its_step() -> None:
    made, closed, at_work = [0], threading.Event(), threading.Event()

    def endless() -> Generator[None]:
        try:
            while True:
                made[0] += 1
                at_work.set()
                yield
        finally:
            closed.set()

    task = asyncio.create_task(aside("endless", endless()))
    while not at_work.is_set():  # noqa: ASYNC110 (another thread sets it)
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()
    steps = made[0]
    await asyncio.sleep(0.01)
    assert made[0] == steps


async def test_without_a_thread_there_is_an_error_and_the_work_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = []

    def begun() -> Generator[None]:
        try:
            yield
        finally:
            closed.append(True)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    work = begun()
    next(work)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(OSError, match="can't start new thread: 'disk'") as caught:
            await aside("disk", work)
    assert caught.value.errno == errno.EAGAIN
    assert closed == [True]
    assert await call_aside("disk", lambda: 1) == 1


def ending_early(monkeypatch: pytest.MonkeyPatch, count: int, meanwhile: object) -> list[float]:
    """Let the first waits end at once, as timers do that came due while the host stood still;
    `meanwhile` is called in each."""
    real, asked = asyncio.wait, []

    async def wait(futures: set[asyncio.Future[None]], timeout: float) -> object:
        asked.append(timeout)
        if len(asked) > count:
            return await real(futures, timeout=timeout)
        assert callable(meanwhile)
        meanwhile()
        return set(), futures

    monkeypatch.setattr(asyncio, "wait", wait)
    return asked


async def test_a_host_that_stood_still_is_no_lack_of_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = threading.Event()
    asked = ending_early(monkeypatch, 1, lambda: asyncio.get_running_loop().call_soon(go.set))
    assert await call_aside("disk", lambda: go.wait(60), quiet_s=60)
    assert asked == [60 / WAITS] * 2


async def test_work_that_has_just_ended_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is at its end; the loop has not been told yet."""

    def until_the_end() -> None:
        for thread in threading.enumerate():
            if thread.name == "aside":
                thread.join(60)

    ending_early(monkeypatch, WAITS, until_the_end)
    assert await call_aside("disk", lambda: 1, quiet_s=60) == 1


@pytest.mark.parametrize("first", [0, 1])
async def test_each_lost_work_counts_until_it_ends(first: int) -> None:
    """Two looks at the same thing are under way when it stops to answer; one of them ends."""
    gates = [threading.Event(), threading.Event()]
    works = [call_aside("disk", partial(gate.wait, 60), quiet_s=0.05) for gate in gates]
    for error in await asyncio.gather(*works, return_exceptions=True):
        assert isinstance(error, TimeoutError)
    gates[first].set()
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError, match="Earlier work"):
        await call_aside("disk", lambda: 1)
    gates[1 - first].set()
    async with asyncio.timeout(60):
        while True:
            try:
                assert await call_aside("disk", lambda: 2) == 2
                break
            except TimeoutError:
                await asyncio.sleep(0.01)
