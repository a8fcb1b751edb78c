"""An asyncio loop whose clock jumps to the next timer whenever nothing can run.

How it works. Like asyncio's own loop, every pass looks at the watched descriptors, makes runnable
the timers that are due, and runs the callbacks that were runnable then. Only waiting is different:
where asyncio would wait, because no callback is runnable and nothing can be read, the clock moves
to the next timer. Timers are in a heap of their own, so that of those due at the same time the
older one comes first (in asyncio their order is undefined; under a clock that jumps, equal times
are common).

So time never moves while anything can run, a run never waits in real time, and the order of
callbacks depends on the seed alone. A run in which all tasks wait and no timer is set fails with
`NothingToWaitFor`, which lists the tasks and what they wait for. Threads, child processes and
network connections are refused, because the loop cannot see whether the other side still works.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import selectors
from asyncio import tasks
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from datetime import UTC, datetime
from itertools import count
from typing import Any, NoReturn, TypeVar

from simclock.clock import VirtualClock
from simclock.waiters import describe_tasks

T = TypeVar("T")
DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)


_PASSES_UNASKED = 8
"""How many passes in a row that have callbacks to run do not look at the descriptors."""
_FEW_TIMERS = 100
"""How many cancelled timers may stay in the heap, even if there are few others."""


class NothingToWaitFor(RuntimeError):
    """Every task waits, no timer is set, and no watched descriptor is readable.

    As nothing outside a virtual run can wake it, this state would last for ever.
    """


class TimeLimitPassed(RuntimeError):
    """The run went on beyond the limit of virtual time it was given."""


class _TimerHandle(asyncio.TimerHandle):
    """A timer that is cancelled in one step; not in debug mode, where a handle notes more."""

    __slots__ = ()

    def cancel(self) -> None:
        timer: Any = self
        if not timer._cancelled:
            if timer._scheduled:
                timer._loop._timer_handle_cancelled(timer)
            timer._cancelled = True
            timer._callback = timer._args = None


class VirtualLoop(asyncio.SelectorEventLoop):
    """The virtual-time loop. Time starts at 0 s; its `clock` starts at `start`, an aware datetime.

    `seed` None keeps asyncio's own order of runnable callbacks; with a number, the steps of
    different tasks that are runnable at the same time run in an order that depends on the seed
    alone. Instead of going beyond `limit_s` seconds (None: no limit) the run fails with
    `TimeLimitPassed`. `jumps` counts how often the clock has moved, `passes` how often callbacks
    were run: as long as it stays the same, nothing has run but the task that looks.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        start: datetime = DEFAULT_START,
        limit_s: float | None = None,
    ) -> None:
        self._virtual_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = count()
        self._cancelled_timers = 0
        self._passes_unasked = 0
        self._descriptors = selectors.DefaultSelector()
        super().__init__(self._descriptors)
        self._runnable: deque[asyncio.Handle] = getattr(self, "_ready")
        self.shuffle = None if seed is None else random.Random(seed)
        self.clock: VirtualClock = _LoopsOwnClock(self, start)
        self.jumps = 0
        self.passes = 0
        self._limit_s = math.inf if limit_s is None else limit_s

    def time(self) -> float:
        return self._virtual_s

    def stand_still(self, duration_s: float) -> None:
        """Let `duration_s` seconds pass in which nothing runs, as when a virtual machine is paused:
        what became due meanwhile runs afterwards, all at once."""
        self._virtual_s += duration_s

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._add_timer(when, callback, args, context)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        return self._add_timer(self._virtual_s + delay, callback, args, context)

    def _add_timer(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("Event loop is closed")
        timer: Any
        if self._debug:  # type: ignore[attr-defined]
            timer = asyncio.TimerHandle(when, callback, args, self, context)
        else:
            timer = _TimerHandle.__new__(_TimerHandle)  # as in `call_soon`
            timer._context = copy_context() if context is None else context
            timer._loop, timer._callback, timer._args = self, callback, args
            timer._cancelled = False
            timer._repr = timer._source_traceback = None
            timer._when = when
        timer._scheduled = True  # its cancel() then tells us
        heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer  # type: ignore[no-any-return]

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.Handle:
        if self._closed or self._debug:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        # Made without calling its constructor: handles are a large part of a run, and this is
        # faster. In debug mode the constructor is called, as it notes where the handle was made.
        handle: Any = asyncio.Handle.__new__(asyncio.Handle)
        handle._context = copy_context() if context is None else context
        handle._loop, handle._callback, handle._args = self, callback, args
        handle._cancelled = False
        handle._repr = handle._source_traceback = None
        self._runnable.append(handle)
        return handle  # type: ignore[no-any-return]

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by asyncio when a timer is cancelled. A cancelled timer stays in the heap until
        its time comes, but when most of many timers are cancelled, all those are removed."""
        if not handle._scheduled:  # type: ignore[attr-defined]
            return  # it has run already
        self._cancelled_timers += 1
        if self._cancelled_timers > _FEW_TIMERS and self._cancelled_timers > len(self._timers) / 2:
            self._timers = [row for row in self._timers if not row[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    def _run_once(self) -> None:
        """One pass, as asyncio's `run_forever` asks for it until the loop is stopped."""
        self.passes += 1
        ready = self._runnable
        must_not_wait = ready or self._stopping  # type: ignore[attr-defined]
        if must_not_wait and self._passes_unasked < _PASSES_UNASKED:
            self._passes_unasked += 1
        else:
            self._passes_unasked = 0
            readable = self._descriptors.select(0)
            if readable:
                readable.sort(key=lambda item: item[0].fd)
                getattr(self, "_process_events")(readable)
            elif not must_not_wait:
                self._jump()
        if self._timers and self._timers[0][0] <= self._virtual_s:
            self._make_due_timers_ready(ready)
        if self.shuffle is not None and len(ready) > 1:
            self._shuffle_ready(ready, self.shuffle)
        for _ in range(len(ready)):
            handle: Any = ready.popleft()
            if handle._cancelled:
                continue
            try:  # as `handle._run` does, in one step less
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._callback_failed(handle, error)

    def _callback_failed(self, handle: Any, error: BaseException) -> None:
        told = {
            "message": f"Exception in callback {handle!r}",
            "exception": error,
            "handle": handle,
        }
        if handle._source_traceback:
            told["source_traceback"] = handle._source_traceback
        self.call_exception_handler(told)

    def _make_due_timers_ready(self, ready: deque[asyncio.Handle]) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self._virtual_s:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer._cancelled:
                self._cancelled_timers -= 1
            else:
                ready.append(timer)

    def wait_alone(self, when: float) -> bool:
        """Let the running task wait for that time on the spot if nobody can tell the difference:
        nothing is runnable or readable, and no timer is due up to then. Then the clock moves as it
        would in a pass, which a wait for timer and future takes two of. False: nothing was done."""
        if self._runnable or not self._is_ahead(when):
            return False
        timers = self._timers
        self._drop_cancelled(timers)
        if timers and timers[0][0] <= when:
            return False
        task = tasks.current_task(self)
        if task is None or task.cancelling() or self.get_task_factory() is not None:
            return False  # eager tasks run within the step of another
        if self._stopping or self._descriptors.select(0):  # type: ignore[attr-defined]
            return False
        self._virtual_s = when
        self.jumps += 1
        self._passes_unasked = 1
        return True

    def _is_ahead(self, when: float) -> bool:
        """Whether that is a later time, and within the limit."""
        return self._virtual_s < when <= self._limit_s and when != math.inf

    def _drop_cancelled(self, timers: list[tuple[float, int, asyncio.TimerHandle]]) -> None:
        """Take the cancelled timers away that would be next."""
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled_timers -= 1

    def _jump(self) -> None:
        """Move the clock to the next timer that was not cancelled."""
        timers = self._timers
        self._drop_cancelled(timers)
        if not timers or not timers[0][0] < math.inf:  # a timer at infinity never comes
            raise NothingToWaitFor(self._describe_waiters())
        when = timers[0][0]
        if when > self._limit_s:
            raise TimeLimitPassed(
                f"the next timer is at {when:.3f} s of virtual time, the limit is "
                f"{self._limit_s:.3f} s:\n{describe_tasks(self)}"
            )
        self._virtual_s = max(self._virtual_s, when)  # later already after `stand_still`
        self.jumps += 1

    @staticmethod
    def _shuffle_ready(ready: deque[asyncio.Handle], dice: random.Random) -> None:
        """Permute the runnable steps of different tasks; all other callbacks keep their place."""
        places = [i for i, handle in enumerate(ready) if _is_task_step(handle)]
        if len(places) < 2:
            return
        steps = [ready[i] for i in places]
        dice.shuffle(steps)
        for i, handle in zip(places, steps, strict=True):
            ready[i] = handle

    def _describe_waiters(self) -> str:
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


class _LoopsOwnClock(VirtualClock):
    """The clock of a VirtualLoop, whose tasks sleep on the spot where they can."""

    def __init__(self, loop: VirtualLoop, start: datetime) -> None:
        super().__init__(loop, start)
        self._loop = loop

    async def sleep(self, duration_s: float, *, slack_s: float = 0.0) -> None:
        if not self._loop.wait_alone(self._loop.time() + duration_s):
            await asyncio.sleep(max(0.0, duration_s))

    def wait_alone(self, until_s: float) -> bool:
        return self._loop.wait_alone(until_s)

    def happened(self) -> int:
        return self._loop.passes


async def sleep(duration_s: float) -> None:
    """`asyncio.sleep`, which costs less on a VirtualLoop on which nothing else happens meanwhile,
    and goes the same way.

    >>> run_virtual(lambda: sleep(3600))
    """
    loop = asyncio.get_running_loop()
    if not (isinstance(loop, VirtualLoop) and loop.wait_alone(loop.time() + duration_s)):
        await asyncio.sleep(duration_s)


def _refused(what: str, instead: str) -> RuntimeError:
    return RuntimeError(
        f"{what}, and virtual time cannot see whether the other side still works; "
        f"{instead}, or run this on a real loop"
    )


def _is_task_step(handle: asyncio.Handle) -> bool:
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return isinstance(owner, tasks.Task)


def run_virtual(
    main: Callable[[], Awaitable[T]],
    *,
    seed: int | None = None,
    start: datetime = DEFAULT_START,
    limit_s: float | None = None,
) -> T:
    """Run the coroutine function `main` to its end in virtual time and return its result.

    The arguments are those of `VirtualLoop`, which is the running loop inside. Raises:
    NothingToWaitFor when `main` can never end, TimeLimitPassed, TypeError if `main` is a coroutine
    and not a function, RuntimeError inside a running loop.

    >>> async def main() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(main)
    3600.0
    """
    if not callable(main):
        if asyncio.iscoroutine(main):
            main.close()  # it will never be awaited
        raise TypeError(
            f"wanted a function that gives an awaitable, got {main!r}; write run_virtual(main), "
            "not run_virtual(main())"
        )
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
