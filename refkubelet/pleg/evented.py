"""The evented PLEG: the runtime reports changes, so it is seldom listed (gate EventedPLEG).

How it works. One stream of events feeds the pod cache and the sync loop; beside it the generic PLEG
relists every 300 s, and single pods on demand. A stream that breaks is opened again at once, with a
relist; after five breaks in all the events are given up, and the generic PLEG lists every second
again. Every 5 s the time of the whole cache is moved forward, so that no worker waits for ever for
an event that was lost.
An event holds one sandbox and its containers. If the pod may have more than that, or the event may
be older than the cache, it is not used (`judge`): the generic PLEG reads the pod instead.
What must never happen: an event makes the cache older, or hides containers of the pod's other
sandboxes; the time of the cache is moved past events that are still on their way (so it is set to
one second ago), or before a relist has followed the opening of the stream; a full queue of events
stops the sync loop, which empties it. Upstream's alpha code guards against none of these.
Rules: PLEG-301..303. Upstream: pkg/kubelet/pleg/evented.go.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from enum import Enum
from typing import Final

from refkubelet.cri.target import CriCallError
from refkubelet.failures import log_failure
from refkubelet.kuberuntime.reading.pod_events import PodEvent, PodEventKind
from refkubelet.pleg.cache import Known, PodCache
from refkubelet.pleg.compute import DIED, REMOVED, STARTED, PodLifecycleEvent, PodLifecycleEventType
from refkubelet.pleg.generic import SAME_S, GenericPLEG
from refkubelet.pleg.relist_options import PlegOptions
from simclock import Clock
from simclock.clock import NANOSECONDS

log = logging.getLogger(__name__)

MAX_STREAM_ERRORS: Final = 5
CACHE_TIME_PERIOD_S: Final = 5.0
ON_THE_WAY_S: Final = 1.0  # an event arrives within this time
RARELY: Final = PlegOptions(relist_period_s=300.0, relist_threshold_s=600.0, evented=True)
"""How the generic PLEG works beside the events."""

EVENTS: Final[dict[PodEventKind, tuple[PodLifecycleEventType, ...]]] = {
    PodEventKind.CREATED: (),
    PodEventKind.STARTED: (STARTED,),
    PodEventKind.STOPPED: (DIED,),
    PodEventKind.DELETED: (DIED, REMOVED),
}  # PLEG-302


class EventVerdict(Enum):
    """What to do with an event: TAKE its status into the cache; ignore it, it is OLD; READ the pod
    instead, since the event may not hold all of it; the pod is GONE."""

    TAKE = "take"
    OLD = "old"
    READ = "read"
    GONE = "gone"


def judge(event: PodEvent, at_s: float, known: Known | None) -> EventVerdict:
    """Decide what to do with an event. `at_s`: when it was made, on the clock of the cache;
    `known`: the cache's entry of the pod. The event of a pod that is not in the cache is taken if
    its sandbox is the pod's first. Pure."""
    sandbox = event.status.sandboxes[0]
    if known is None:
        if sandbox.attempt > 0:
            return EventVerdict.READ
    elif known.error is not None or _sandboxes_of(known) != {sandbox.id}:
        return EventVerdict.READ
    elif at_s < max(known.read_s, known.modified_s) - SAME_S:
        return EventVerdict.OLD
    elif at_s <= known.read_s + SAME_S:
        return EventVerdict.READ
    is_gone = event.kind is PodEventKind.DELETED and event.container_id == sandbox.id
    return EventVerdict.GONE if is_gone else EventVerdict.TAKE


def _sandboxes_of(known: Known) -> set[str]:
    status = known.status
    return {box.id for box in status.sandboxes} | {c.sandbox_id for c in status.containers}


class EventedPLEG:
    """Runs the generic PLEG and feeds it with the events of `stream`. `streams` counts opened
    streams, `errors` broken ones; `in_use` is False once the events have been given up."""

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
        self.in_use = True
        self._opened = asyncio.Event()
        self._open_s = math.inf  # the stream reports every change after this time

    async def run(self) -> None:
        """Follow the events, and list, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._generic.run(), name="generic pleg")
            ticks = tasks.create_task(self._move_cache_time(), name="pod cache time")
            lists = tasks.create_task(self._list_when_open(), name="list when events begin")
            await self._follow()
            ticks.cancel()
            lists.cancel()
            self.in_use = False
            log.warning("the runtime's events are given up; it is listed every second instead")
            self._generic.hurry(PlegOptions())

    def healthy(self) -> str | None:
        """Why the evented PLEG is unhealthy: the queue of events is full (PLEG-303); else None.
        This is for the node's condition only; the sync loop must go on, because it empties the
        queue."""
        events = self._generic.events
        if not events.full():
            return None
        return f"EventedPLEG: pleg event channel capacity is full with {events.qsize()} events"

    async def _follow(self) -> None:
        while self.errors < MAX_STREAM_ERRORS:
            why = await self._read_until_it_breaks()
            self.errors += 1
            self._generic.metrics.stream_errors.inc()
            log.warning("the stream of events broke (%d): %s", self.errors, why)
            self._generic.hurry()  # for the changes that the stream did not report

    async def _read_until_it_breaks(self) -> str:
        try:
            self._generic.metrics.streams.inc()
            self._open_s = math.inf
            self._opened.set()
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
        """Handle one event: write the cache, then send events to the sync loop (PLEG-005,
        PLEG-302)."""
        latency_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        self._generic.metrics.event_latency.observe(max(latency_s, 0.0))
        pod_uid, at_s = event.status.uid, self._made_s(event)
        verdict = judge(event, at_s, self._cache.known(pod_uid))
        if verdict is EventVerdict.OLD:
            return
        if verdict is EventVerdict.READ:
            self._generic.owe(pod_uid)
            return
        if verdict is EventVerdict.GONE:
            self._cache.delete(pod_uid)
        elif event.kind is not PodEventKind.DELETED:
            # A step that ended at the same time may have done more than the event reports.
            self._cache.heard(pod_uid, self._cache.with_kept_ips(event.status), at_s - SAME_S)
        self._generic.send(
            PodLifecycleEvent(pod_uid, kind, event.container_id) for kind in EVENTS[event.kind]
        )

    def _made_s(self, event: PodEvent) -> float:
        """When the event was made, in monotonic seconds; never in the future."""
        age_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        return self._clock.monotonic_s() - max(age_s, 0.0)

    async def _move_cache_time(self) -> None:
        """Every 5 s, move the cache's time to one second ago, if a relist has followed the opening
        of the stream: then the cache holds every change up to that time."""
        while True:
            await self._clock.sleep(CACHE_TIME_PERIOD_S)
            if self._generic.listed_since(self._open_s):
                self._cache.update_time(self._clock.monotonic_s() - ON_THE_WAY_S)

    async def _list_when_open(self) -> None:
        """Relist after each opening of the stream, for the changes between the last relist and the
        first event."""
        while True:
            await self._opened.wait()
            self._opened.clear()
            await self._clock.sleep(ON_THE_WAY_S)
            self._open_s = self._clock.monotonic_s()
            self._generic.hurry()
