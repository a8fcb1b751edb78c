"""The evented PLEG: the runtime tells what happened; listing becomes rare (gate EventedPLEG).

How it works. One stream of events feeds the pod cache and the sync loop; the generic PLEG goes on
beside it, every 300 s, and on demand as before. A stream that breaks is opened again at once, after
a relist; after five breaks in all the events are given up and the generic PLEG lists every second
again. Every 5 s the time of the whole cache moves on, so that no worker waits for ever for an event
that got lost on the way.
An event knows one sandbox and its containers, as they were. Where that may be less than what is
known of the pod, or older, the event is not believed (`judge`): the generic PLEG reads the pod.
What must never happen: an event makes the cache older, or hides what other sandboxes of the pod
hold; a worker is told that everything up to now is in the cache while events of just now are still
on their way (the time moved on to lies a second back), or before the runtime was listed since the
stream was opened; a full queue of events stops the sync loop, which empties it. Upstream's alpha
code guards against none of these.
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
from refkubelet.kuberuntime.pod_events import PodEvent, PodEventKind
from refkubelet.pleg.cache import Known, PodCache
from refkubelet.pleg.compute import DIED, REMOVED, STARTED, PodLifecycleEvent, PodLifecycleEventType
from refkubelet.pleg.generic import SAME_S, GenericPLEG
from refkubelet.pleg.relist_options import PlegOptions
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


class EventVerdict(Enum):
    """What an event is worth: all there is to know of its pod; nothing new; less than is known, so
    that the pod must be read; the pod is gone."""

    TAKE = "take"
    OLD = "old"
    READ = "read"
    GONE = "gone"


def judge(event: PodEvent, at_s: float, known: Known | None) -> EventVerdict:
    """`at_s`: when the event was made, on the clock of the cache. Pure.

    An event of a pod that is not in the cache is believed if its sandbox is the pod's first one.
    """
    mine = event.status.sandboxes[0]
    if known is None:
        if mine.attempt > 0:
            return EventVerdict.READ
    elif known.error is not None or _sandboxes_of(known) != {mine.id}:
        return EventVerdict.READ
    elif at_s < max(known.read_s, known.modified_s) - SAME_S:
        return EventVerdict.OLD
    elif at_s <= known.read_s + SAME_S:
        return EventVerdict.READ
    gone = event.kind is PodEventKind.DELETED and event.container_id == mine.id
    return EventVerdict.GONE if gone else EventVerdict.TAKE


def _sandboxes_of(known: Known) -> set[str]:
    status = known.status
    return {box.id for box in status.sandboxes} | {c.sandbox_id for c in status.containers}


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
        self._opened = asyncio.Event()
        self._open_s = math.inf  # from then on the stream tells everything

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
        """None, or why the evented PLEG is unhealthy: its events find no room (PLEG-303). That is
        news for the node's condition; the sync loop must go on, it makes the room."""
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
        """Cache first, then tell (PLEG-005, PLEG-302)."""
        latency_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        self._generic.metrics.event_latency.add(max(latency_s, 0.0))
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
            # A step that ended just then may have done more than the event knows of.
            self._cache.heard(pod_uid, self._cache.with_kept_ips(event.status), at_s - SAME_S)
        self._generic.send(
            PodLifecycleEvent(pod_uid, kind, event.container_id) for kind in EVENTS[event.kind]
        )

    def _made_s(self, event: PodEvent) -> float:
        """When the event was made, on the clock of the cache; now at the latest."""
        age_s = (self._clock.wall_ns() - event.created_at_ns) / NANOSECONDS
        return self._clock.monotonic_s() - max(age_s, 0.0)

    async def _move_cache_time(self) -> None:
        """What was told since everything was listed, after the stream was opened, is all."""
        while True:
            await self._clock.sleep(CACHE_TIME_PERIOD_S)
            if self._generic.listed_since(self._open_s):
                self._cache.update_time(self._clock.monotonic_s() - ON_THE_WAY_S)

    async def _list_when_open(self) -> None:
        """What happened between the last list and the moment from which the runtime tells."""
        while True:
            await self._opened.wait()
            self._opened.clear()
            await self._clock.sleep(ON_THE_WAY_S)
            self._open_s = self._clock.monotonic_s()
            self._generic.hurry()
