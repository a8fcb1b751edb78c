"""VirtualLoop: when time moves, when it must not, and what is refused."""

import asyncio
import os
import threading  # noqa: TID251 - to show that there is none
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inotify_simple import INotify, flags
from loops import virtual_loop

from simclock import NothingToWaitFor, Rng, TimeLimitPassed, VirtualLoop, run_virtual


def loop_now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.virtual_time
async def test_time_starts_at_zero_and_jumps_to_the_next_timer() -> None:
    seen = [loop_now()]
    for duration_s in (1.0, 0.25, 86400.0 * 30):
        await asyncio.sleep(duration_s)
        seen.append(loop_now())
    assert seen == [0.0, 1.0, 1.25, 2592001.25]


@pytest.mark.virtual_time
async def test_one_jump_per_timer_and_none_without() -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    assert (loop_now(), virtual_loop().jumps) == (0.0, 0)
    await asyncio.gather(*(asyncio.sleep(5) for _ in range(10)))
    assert (loop_now(), virtual_loop().jumps) == (5.0, 1)


async def sleepers(durations: list[float]) -> list[tuple[float, float]]:
    """How long each was to sleep, and when it woke; in the order of waking."""
    woken: list[tuple[float, float]] = []

    async def one(duration_s: float) -> None:
        await asyncio.sleep(duration_s)
        woken.append((duration_s, loop_now()))

    await asyncio.gather(*map(one, durations))
    return woken


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
def test_timers_wake_in_order_and_at_their_own_time(durations: list[float]) -> None:
    woken = run_virtual(lambda: sleepers(durations))
    assert [wanted for wanted, _ in woken] == sorted(durations)
    assert all(at == wanted for wanted, at in woken)


@pytest.mark.parametrize("far_s", [1e3, 1e7, 1e9, 1e12])
@pytest.mark.virtual_time
async def test_no_spinning_at_any_distance(far_s: float) -> None:
    await asyncio.sleep(far_s)
    for _ in range(10):
        await asyncio.sleep(0.1)
    assert loop_now() == pytest.approx(far_s + 1, abs=0.01)
    assert virtual_loop().jumps == 11


@pytest.mark.parametrize("gap_s", [5e-10, 1e-12, 1e-15])
@pytest.mark.virtual_time
async def test_a_timer_never_runs_early_however_near_another_is(gap_s: float) -> None:
    """A loop that asks for the time would otherwise spin: time stands still meanwhile."""
    loop = asyncio.get_running_loop()
    due_s = 7.0
    loop.call_at(due_s - gap_s, lambda: None)
    rounds = 0
    while loop.time() < due_s and rounds < 10:
        rounds += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(due_s - loop.time()):
                await asyncio.Event().wait()
    assert rounds == 1


@pytest.mark.virtual_time
async def test_a_periodic_timer_does_not_drift() -> None:
    loop = asyncio.get_running_loop()
    ticks: list[float] = []
    done = asyncio.Event()

    def tick(at_s: float) -> None:
        ticks.append(loop.time())
        if len(ticks) == 1000:
            done.set()
        else:
            loop.call_at(at_s + 0.1, tick, at_s + 0.1)

    loop.call_at(0.1, tick, 0.1)
    await done.wait()
    expected, at_s = [], 0.0
    for _ in range(1000):
        at_s += 0.1
        expected.append(at_s)
    assert ticks == expected


@pytest.mark.virtual_time
async def test_time_stands_still_while_a_pipe_has_something_to_say() -> None:
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    try:
        arrived: list[float] = []
        for _ in range(3):
            os.write(writer, b"x")
        loop.call_later(10, os.write, writer, b"y")
        loop.add_reader(reader, lambda: arrived.append((os.read(reader, 1), loop.time())[1]))
        await asyncio.sleep(20)
        assert arrived == [0.0, 0.0, 0.0, 10.0]
        loop.remove_reader(reader)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.virtual_time
async def test_a_file_made_wakes_an_inotify_watcher_before_time_moves(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    with INotify(nonblocking=True) as inotify:
        inotify.add_watch(tmp_path, flags.CREATE)
        seen: list[tuple[str, float]] = []
        loop.add_reader(
            inotify.fileno(),
            lambda: seen.extend((event.name, loop.time()) for event in inotify.read(timeout=0)),
        )
        loop.call_later(7, (tmp_path / "pod.yaml").touch)
        await asyncio.sleep(60)
        loop.remove_reader(inotify.fileno())
        assert seen == [("pod.yaml", 7.0)]


@pytest.mark.virtual_time
async def test_readable_descriptors_are_served_in_order_of_their_numbers() -> None:
    loop = asyncio.get_running_loop()
    pipes = [os.pipe() for _ in range(5)]
    seen: list[int] = []
    for reader, _ in reversed(pipes):
        loop.add_reader(reader, lambda fd=reader: (os.read(fd, 1), seen.append(fd)))
    for _, writer in reversed(pipes):
        os.write(writer, b"x")
    await asyncio.sleep(1)
    assert seen == sorted(seen)
    assert len(seen) == 5
    for reader, writer in pipes:
        loop.remove_reader(reader)
        os.close(reader)
        os.close(writer)


async def waits_for_an_event() -> None:
    await asyncio.Event().wait()


async def waits_for_a_queue() -> None:
    await asyncio.Queue[int]().get()


async def waits_for_a_task() -> None:
    await asyncio.create_task(waits_for_an_event(), name="inner")


async def waits_for_three() -> None:
    await asyncio.sleep(2.5)
    first = asyncio.create_task(waits_for_an_event(), name="the-watcher")
    second = asyncio.create_task(waits_for_a_queue(), name="the-worker")
    third = asyncio.create_task(asyncio.Event().wait(), name="bare")
    await asyncio.gather(first, second, third)


async def waits_for_a_silent_descriptor() -> None:
    reader, writer = os.pipe()
    try:
        asyncio.get_running_loop().add_reader(reader, lambda: None)
        await asyncio.Event().wait()
    finally:
        asyncio.get_running_loop().remove_reader(reader)
        os.close(reader)
        os.close(writer)


async def ticks() -> None:
    for _ in range(1000):
        await asyncio.sleep(10)


async def waits_beside_a_ticker() -> None:
    ticking = asyncio.create_task(ticks(), name="ticker")
    await asyncio.Event().wait()
    await ticking


def test_a_run_that_can_never_end_lists_what_waits_for_what() -> None:
    with pytest.raises(NothingToWaitFor) as caught:
        run_virtual(waits_for_three)
    head, *lines = str(caught.value).splitlines()
    assert head == "nothing left to wait for at 2.500 s of virtual time:"
    here = Path(__file__).name
    by_name = {line.split()[0]: line for line in lines}
    assert f"{here}:" in by_name["the-watcher"]
    assert by_name["the-watcher"].endswith("in waits_for_an_event for Event.wait")
    assert by_name["the-worker"].endswith("in waits_for_a_queue for Queue.get")
    assert "Event.wait" in by_name["bare"]
    assert any("waits_for_three" in line and line.endswith("Future") for line in lines)
    assert len(lines) == 4


def test_a_task_that_waits_for_a_task_names_it() -> None:
    with pytest.raises(NothingToWaitFor, match="for task inner"):
        run_virtual(waits_for_a_task)


def test_a_silent_descriptor_is_nothing_to_wait_for() -> None:
    with pytest.raises(NothingToWaitFor):
        run_virtual(waits_for_a_silent_descriptor)


def test_the_time_limit_ends_a_run_that_only_ticks() -> None:
    with pytest.raises(TimeLimitPassed, match=r"next timer is at 610.000 s(.|\n)*ticker"):
        run_virtual(waits_beside_a_ticker, limit_s=600)


def test_a_run_may_reach_its_limit() -> None:
    assert run_virtual(lambda: asyncio.sleep(600, "done"), limit_s=600) == "done"


@pytest.mark.virtual_time
async def test_timeouts_and_wait_for() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.Event().wait()
    assert loop_now() == 30.0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(100), 5)
    assert loop_now() == 35.0
    async with asyncio.timeout(5):
        await asyncio.sleep(4)
    await asyncio.sleep(10)
    assert loop_now() == 49.0


@pytest.mark.virtual_time
async def test_cancellation_takes_no_time_and_leaves_no_timer() -> None:
    task = asyncio.create_task(asyncio.sleep(1000))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop_now() == 1.0
    await asyncio.sleep(1)
    assert loop_now() == 2.0


@pytest.mark.virtual_time
async def test_task_groups_queues_and_locks() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
    got: list[tuple[float, int]] = []

    async def producer() -> None:
        for number in range(4):
            await asyncio.sleep(1)
            await queue.put(number)

    async def consumer() -> None:
        for _ in range(4):
            await asyncio.sleep(1.5)
            got.append((loop_now(), await queue.get()))

    async with asyncio.TaskGroup() as group:
        group.create_task(producer())
        group.create_task(consumer())
    assert got == [(1.5, 0), (3.0, 1), (4.5, 2), (6.0, 3)]


async def fails_after_a_second() -> None:
    await asyncio.sleep(1)
    raise ValueError("from main")


def test_the_result_and_the_error_of_main_come_out() -> None:
    assert run_virtual(lambda: asyncio.sleep(1, 7)) == 7
    with pytest.raises(ValueError, match="from main"):
        run_virtual(fails_after_a_second)


def test_the_loop_closes_cleanly_with_tasks_and_generators_open() -> None:
    closed: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(3)
            closed.append("task")

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            closed.append("generator")

    async def main() -> VirtualLoop:
        task = asyncio.create_task(background())
        generator = numbers()
        await anext(generator)
        await asyncio.sleep(1)
        assert not task.done()
        virtual_loop().kept = (task, generator)  # type: ignore[attr-defined]
        return virtual_loop()

    before = set(threading.enumerate())
    loop = run_virtual(main)
    assert sorted(closed) == ["generator", "task"]
    assert loop.is_closed()
    new = set(threading.enumerate()) - before
    assert not any("asyncio" in thread.name for thread in new)


@pytest.mark.virtual_time
async def test_run_virtual_inside_a_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="cannot be called inside a running one"):
        run_virtual(waits_for_an_event)


@pytest.mark.virtual_time
async def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match="wants a thread, and virtual time"):
        await asyncio.get_running_loop().run_in_executor(None, print)
    with pytest.raises(RuntimeError, match="wants a thread"):
        await asyncio.to_thread(print)  # noqa: TID251 - that is what is refused
    with pytest.raises(RuntimeError, match="wants a thread"):
        await asyncio.get_running_loop().getaddrinfo("localhost", 80)


@pytest.mark.virtual_time
async def test_child_processes_and_networks_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"a child process .*true.* is asked for"):
        await asyncio.create_subprocess_exec("true")
    with pytest.raises(RuntimeError, match="a child process"):
        await asyncio.create_subprocess_shell("true")
    with pytest.raises(RuntimeError, match="a network connection"):
        await asyncio.open_connection("127.0.0.1", 1)
    with pytest.raises(RuntimeError, match="a network server"):
        await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    with pytest.raises(RuntimeError, match="a network endpoint"):
        await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )


def test_a_coroutine_in_place_of_its_function_is_refused() -> None:
    wrong: Any = fails_after_a_second()
    with pytest.raises(TypeError, match=r"run_virtual\((\w+)\), not run_virtual\(\1\(\)\)"):
        run_virtual(wrong)


def order_of(debug: bool, seed: int) -> list[tuple[int, float]]:
    """What a random mix of callbacks, timers and cancels does, and when."""
    seen: list[tuple[int, float]] = []
    rng = Rng(seed).stream("what happens")
    handles: list[asyncio.Handle] = []

    def act(number: int) -> None:
        loop = asyncio.get_running_loop()
        seen.append((number, loop.time()))
        if number > 150:
            return
        for later in range(rng.randrange(3)):
            new = number * 3 + later + 1
            way = rng.randrange(3)
            if way == 0:
                handles.append(loop.call_soon(act, new))
            elif way == 1:
                handles.append(loop.call_later(rng.choice([0, 0.5, 1]), act, new))
            else:
                handles.append(loop.call_at(loop.time() + rng.choice([0, 1]), act, new))
        if handles and rng.random() < 0.4:
            handle = rng.choice(handles)
            handle.cancel()
            assert handle.cancelled()

    async def main() -> None:
        asyncio.get_running_loop().set_debug(debug)
        for number in range(5):
            act(number)
        await asyncio.sleep(20)

    run_virtual(main)
    return seen


@pytest.mark.parametrize("seed", range(30))
def test_callbacks_run_in_one_order_in_debug_mode_and_out_of_it(seed: int) -> None:
    assert order_of(True, seed) == order_of(False, seed)


@pytest.mark.parametrize("debug", [True, False])
def test_a_closed_loop_takes_nothing(debug: bool) -> None:
    loop = VirtualLoop()
    loop.set_debug(debug)
    loop.close()
    for add in (lambda: loop.call_soon(print), lambda: loop.call_later(1, print)):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            add()
