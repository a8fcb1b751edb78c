"""A sync loop over recording handlers, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from loops import virtual_loop

from refkubelet.model.pod_updates import PodSource, PodUpdate
from refkubelet.model.probe_results import ProbeUpdate
from refkubelet.pleg.compute import PodLifecycleEvent
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.loop import LoopDeps, LoopQueues, SeenSources, SyncLoop
from refkubelet.sync_loop.pod_handlers import PodHandlers
from simclock import Rng


class Recording:
    """Answers every method call by writing it down; `fails` makes the named one raise."""

    def __init__(self, clock: Any, log: list[tuple[float, str, tuple[Any, ...]]]) -> None:
        self._clock = clock
        self._log = log
        self.fails: set[str] = set()
        self.additions_take_s = 0.0
        self.resizes_pend = False

    def leads_to_resizes(self, _: object) -> bool:
        return self.resizes_pend

    async def handle_pod_additions(self, *args: Any) -> None:
        self.__getattr__("handle_pod_additions")(*args)
        await self._clock.sleep(self.additions_take_s)
        self._log.append((self._clock.monotonic_s(), "added", args))

    def next_due_s(self) -> float:
        return 0.0

    def watch_due(self, _: object) -> None:
        """Something may always be due."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*args: Any, **_: Any) -> None:
            self._log.append((self._clock.monotonic_s(), name, args))
            if name in self.fails:
                raise RuntimeError(f"{name} has a bug")

        return call


class LoopWorld:
    """`log` lists (time, what, arguments) of everything the loop did."""

    def __init__(self) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.log: list[tuple[float, str, tuple[Any, ...]]] = []
        self.recording = Recording(self.clock, self.log)
        self.error: str | None = None
        self.all_seen = False
        self.queues = LoopQueues(
            config=asyncio.Queue[PodUpdate](),
            pleg=asyncio.Queue[PodLifecycleEvent](),
            liveness=asyncio.Queue[ProbeUpdate](),
            readiness=asyncio.Queue[ProbeUpdate](),
            startup=asyncio.Queue[ProbeUpdate](),
        )
        self.seen: frozenset[PodSource] = frozenset()
        deps = LoopDeps(
            clock=self.clock,
            awake=self.clock,
            rng=Rng(1),
            queues=self.queues,
            handlers=cast(PodHandlers, self.recording),
            statuses=cast(StatusManager, self.recording),
            housekeeping=self.housekeeping,
            runtime_errors=lambda: self.error,
        )
        self.loop = SyncLoop(deps, SeenSources(self._seen))

    def _seen(self, seen: frozenset[PodSource]) -> bool:
        self.seen = seen
        return self.all_seen

    async def housekeeping(self) -> None:
        self.recording.housekeeping()

    def did(self, *ignored: str) -> list[str]:
        return [what for _, what, _ in self.log if what not in ("sync_due", *ignored)]

    def times_s(self, what: str) -> list[float]:
        return [at_s for at_s, name, _ in self.log if name == what]


@asynccontextmanager
async def running_loop() -> AsyncIterator[LoopWorld]:
    """A world with a running sync loop; on a virtual loop."""
    world = LoopWorld()
    running = asyncio.create_task(world.loop.run())
    try:
        yield world
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
