"""Takes one event at a time from many inputs, at random among those that have one (LIFE-001).

How it works. Each queue has one task that waits for its next item and reports it (`arrive`).
Tickers, which make nearly all events, report from a timer of the event loop and need no task.
`_ready` names the inputs that have an item, in order of arrival. What must never happen: an item is
lost (its task keeps it until it is taken), or a queue is read ahead by more than one item.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

_NONE: Final[Mapping[str, Ticker]] = MappingProxyType({})


class Ticker:
    """Calls `on_tick` every `period_s` seconds, first one period after `start`, until `stop`.

    `wanted_s` tells from which time of the loop on ticks are wanted: those before are left out.
    When that may have become earlier, `look_again` is to be called. A timer is set one period
    before its tick at the earliest, as if no tick had been left out: so what is due at the same
    instant comes in the same order.
    """

    def __init__(self, period_s: float, wanted_s: Callable[[], float] = lambda: 0.0) -> None:
        self._period_s = period_s
        self._wanted_s = wanted_s
        self._on_tick: Callable[[], object] = lambda: None
        self._timer: asyncio.TimerHandle | None = None
        self._past_s = math.inf  # the last tick, or one that was left out; infinity: not started
        self._due_s = math.inf  # of the timer; infinity: there is none

    def start(self, on_tick: Callable[[], object]) -> None:
        """The first tick comes one period from now."""
        self._on_tick = on_tick
        self._past_s = asyncio.get_running_loop().time()
        self._set_timer(self._past_s + self._period_s)

    def stop(self) -> None:
        self._past_s = self._due_s = math.inf
        if self._timer is not None:
            self._timer.cancel()

    def look_again(self) -> None:
        """Tick earlier, if `wanted_s` is earlier now."""
        if self._past_s + self._period_s >= self._due_s:
            return  # nothing is left out, or nothing has been started
        now_s = asyncio.get_running_loop().time()
        while (next_s := self._past_s + self._period_s) <= now_s:
            self._past_s = next_s
        if self._before_wanted(next_s) < self._due_s:
            if self._timer is not None:
                self._timer.cancel()
            self._set_timer(next_s)

    def _before_wanted(self, next_s: float) -> float:
        """The tick that the next timer is for: the last that is left out, or the next one."""
        wanted_s = self._wanted_s()
        if wanted_s == math.inf:
            return math.inf
        while next_s + self._period_s < wanted_s:
            next_s += self._period_s
        return next_s

    def _set_timer(self, next_s: float) -> None:
        self._due_s = self._before_wanted(next_s)
        self._timer = None
        if self._due_s < math.inf:
            self._timer = asyncio.get_running_loop().call_at(self._due_s, self._tick)

    def _tick(self) -> None:
        self._past_s = self._due_s
        is_wanted = asyncio.get_running_loop().time() >= self._wanted_s()
        self._set_timer(self._past_s + self._period_s)
        if is_wanted:
            self._on_tick()


class Inputs:
    """Waits for all queues and tickers at once, and holds at most one item of each. The item of a
    ticker is None; ticks that come before the last one was taken are dropped."""

    def __init__(
        self,
        queues: Mapping[str, asyncio.Queue[Any]],
        choose: Callable[[Sequence[str]], str],
        tickers: Mapping[str, Ticker] = _NONE,
    ) -> None:
        self._queues = dict(queues)
        self._tickers = dict(tickers)
        self._choose = choose
        self._gets: dict[str, asyncio.Task[Any]] = {}
        self._unwatched = list(self._queues)
        self._ready: dict[str, None] = {}
        self._waiting: asyncio.Future[None] | None = None

    def start_tickers(self) -> None:
        """The tickers tick from now on, until `close`."""
        for name, ticker in self._tickers.items():
            ticker.start(partial(self.arrive, name))

    async def next(self) -> tuple[str, Any]:
        """Wait for an item; return the name of its input and the item."""
        while self._unwatched:
            self._watch(self._unwatched.pop())
        while not self._ready:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        ready = list(self._ready)
        name = self._choose(ready) if len(ready) > 1 else ready[0]
        del self._ready[name]
        if name in self._tickers:
            return name, None
        self._unwatched.append(name)
        return name, self._gets.pop(name).result()

    def _watch(self, name: str) -> None:
        get = asyncio.create_task(self._queues[name].get(), name=f"input {name}")
        get.add_done_callback(lambda task: None if task.cancelled() else self.arrive(name))
        self._gets[name] = get

    def arrive(self, name: str) -> None:
        """Note that the input `name` has an item; for a ticker: tick now."""
        self._ready[name] = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def close(self) -> None:
        """Stop waiting. Items that have arrived are kept for the next call of `next`."""
        for ticker in self._tickers.values():
            ticker.stop()
        waiting = {name: get for name, get in self._gets.items() if not get.done()}
        for name, get in waiting.items():
            get.cancel()
            del self._gets[name]
            self._unwatched.append(name)
        await asyncio.gather(*waiting.values(), return_exceptions=True)
