"""An asyncio loop whose clock jumps to the next timer whenever nothing can run.

How it works. asyncio's loop does, for ever: ask the selector which descriptors are readable,
waiting at most until the next timer; run what became runnable. `_JumpingSelector` answers the wait
without waiting: it polls the real selector once and, if no watched descriptor has anything to say,
moves the virtual clock to the next timer. So time moves only when no callback is runnable (the
loop then asks for a time-out above 0) and nothing can be read.

What must never happen: time moves while work is ready; a run waits in real time; a run that waits
for nothing hangs (it fails with `NothingToWaitFor` and lists who waits for what); the order of
callbacks depends on anything but the seed. Threads, child processes and network connections are
refused, because the loop cannot see whether the other side still works.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import selectors
from asyncio import events, tasks
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from datetime import UTC, datetime
from itertools import count
from typing import Any, NoReturn, TypeVar

from simtime.clock import VirtualClock
from simtime.waiters import describe_tasks

T = TypeVar("T")
DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)


_PASSES_UNASKED = 8
"""How many passes in a row with work at hand go by without a look at the descriptors."""


class NothingToWaitFor(RuntimeError):
    """Every task waits, no timer is set, and no watched descriptor is readable.

    Nothing outside a virtual run ever wakes it, so this state would last for ever.
    """


class TimeLimitPassed(RuntimeError):
    """The run went on beyond the limit of virtual time it was given."""


class _JumpingSelector(selectors.BaseSelector):
    """Polls a real selector; turns a wait into a jump of the loop's clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()
        self._unasked = 0

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
        if timeout == 0 and self._unasked < _PASSES_UNASKED:
            self._unasked += 1
            ready = []
        else:
            self._unasked = 0
            ready = self._real.select(0)
        if not ready and timeout is None:
            raise NothingToWaitFor(self._loop.describe_waiters())
        if not ready and timeout:
            self._loop.jump()
        if self._loop.shuffle is not None:
            self._loop.shuffle_ready()
        if len(ready) > 1:
            ready.sort(key=lambda item: item[0].fd)
        return ready


class _Timer(asyncio.TimerHandle):
    """A timer with its number: of two that are due at the same time, the older one runs first.

    asyncio leaves that to its heap. Under a clock that jumps, equal times are the rule."""

    __slots__ = ("key",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: VirtualLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.key = (when, next(loop.timer_numbers))
        self._scheduled = True  # what asyncio's call_at sets: the loop counts it if cancelled

    def __lt__(self, other: Any) -> bool:
        return bool(self.key < other.key)


class VirtualLoop(asyncio.SelectorEventLoop):
    """The virtual-time loop. `seed` None keeps asyncio's own order of runnable callbacks; a number
    permutes the steps of different tasks that are runnable at the same time, in an order that
    depends on the seed alone. Time starts at 0 s; `clock` gives the wall clock from `start` on.
    With `limit_s` the run fails with `TimeLimitPassed` instead of going beyond that time."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        start: datetime = DEFAULT_START,
        limit_s: float | None = None,
    ) -> None:
        self._virtual_s = 0.0
        self.timer_numbers = count()
        super().__init__(_JumpingSelector(self))
        self.shuffle = None if seed is None else random.Random(seed)
        self.clock = VirtualClock(self, start)
        self.jumps = 0
        self._limit_s = math.inf if limit_s is None else limit_s
        # asyncio runs timers that are due within this. None may run before its time, by however
        # little: it would find itself not yet due and, time standing still, ask again for ever.
        self._clock_resolution = math.ulp(0.0)

    def time(self) -> float:
        return self._virtual_s

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(getattr(self, "_scheduled"), timer)
        return timer

    def jump(self) -> None:
        """Move the clock to the next timer; only the selector calls this."""
        # The loop asks for `when - now`; adding that back to `now` can miss `when` by a rounding
        # error and spin. Taking the timer's own time is exact.
        scheduled: list[asyncio.TimerHandle] = getattr(self, "_scheduled")
        when = scheduled[0].when()
        if when > self._limit_s:
            raise TimeLimitPassed(
                f"the next timer is at {when:.3f} s of virtual time, the limit is "
                f"{self._limit_s:.3f} s:\n{describe_tasks(self)}"
            )
        self._virtual_s = when
        self._clock_resolution = math.ulp(when)
        self.jumps += 1

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
        """What `NothingToWaitFor` says: the time, and one line per unfinished task."""
        head = f"nothing left to wait for at {self._virtual_s:.3f} s of virtual time:"
        return f"{head}\n{describe_tasks(self)}"

    # -- refused: what the loop cannot see -------------------------------------------------------

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise _refused(f"{func!r} wants a thread", "call it directly")

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused(f"a child process {args[1:]!r} is asked for", "fake what it does")

    async def subprocess_shell(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused(f"a child process {args[1:]!r} is asked for", "fake what it does")

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused("a network connection is asked for", "call the other side in-process")

    async def create_server(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused("a network server is asked for", "call it in-process")

    async def create_datagram_endpoint(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refused("a network endpoint is asked for", "call the other side in-process")


def _refused(what: str, instead: str) -> RuntimeError:
    return RuntimeError(
        f"{what}, and virtual time cannot see whether the other side still works; "
        f"{instead}, or run this on a real loop"
    )


def _is_task_step(handle: events.Handle) -> bool:
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return isinstance(owner, tasks.Task)


def run_virtual(
    main: Callable[[], Awaitable[T]],
    *,
    seed: int | None = None,
    start: datetime = DEFAULT_START,
    limit_s: float | None = None,
) -> T:
    """Run `main()` to its end in virtual time and return its result.

    Raises `NothingToWaitFor` when it can never end, `TimeLimitPassed` when it goes on for more
    than `limit_s` seconds of virtual time (None: no limit). Inside, `asyncio.get_running_loop()`
    is a `VirtualLoop`, and its `clock` is the `Clock` to hand out.

    >>> async def main() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(main)
    3600.0
    """
    if asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "run_virtual makes a loop of its own and cannot be called inside a running one; "
            "call it from a plain function"
        )

    async def body() -> T:
        return await main()

    def new_loop() -> VirtualLoop:
        return VirtualLoop(seed=seed, start=start, limit_s=limit_s)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(body())
