"""The evented PLEG: the runtime tells what happened; listing becomes rare (gate EventedPLEG).

How it works. One stream of events feeds the pod cache and the sync loop; the generic PLEG goes on
beside it, every 300 s, and on demand as before. A stream that breaks is opened again at once, after
a relist; after five breaks in all the events are given up and the generic PLEG lists every second
again. Every 5 s the time of the whole cache moves on, so that no worker waits for ever for an event
that got lost on the way.
What must never happen: an event makes the cache older; a worker is told that everything up to now
is in the cache while events of just now are still on their way (the time moved on to lies a second
back); a late event of an old sandbox hides the new one. Upstream's alpha code does not guard
against the last two.
Rules: PLEG-301..303. Upstream: pkg/kubelet/pleg/evented.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from refkubelet.failures import log_failure
from refkubelet.pleg.cache import PodCache, PodStatusError
from refkubelet.pleg.compute import DIED, REMOVED, STARTED, PodLifecycleEvent, PodLifecycleEventType
from refkubelet.pleg.generic import GenericPLEG, PlegOptions
from refkubelet.runtime.client import CriCallError
from refkubelet.runtime.pod_events import PodEvent, PodEventKind
from simtime import Clock
from simtime.clock import NANOSECONDS

log = logging.getLogger(__name__)

MAX_STREAM_ERRORS: Final = 5
CACHE_TIME_PERIOD_S: Final = 5.0
ON_THE_WAY_S: Final = 1.0  # an event is here after that time at the latest
RARELY: Final = PlegOptions(relist_period_s=300.0, relist_threshold_s=600.0, evented=True)
"""How the generic PLEG works beside the events."""

EVENTS: Final[dict[PodEventKind, tuple[PodLifecycleEventType, ...]]] = {
    PodEventKind.CREATED: (),
    PodEventKind.STARTED: (STARTED,),
    PodEventKind.STOPPED: (DIED,),
    PodEventKind.DELETED: (DIED, REMOVED),
}  # PLEG-302


class EventedPLEG:
    """`run` it instead of the generic PLEG, which it drives. `stream` opens a stream of events.
    `streams` counts opened ones, `errors` broken ones; `in_use` turns False when the events have
    been given up."""

    def __init__(
        self,
        generic: GenericPLEG,
        stream: Callable[[], AsyncGenerator[PodEvent, None]],
        cache: PodCache,
        clock: Clock,
    ) -> None:
        self._generic = generic
        self._stream = stream
        self._cache = cache
        self._clock = clock
        self.errors = 0
        self.streams = 0
        self.in_use = True

    async def run(self) -> None:
        """Follow the events, and list, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._generic.run(), name="generic pleg")
            ticks = tasks.create_task(self._move_cache_time(), name="pod cache time")
            await self._follow()
            ticks.cancel()
            self.in_use = False
            log.warning("the runtime's events are given up; it is listed every second instead")
            self._generic.hurry(PlegOptions())

    def healthy(self) -> str | None:
        """None, or why the evented PLEG is unhealthy: nobody takes its events (PLEG-303)."""
        events = self._generic.events
        if not events.full():
            return None
        return f"EventedPLEG: pleg event channel capacity is full with {events.qsize()} events"

    async def _follow(self) -> None:
        while self.errors < MAX_STREAM_ERRORS:
            why = await self._read_until_it_breaks()
            self.errors += 1
            log.warning("the stream of events broke (%d): %s", self.errors, why)
            self._generic.hurry()  # whatever the stream did not tell

    async def _read_until_it_breaks(self) -> str:
        try:
            self.streams += 1
            async with aclosing(self._stream()) as events:
                async for event in events:
                    try:
                        self._take(event)
                    except Exception as error:
                        log_failure(log, "an event of the runtime is ignored", error)
        except CriCallError as error:
            return str(error)
        return "the runtime ended it"

    def _take(self, event: PodEvent) -> None:
        """Cache first, then tell (PLEG-005, PLEG-302)."""
        latency_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        self._generic.metrics.event_latency.add(max(latency_s, 0.0))
        pod_uid = event.status.uid
        if self._is_outlived(event):
            self._generic.request_relist(pod_uid)
        elif event.kind is PodEventKind.DELETED:
            if event.container_id == event.status.sandboxes[0].id:
                self._cache.delete(pod_uid)
        else:
            status = self._cache.with_kept_ips(event.status)
            if not self._cache.set(pod_uid, status, None, self._stamp_s(event)):
                return
        self._generic.send(
            PodLifecycleEvent(pod_uid, kind, event.container_id) for kind in EVENTS[event.kind]
        )

    def _is_outlived(self, event: PodEvent) -> bool:
        """The pod has a newer sandbox than the one the event is about."""
        try:
            known = self._cache.get(event.status.uid).sandboxes
        except PodStatusError:
            return False
        mine = event.status.sandboxes[0]
        return (
            bool(known) and known[0].id != mine.id and known[0].created_at_ns > mine.created_at_ns
        )

    def _stamp_s(self, event: PodEvent) -> float:
        """When the event was made, on the clock of the cache. At the very instant (virtual time
        stands still while things happen) it is the newest there is."""
        age_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        return self._cache.stamp_s() if age_s <= 0 else self._clock.monotonic_s() - age_s

    async def _move_cache_time(self) -> None:
        while True:
            await self._clock.sleep(CACHE_TIME_PERIOD_S)
            self._cache.update_time(self._clock.monotonic_s() - ON_THE_WAY_S)
