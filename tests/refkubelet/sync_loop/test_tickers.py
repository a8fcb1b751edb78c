"""A ticker that leaves out ticks nobody wants ticks like one that asks each time (LIFE-004)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refkubelet.pod_workers.work_queue import WorkQueue
from refkubelet.sync_loop.inputs import Ticker
from simclock import VirtualLoop

STEPS = st.tuples(
    st.sampled_from("abc"),
    st.floats(0, 8, allow_nan=False, width=16),  # when it is asked for, in s
    st.floats(0, 20, allow_nan=False, width=16),  # in how many s it is due
)


def taken(
    steps: list[tuple[str, float, float]], *, asked_each_time: bool
) -> list[tuple[float, str]]:
    """What a queue gave, and when, whose ticks either all come or only those that are wanted."""
    loop = VirtualLoop()
    queue, given_s = WorkQueue(loop.clock), []

    def on_tick() -> None:
        given_s.extend((loop.time(), uid) for uid in queue.take_due())

    ticker = Ticker(0.7) if asked_each_time else Ticker(0.7, lambda: queue.next_s)
    queue.sooner = ticker.look_again
    loop.call_at(0.1, ticker.start, on_tick)
    for uid, at_s, delay_s in steps:
        loop.call_at(at_s + 0.03, queue.enqueue, uid, delay_s)
    loop.call_at(40, ticker.stop)
    loop.call_at(50, loop.stop)
    loop.run_forever()
    loop.close()
    return given_s


@given(st.lists(STEPS, max_size=8))
def test_no_tick_comes_early_late_or_not_at_all_LIFE_004(
    steps: list[tuple[str, float, float]],
) -> None:
    assert taken(steps, asked_each_time=False) == taken(steps, asked_each_time=True)


def test_nothing_runs_while_nothing_is_wanted_LIFE_004() -> None:
    loop = VirtualLoop()
    queue, ticks_s = WorkQueue(loop.clock), []
    ticker = Ticker(1.0, lambda: queue.next_s)
    queue.sooner = ticker.look_again
    loop.call_at(0.5, ticker.start, lambda: ticks_s.append((loop.time(), queue.take_due())))
    loop.call_at(3600.25, queue.enqueue, "a", 60.0)
    loop.call_at(7200, loop.stop)
    loop.run_forever()
    loop.close()
    assert ticks_s == [(3660.5, ("a",))]
    assert loop.jumps < 10
