"""The generic PLEG: lists all pods every second, keeps the pod cache and sends events.

One task does global relists, and between them relists of single pods that a worker asked for. For
each changed pod it reads the status, writes the cache, replaces the record, and sends the events,
in this order (PLEG-005), so that a handler of an event finds the status in the cache. What must
never happen: an event sent before the cache is written; a full queue, or the error of one pod, that
stops the others; a record replaced although the reading failed (the change would be lost).
With the runtime's events (`evented`) it also reads single pods after a doubtful event or a failed
step (`owe`), and compares a list with the cache, not only with its own last list.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Final

from kubeobjects.golang.duration import format_duration
from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.cri.target import CriCallError
from refkubelet.failures import Complaints
from refkubelet.host.awake import Seconds
from refkubelet.pleg.cache import PodCache
from refkubelet.pleg.compute import (
    CHANGED,
    PodLifecycleEvent,
    PodLifecycleEventType,
    compute_events,
    differs,
)
from refkubelet.pleg.owed import Owed
from refkubelet.pleg.relist_options import PlegOptions, PlegRuntime
from refkubelet.telemetry.metrics import PlegMetrics
from simclock import Clock
from simclock.clock import NANOSECONDS

log = logging.getLogger(__name__)

ON_DEMAND_SLOTS: Final = 200
AGAIN_S: Final = 1.0  # the pause before a failed reading or a failed step is tried again
NO_ROOM: Final = "the event queue is full, events are dropped"
SAME_S: Final = 0.001  # two times that are nearer than this have no certain order


class GenericPLEG:
    """`events` is the queue to the sync loop; `dropped` counts events that found it full.

    Upstream: pkg/kubelet/pleg/generic.go.
    """

    def __init__(
        self,
        runtime: PlegRuntime,
        cache: PodCache,
        clock: Clock,
        options: PlegOptions | None = None,
        awake: Seconds | None = None,
    ) -> None:
        self._runtime = runtime
        self._cache = cache
        self._clock = clock
        self._awake: Seconds = awake or clock  # by which a relist gets old (NODE-054)
        self._options = options or PlegOptions()
        self.events: asyncio.Queue[PodLifecycleEvent] = asyncio.Queue(self._options.events_capacity)
        self.metrics = PlegMetrics()
        self._intervals = self.metrics.relist_interval.of()
        self._durations = self.metrics.relist_duration.of()
        self._records: dict[str, RuntimePod] = {}
        self._reinspect: dict[str, None] = {}
        self._never_read: set[str] = set()  # listed, but no status of them was ever read
        self._settled: tuple[RuntimePod, ...] | None = None  # a list that is recorded completely
        self._requests: deque[tuple[str, float]] = deque()
        self._waiting: asyncio.Future[bool] | None = None
        self._relist_stamp_s: float | None = None
        self._relist_s: float | None = None
        self._relist_awake_s = 0.0
        self._due_s = 0.0
        self._hurried = False
        self._owed = Owed()
        self._complete = False  # the last relist went through all pods
        self._complaints = Complaints(log, clock)

    async def run(self) -> None:
        """Relist at once, and then one period after the end of each relist, for ever (PLEG-001)."""
        while True:
            self._hurried = False
            succeeded = await self._guarded("relist", self.relist())
            wait_s = self._options.relist_period_s
            wait_s = wait_s if succeeded else min(wait_s, AGAIN_S)
            self._due_s = self._clock.monotonic_s() + (0.0 if self._hurried else wait_s)
            while (uid := await self._next_request()) is not None:
                succeeded = await self._guarded("relist of a pod", self.relist_pod(uid))
                if not succeeded and self._options.evented:
                    self.owe(uid, AGAIN_S)

    def hurry(self, options: PlegOptions | None = None) -> None:
        """Do a global relist at once; `options` replace the present ones."""
        self._options = options or self._options
        if not self._options.evented:
            self._cache.release_all()
        self._hurried = True
        self._due_s = self._clock.monotonic_s()
        self._wake()

    async def _guarded(self, what: str, step: Awaitable[None]) -> bool:
        """Run `step`; log its error and return False if it fails. The caller tries again, and
        `healthy` reports a failure that lasts."""
        try:
            await step
        except Exception as error:
            self._complaints.failed(what, error, CriCallError)
            return False
        self._complaints.over(what)
        return True

    def healthy(self) -> str | None:
        """None, or why the PLEG is unhealthy (PLEG-201)."""
        if self._relist_s is None:
            return "pleg has yet to be successful"
        age_s = self._awake.monotonic_s() - self._relist_awake_s
        if age_s <= self._options.relist_threshold_s:
            return None
        threshold = format_duration(self._options.relist_threshold_s)
        age = format_duration(age_s)
        return f"pleg was last seen active {age} ago; threshold is {threshold}"

    def last_seen_s(self) -> float:
        """Wall clock of the last successful relist, in seconds since 1970; 0 before the first."""
        if self._relist_s is None:
            return 0.0
        ago_s = self._clock.monotonic_s() - self._relist_s
        return self._clock.wall_ns() / NANOSECONDS - ago_s

    def pods(self) -> tuple[RuntimePod, ...]:
        """The pods of the runtime as they were last listed."""
        return tuple(self._records.values())

    def request_relist(self, uid: str) -> None:
        """Ask for a relist of one pod, as a worker does after a sync that acted (PLEG-011)."""
        if self._options.evented:
            self.owe(uid)
            return
        if len(self._requests) >= ON_DEMAND_SLOTS:
            return
        self._requests.append((uid, self._cache.stamp_s()))
        self._wake()

    def owe(self, uid: str, after_s: float = 0.0) -> None:
        """Read the pod in `after_s` seconds; until then its cached status is doubtful
        (PLEG-302)."""
        self._cache.hold(uid)
        self._owed.add(uid, self._clock.monotonic_s() + after_s)
        self._wake()

    def after_failure(self, uid: str) -> float:
        """A step of the pod failed: by how many seconds the status for the next step must be newer.
        0 without the runtime's events, because a relist comes every second anyway; with them the
        pod is read after that time."""
        if not self._options.evented:
            return 0.0
        self.owe(uid, AGAIN_S)
        return AGAIN_S - SAME_S

    def listed_since(self, t_s: float) -> bool:
        """Whether a relist of everything that began at or after monotonic `t_s` succeeded."""
        return self._relist_s is not None and self._relist_s >= t_s and self._complete

    def request_reinspection(self, uid: str) -> None:
        """Read the pod's status at the next relist even if no state changes (PLEG-007)."""
        self._reinspect[uid] = None

    async def relist(self) -> None:
        """One global relist (PLEG-001..009). Raises `CriCallError` if the lists fail."""
        stamp_s, now_s = self._cache.stamp_s(), self._clock.monotonic_s()
        awake_s = self._awake.monotonic_s()
        listed = await self._runtime.get_pods(all_states=True)
        if self._relist_s is not None:
            self._intervals.add(now_s - self._relist_s)
        self._relist_stamp_s, self._relist_s, self._relist_awake_s = stamp_s, now_s, awake_s
        self._complete = False
        if listed is not self._settled or self._reinspect or self._options.evented:
            pods = {pod.uid: pod for pod in listed}
            # A pod that could never be read has no record; once it is gone, its error must go, too.
            heard = self._cache.uids() if self._options.evented else ()
            for uid in dict.fromkeys([*self._records, *pods, *self._never_read, *heard]):
                await self._handle(uid, pods.get(uid), stamp_s)
            for uid in self._reinspect.keys() - self._records.keys() - self._never_read:
                del self._reinspect[uid]  # the pod is gone
            self._settled = None if self._reinspect else listed
        self._complete = True
        for uid in self._owed.settled(now_s):
            if self._cache.known(uid) is None:  # neither listed nor known: it has nothing there
                self._cache.observed(uid, stamp_s)
        self._cache.update_time(stamp_s)
        self._durations.add(self._clock.monotonic_s() - now_s)

    async def relist_pod(self, uid: str) -> None:
        """Relist one pod; one that the runtime does not list is left to the next global relist
        (PLEG-011). Raises `CriCallError` if the lists fail."""
        stamp_s, now_s = self._cache.stamp_s(), self._clock.monotonic_s()
        pod = await self._runtime.get_pod(uid)
        if pod is not None or self._options.evented:
            self._settled = None
            await self._handle(uid, pod, stamp_s)
        if pod is not None and not self._options.evented:
            self._cache.observed(uid, stamp_s)
        self.metrics.pod_relist_duration.observe(self._clock.monotonic_s() - now_s)

    async def _handle(self, uid: str, pod: RuntimePod | None, stamp_s: float) -> None:
        """Compare the listed pod (None: it is not listed) with its record; if it has changed, read
        its status, write the cache and the record, and send the events."""
        events = compute_events(self._records.get(uid), pod)
        reinspect = uid in self._reinspect or (self._options.evented and self._misheard(uid, pod))
        if not events and not reinspect:
            if pod is not None:  # an unchanged list has this same object again
                self._records[uid] = pod
            if self._options.evented:
                self._cache.observed(uid, stamp_s)
            return
        if not await self._update_cache(uid, pod, stamp_s):
            self._reinspect[uid] = None
            if uid not in self._records:
                self._never_read.add(uid)
            return
        self._reinspect.pop(uid, None)
        self._never_read.discard(uid)
        if pod is None:
            self._records.pop(uid, None)
        else:
            self._records[uid] = pod
        if not events:
            events = [PodLifecycleEvent(uid, PodLifecycleEventType.POD_SYNC)]
        self.send(events)

    async def _update_cache(self, uid: str, pod: RuntimePod | None, stamp_s: float) -> bool:
        """Write the pod's status, or the error, into the cache; False on error (PLEG-006), or when
        an event brought a newer one meanwhile (PLEG-302)."""
        evented = self._options.evented
        if evented and not self._is_newest(uid, stamp_s):
            return False
        if pod is None:
            self._cache.delete(uid)
            self._complaints.over(uid)
            if evented:
                self._cache.observed(uid, stamp_s)
            return True
        read_s = self._cache.stamp_s() if evented else stamp_s
        try:
            status = await self._runtime.status_of(pod)
        except Exception as error:
            complaint = f"cannot read the status of pod {pod.name}_{pod.namespace}"
            self._complaints.failed(complaint, error, CriCallError, key=uid)
            empty = RuntimePodStatus(uid, pod.name, pod.namespace)
            self._cache.set(uid, empty, error, read_s)
            if evented:
                self.owe(uid, AGAIN_S)
            return False
        self._complaints.over(uid)
        if evented and not self._is_newest(uid, stamp_s):
            return False
        self._cache.set(uid, self._cache.with_kept_ips(status), None, read_s)
        return True

    def _is_newest(self, uid: str, stamp_s: float) -> bool:
        """Whether no event of the pod has come since `stamp_s`; if one has, the pod is owed."""
        entry = self._cache.known(uid)
        if entry is None or entry.heard_s <= stamp_s:
            return True
        self.owe(uid)
        return False

    def _misheard(self, uid: str, pod: RuntimePod | None) -> bool:
        """Whether the cache disagrees with the list about the pod, e.g. after a lost event."""
        entry = self._cache.known(uid)
        if pod is None or entry is None:
            return pod is not None or entry is not None
        return entry.error is not None or differs(pod, entry.status)

    def send(self, events: Iterable[PodLifecycleEvent]) -> None:
        """Put events into the sync loop's queue; if it is full they are dropped (PLEG-008), which
        is told once a minute while it lasts."""
        had_room, was_full = False, False
        for event in events:
            if event.type is CHANGED:
                continue
            try:
                self.events.put_nowait(event)
                had_room = True
            except asyncio.QueueFull:
                was_full = True
                self.metrics.discarded.inc()
                times = self._complaints.again(NO_ROOM)
                if times is not None:
                    log.warning("%s%s, as this one: %s", NO_ROOM, times, event)
        if had_room and not was_full:
            self._complaints.over(NO_ROOM)

    async def _next_request(self) -> str | None:
        """Wait for the next pod to relist on demand; None: the global relist is due. Requests from
        before the last global relist are dropped."""
        while (now_s := self._clock.monotonic_s()) < self._due_s:
            if (owed := self._owed.take(now_s)) is not None:
                return owed
            while self._requests:
                uid, asked_s = self._requests.popleft()
                if self._relist_stamp_s is None or asked_s > self._relist_stamp_s:
                    return uid
            until_s = min(self._due_s, self._owed.next_s())
            if self._clock.wait_alone(until_s):
                continue
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_at(until_s, self._wake, True)
            in_time = False
            try:
                in_time = await self._waiting
            finally:
                if not in_time:
                    timer.cancel()
        return None

    def _wake(self, in_time: bool = False) -> None:
        """Let `_next_request` look again. `in_time`: because its timer has run."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(in_time)
