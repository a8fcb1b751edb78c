"""Makes time pass in a core: applies what is due, sets the timer for what comes next, wakes calls.

Every call pumps before and after it looks at the core; between calls a timer of the running loop
does. What must never happen: the core's clock and the loop disagree, or a call waits for something
that nothing will wake.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri.clockwork.files import HostFiles
from fakecri.core import running
from fakecri.core.objects import Container, State
from fakecri.core.runtime import Core, News
from simclock import Clock

_ENDS: Final = (pb.CONTAINER_STOPPED_EVENT, pb.CONTAINER_DELETED_EVENT)


class Clockwork:
    """Drives `core` by `clock` on whatever loop runs; its file work is done by `files`."""

    def __init__(self, core: Core, clock: Clock, files: HostFiles) -> None:
        self._core = core
        self._clock = clock
        self._files = files
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._exits: dict[str, list[asyncio.Future[None]]] = {}
        self._watchers: list[asyncio.Event] = []
        self.home: asyncio.AbstractEventLoop | None = None
        """The loop of a fake that others touch from their threads; None: the one that runs."""
        self.heard: list[Callable[[News], None]] = []
        """Called with every piece of news, after the fact."""

    def pump(self) -> None:
        """Bring the core up to now, hand out its news, and set the timer for what comes next."""
        core, outbox = self._core, self._core.outbox
        nothing_to_do = not (outbox.news or outbox.writes or core.plans.due)
        if nothing_to_do and self._timer_for is None and not self._watchers:
            return  # as it is around nearly every call
        if core.plans.due:
            running.advance(core)
        while outbox.news:  # the hearers may change something
            batch, outbox.news = outbox.news, []
            for news in batch:
                if news.kind in _ENDS:
                    self.wake(news.object_id)
                for hear in self.heard:
                    hear(news)
        for work in outbox.writes:
            self._files.do(work)
        outbox.writes.clear()
        for changed in self._watchers:
            changed.set()
        if core.plans.due or self._timer_for is not None:
            self._set_timer()

    def stir(self) -> None:
        """Pump soon: something happened outside of a call. Without a running loop the next call
        does it."""
        loop = asyncio._get_running_loop()
        if self.home is not None and loop is not self.home and self.home.is_running():
            self.home.call_soon_threadsafe(self.pump)
        elif loop is not None:
            loop.call_soon(self.pump)

    def settle(self) -> None:
        """Charge what was used up to now, because a cgroup file is about to be read."""
        core = self._core
        if core.plans.due and core.plans.due[0][0] <= core.now_ns():
            self.pump()
        running.settle(core)

    async def exit_of(self, container: Container, *, within_s: float | None) -> bool:
        """Wait until the container is not running any more; False when `within_s` passed first
        (None: never)."""
        self.pump()
        if container.state is not State.RUNNING:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exits.setdefault(container.id, []).append(future)
        try:
            async with asyncio.timeout(within_s):
                await future
        except TimeoutError:
            return False
        finally:
            self._forget(container.id, future)
        return True

    def _forget(self, container_id: str, future: asyncio.Future[None]) -> None:
        """Drop a future whose call has given up: a probed container would collect thousands."""
        waiting = self._exits.get(container_id, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._exits[container_id]

    @contextmanager
    def changes(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something in the core may have changed."""
        changed = asyncio.Event()
        self._watchers.append(changed)
        try:
            yield changed
        finally:
            self._watchers.remove(changed)

    def wake(self, container_id: str) -> None:
        """The calls that wait for the end of this container go on."""
        for future in self._exits.pop(container_id, ()):
            if not future.done():
                future.set_result(None)

    def vanished(self, container: Container) -> None:
        """The container is not there any more, and no event told so."""
        self.wake(container.id)
        kind, now_ns = pb.CONTAINER_DELETED_EVENT, self._core.now_ns()
        for hear in self.heard:
            hear(News(kind, container.id, container.sandbox, now_ns))

    def _set_timer(self) -> None:
        """Pump again when the core next has something to do, in the loop that runs now."""
        due_ns = self._core.next_due_ns()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # programmed between two loops; the next call sets it
        plan = None if due_ns is None else (due_ns, loop)
        if plan == self._timer_for:
            return  # nearly every call leaves the plan as it was
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_for = plan
        if due_ns is not None:
            # Never a wait that rounds to none: virtual time would stand still for ever.
            delay_s = max((due_ns - self._clock.wall_ns()) / 1e9, 2 * math.ulp(loop.time()))
            self._timer = loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_for = None
        self.pump()


async def pass_time(clock: Clock, duration_s: float) -> None:
    """Let so much time pass; infinity: until the caller gives up."""
    if duration_s == float("inf"):
        await asyncio.get_running_loop().create_future()
    await clock.sleep(duration_s)
