"""An asyncio loop whose clock jumps to the next timer whenever nothing can run.

How it works. asyncio's loop does, for ever: ask the selector which descriptors are readable,
waiting at most until the next timer; run what became runnable. `_JumpingSelector` answers the wait
without waiting: it polls the real selector once and, if no watched descriptor has anything to say,
moves the virtual clock by exactly the time-out the loop asked for. So time moves only when no
callback is runnable (the loop then asks for a time-out above 0) and nothing can be read.

What must never happen: time moves while work is ready; a run waits in real time; a run that waits
for nothing hangs (it fails with `NothingToWaitFor` and lists who waits for what); the order of
callbacks depends on anything but the seed. Threads are refused, because the loop cannot see
whether they still work.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from asyncio import events, tasks
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from simtime.clock import VirtualClock

T = TypeVar("T")
DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)


class NothingToWaitFor(RuntimeError):
    """Every task waits, no timer is set and no descriptor is watched that could wake one."""


class _JumpingSelector(selectors.BaseSelector):
    """Polls a real selector; turns a wait into a jump of the loop's clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.get_key(fileobj)

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready and timeout is None:
            raise NothingToWaitFor(self._loop.describe_waiters())
        if not ready and timeout:
            self._loop.jump(timeout)
        if self._loop.shuffle is not None:
            self._loop.shuffle_ready()
        return sorted(ready, key=lambda item: item[0].fd)


class VirtualLoop(asyncio.SelectorEventLoop):
    """The virtual-time loop. `seed` None keeps asyncio's own order of runnable callbacks; a number
    permutes the steps of different tasks that are runnable at the same time, in an order that
    depends on the seed alone. Time starts at 0 s; `clock` gives the wall clock from `start` on."""

    def __init__(self, *, seed: int | None = None, start: datetime = DEFAULT_START) -> None:
        self._virtual_s = 0.0
        super().__init__(_JumpingSelector(self))
        self.shuffle = None if seed is None else random.Random(seed)
        self.clock = VirtualClock(self, start)
        self.jumps = 0
        # Timers due within this much of "now" run together; the default (the machine clock's
        # resolution) would make the order of near timers depend on the machine.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual_s

    def jump(self, duration_s: float) -> None:
        """Move the clock by `duration_s`; only the selector calls this."""
        when = self._next_timer_s()
        self._virtual_s = when if when is not None else self._virtual_s + duration_s
        self.jumps += 1

    def _next_timer_s(self) -> float | None:
        # The loop asks for `when - now`; adding that back to `now` can miss `when` by a rounding
        # error and spin. Taking the timer's own time is exact.
        scheduled: list[asyncio.TimerHandle] = getattr(self, "_scheduled", [])
        return scheduled[0].when() if scheduled else None

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError(
            f"{func!r} wants a thread, and virtual time cannot see whether a thread still works; "
            "call it directly, or run this on a real loop"
        )

    def shuffle_ready(self) -> None:
        """Permute the runnable steps of different tasks; all other callbacks keep their place."""
        ready: deque[events.Handle] = getattr(self, "_ready")
        places = [i for i, handle in enumerate(ready) if _is_task_step(handle)]
        if len(places) < 2 or self.shuffle is None:
            return
        steps = [ready[i] for i in places]
        self.shuffle.shuffle(steps)
        for i, handle in zip(places, steps, strict=True):
            ready[i] = handle

    def describe_waiters(self) -> str:
        """One line per unfinished task: its name, its coroutine and the place where it waits."""
        lines = sorted(_describe_task(task) for task in asyncio.all_tasks(self))
        listed = "\n".join(lines) or "  (no task at all)"
        return f"nothing left to wait for at {self._virtual_s:.3f} s of virtual time:\n{listed}"


def _is_task_step(handle: events.Handle) -> bool:
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return isinstance(owner, tasks.Task)


def _describe_task(task: asyncio.Task[Any]) -> str:
    coroutine: Any = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    place = "not started"
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return f"  {task.get_name()} ({name}) waits at {place}"


def run_virtual(
    main: Callable[[], Awaitable[T]],
    *,
    seed: int | None = None,
    start: datetime = DEFAULT_START,
) -> T:
    """Run `main()` to its end in virtual time and return its result.

    Raises `NothingToWaitFor` when it can never end. Inside, `asyncio.get_running_loop()` is a
    `VirtualLoop`, and its `clock` is the `Clock` to hand out.
    """

    async def body() -> T:
        return await main()

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed=seed, start=start)) as runner:
        return runner.run(body())
