"""One event at a time from many queues, chosen at random among those that have one (LIFE-001).

How it works. Each queue has one task that waits for its next item; the task that gets one says so
in one future. What must never happen: an item is lost (a task whose item was not taken yet keeps
it), or a queue is read ahead by more than one item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simtime import Clock


class Inputs:
    """Waits on all queues at once; at most one item per queue is held here, none is lost."""

    def __init__(
        self,
        queues: Mapping[str, asyncio.Queue[Any]],
        choose: Callable[[Sequence[str]], str],
    ) -> None:
        self._queues = dict(queues)
        self._choose = choose
        self._gets: dict[str, asyncio.Task[Any]] = {}
        self._arrived = asyncio.Event()

    async def next(self) -> tuple[str, Any]:
        """The name of a queue and its next item."""
        for name, queue in self._queues.items():
            if name not in self._gets:
                get = asyncio.create_task(queue.get(), name=f"input {name}")
                get.add_done_callback(lambda _: self._arrived.set())
                self._gets[name] = get
        while not (ready := [name for name in self._queues if self._gets[name].done()]):
            self._arrived.clear()
            await self._arrived.wait()
        name = self._choose(ready)
        return name, self._gets.pop(name).result()

    async def close(self) -> None:
        """Stop waiting."""
        gets = list(self._gets.values())
        for get in gets:
            get.cancel()
        await asyncio.gather(*gets, return_exceptions=True)
        self._gets.clear()


async def tick(queue: asyncio.Queue[None], period_s: float, clock: Clock) -> None:
    """Put one item into `queue` every `period_s`; a tick that nobody took yet is not doubled."""
    due_s = clock.monotonic_s()
    while True:
        due_s += period_s
        await clock.sleep(due_s - clock.monotonic_s())
        if queue.empty():
            queue.put_nowait(None)
