"""The sync loop: takes one event at a time and handles it, until it is cancelled.

How it works. The inputs are queues (operations of the pod sources, events of the PLEG, changed
probe results) and two tickers. The loop takes one item, runs its handler to the end, and takes the
next. Only two handlers wait: housekeeping for the runtime's list, and admission for device plugins
or for pods that make room; an admission that takes long continues in its own task (`additions.py`).
While the runtime is not ready no input is read (LIFE-006); the pod workers go on. What must never
happen: an exception of a handler ends the loop; two handlers at the same time, except for the
updates that `additions.py` lets pass.
Upstream: pkg/kubelet/kubelet.go: syncLoop, syncLoopIteration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from refkubelet.failures import Complaints
from refkubelet.host.awake import Seconds
from refkubelet.model.pod_updates import PodOperation, PodSource, PodUpdate
from refkubelet.model.probe_results import ProbeResult, ProbeUpdate
from refkubelet.pleg.compute import PodLifecycleEvent
from refkubelet.status.manager import StatusManager
from refkubelet.sync_loop.additions import Additions
from refkubelet.sync_loop.inputs import Inputs, Ticker
from refkubelet.sync_loop.pod_handlers import PodHandlers
from simclock import Clock, Rng

log = logging.getLogger(__name__)

SYNC_PERIOD_S: Final = 1.0
HOUSEKEEPING_PERIOD_S: Final = 2.0
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 5.0
MAX_AGE_S: Final = 300.0
STANDS_STILL: Final = "skipping pod synchronization"


class LoopQueues(Struct, frozen=True):
    """The inputs that other parts fill."""

    config: asyncio.Queue[PodUpdate]
    pleg: asyncio.Queue[PodLifecycleEvent]
    liveness: asyncio.Queue[ProbeUpdate]
    readiness: asyncio.Queue[ProbeUpdate]
    startup: asyncio.Queue[ProbeUpdate]


class LoopDeps(Struct, frozen=True):
    """What the loop works with."""

    clock: Clock
    rng: Rng
    queues: LoopQueues
    handlers: PodHandlers
    statuses: StatusManager
    housekeeping: Callable[[], Awaitable[None]]
    """Runs one round of housekeeping; called every 2 s."""
    runtime_errors: Callable[[], str | None]
    """Why the runtime is not ready and the loop must wait; None: it may run."""
    awake: Seconds
    """By which an iteration of the loop gets old (NODE-054)."""
    sync_frequency_s: float = 60.0
    """How often a healthy pod is synced; a loop that takes twice as long is not healthy."""


class SeenSources:
    """The sources of which the loop has taken at least one batch (SRC-070)."""

    def __init__(self, all_seen: Callable[[frozenset[PodSource]], bool]) -> None:
        self._all_seen = all_seen
        self._seen: frozenset[PodSource] = frozenset()

    def add(self, source: PodSource) -> None:
        self._seen |= {source}

    def has(self, source: PodSource) -> bool:
        return source in self._seen

    def ready(self) -> bool:
        """Whether destructive work is allowed (SRC-071)."""
        return self._all_seen(self._seen)


class SyncLoop:
    """The loop itself: `run`. `entered_s`: awake time of the start of the last iteration
    (NODE-053); None before the first."""

    def __init__(self, deps: LoopDeps, seen: SeenSources) -> None:
        self._deps = deps
        self._seen = seen
        self.entered_s: float | None = None
        self._complaints = Complaints(log, deps.clock)
        self._additions = Additions(
            self._config, self._may_pass, lambda: self._inputs.arrive("housekeeping")
        )
        sync = Ticker(SYNC_PERIOD_S, deps.handlers.next_due_s)
        deps.handlers.watch_due(sync.look_again)
        queues = deps.queues
        random = deps.rng.stream("sync loop")
        self._inputs = Inputs(
            {
                "config": queues.config,
                "pleg": queues.pleg,
                "liveness": queues.liveness,
                "readiness": queues.readiness,
                "startup": queues.startup,
            },
            random.choice,
            {
                "sync": sync,
                "housekeeping": Ticker(HOUSEKEEPING_PERIOD_S),
            },
        )

    def health_check(self) -> str | None:
        """Why the loop is not healthy: the last iteration began more than twice the sync frequency,
        and more than five minutes, ago (NODE-053). None: it is healthy."""
        if self.entered_s is None:
            return None
        limit_s = max(2 * self._deps.sync_frequency_s, MAX_AGE_S)
        age_s = self._deps.awake.monotonic_s() - self.entered_s
        return f"sync loop took longer than expected: {age_s:.0f} s" if age_s > limit_s else None

    async def run(self) -> None:
        """Handle events until cancelled; the first when the runtime is ready."""
        await self._wait_for_runtime()
        self._inputs.start_tickers()
        try:
            while True:
                await self._wait_for_runtime()
                self.entered_s = self._deps.awake.monotonic_s()
                await self._sync_loop_iteration()
        finally:
            await self._inputs.close()
            await self._additions.close()

    async def _wait_for_runtime(self) -> None:
        """Wait, 0.1 s to 5 s at a time, until the runtime is ready (LIFE-006, NODE-051)."""
        wait_s = FIRST_WAIT_S
        while (error := self._deps.runtime_errors()) is not None:
            times = self._complaints.again(STANDS_STILL)
            if times is not None:
                log.info("%s%s: %s", STANDS_STILL, times, error)
            await self._deps.clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        self._complaints.over(STANDS_STILL)

    async def _sync_loop_iteration(self) -> None:
        """Take one item and handle it to the end."""
        name, item = await self._inputs.next()
        try:
            match name:
                case "config":
                    await self._additions.take(item)
                case "pleg":
                    self._deps.handlers.pleg_event(item)
                case "sync":
                    self._deps.handlers.sync_due()
                case "housekeeping":
                    await self._housekeeping()
                case _:
                    self._probe(name, item)
        except Exception as error:
            of = f" of pod {item.uid}" if name == "pleg" else ""
            self._complaints.failed(f"handling {name}{of} failed", error)

    async def _config(self, update: PodUpdate) -> None:
        """Run the handler of a source's operation (LIFE-001). DELETE only announces a deletion, so
        it is handled as an update; REMOVE ends the pod (SRC-066)."""
        handlers = self._deps.handlers
        handle: dict[PodOperation, Callable[[Sequence[Any]], Awaitable[None]]] = {
            PodOperation.ADD: handlers.handle_pod_additions,
            PodOperation.UPDATE: handlers.handle_pod_updates,
            PodOperation.DELETE: handlers.handle_pod_updates,
            PodOperation.REMOVE: handlers.handle_pod_removes,
            PodOperation.RECONCILE: handlers.handle_pod_reconcile,
        }
        try:
            await handle[update.operation](update.pods)
        except Exception as error:
            complaint = f"handling {update.operation.value} from {update.source.value} failed"
            self._complaints.failed(complaint, error)
        finally:
            self._seen.add(update.source)

    def _may_pass(self, update: PodUpdate) -> bool:
        """Whether an update may be handled while other pods are being admitted: not the first of
        its source, and none that admission would have to decide about."""
        handlers = self._deps.handlers
        return self._seen.has(update.source) and not handlers.leads_to_resizes(update.pods)

    async def _housekeeping(self) -> None:
        """Run housekeeping if all sources are ready and no pod is being admitted: a pod in
        admission has no worker yet, and its containers would be killed as unknown."""
        if not self._seen.ready() or self._additions.put_off():
            return
        try:
            await self._deps.housekeeping()
        finally:
            self._additions.go_on()

    def _probe(self, name: str, update: ProbeUpdate) -> None:
        """Write a changed probe result into the status and sync the pod (LIFE-005); of liveness
        results only failures matter."""
        good = update.result is ProbeResult.SUCCESS
        if name == "readiness":
            self._deps.statuses.set_container_readiness(update.pod_uid, update.container_id, good)
        elif name == "startup":
            self._deps.statuses.set_container_startup(update.pod_uid, update.container_id, good)
        elif update.result is not ProbeResult.FAILURE:
            return
        self._deps.handlers.sync_by_uid(update.pod_uid)
