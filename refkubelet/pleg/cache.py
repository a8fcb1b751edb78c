"""The pod cache: the newest runtime status of each pod, and a way to wait for a newer one.

The PLEG writes, pod workers read. A worker asks for a status newer than the end of its previous
step, so that no step acts on a status from before its own changes (LIFE-038). What must never
happen: a waiter gets a status older than it asked for, also if an older one is written before it
runs. There is no time-out: a runtime that hangs blocks the workers, and nothing else (PLEG-102).
With the gate EventedPLEG the runtime's events write, too. A pod about which they may be wrong is
held (`hold`): then only a status that was read from the runtime counts as newer.
"""

from __future__ import annotations

import asyncio
import math

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerRecord, RuntimePodStatus, SandboxState
from simclock import Clock


class PodStatusError(Exception):
    """The last attempt to read a pod's status from the runtime failed; the text says why."""


class Known(Struct, frozen=True):
    """The cache's entry of a pod: its status, or the error of reading it. Stamps: `modified_s`, of
    the status; `read_s`, of the last reading that confirmed it; `heard_s`, of the last event."""

    status: RuntimePodStatus
    error: str | None
    modified_s: float
    read_s: float
    heard_s: float = -math.inf

    @property
    def newest_s(self) -> float:
        return max(self.modified_s, self.read_s)

    def status_or_error(self) -> RuntimePodStatus:
        """Raises `PodStatusError` with the error of the last reading, if it failed."""
        if self.error is not None:
            raise PodStatusError(self.error)
        return self.status


class _Waiter(Struct, frozen=True):
    uid: str
    newer_than_s: float
    future: asyncio.Future[Known | None]


class PodCache:
    """Times are stamps: monotonic seconds of the clock, never the same twice (`stamp_s`).

    Upstream: pkg/kubelet/container/cache.go.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_stamp_s = -math.inf
        self._entries: dict[str, Known] = {}
        self._held: set[str] = set()
        self._global_s: float | None = None
        self._waiters: list[_Waiter] = []

    def stamp_s(self) -> float:
        """The current time as a stamp, later than every stamp before.

        Listings and the ends of worker steps both take their stamps here, which gives them an order
        even while virtual time stands still.
        """
        now_s = self._clock.monotonic_s()
        if now_s <= self._last_stamp_s:
            now_s = math.nextafter(self._last_stamp_s, math.inf)
        self._last_stamp_s = now_s
        return now_s

    def get(self, uid: str) -> RuntimePodStatus:
        """The cached status without waiting; an empty one for an unknown pod (PLEG-101).

        Raises `PodStatusError` if the last attempt to read the status failed.
        """
        entry = self._entries.get(uid)
        return RuntimePodStatus(uid) if entry is None else entry.status_or_error()

    def known(self, uid: str) -> Known | None:
        """The entry of the pod; None: it has none."""
        return self._entries.get(uid)

    def uids(self) -> list[str]:
        """The UIDs of all pods in the cache."""
        return list(self._entries)

    def running_containers(self) -> list[ContainerRecord]:
        """The running containers of all pods in the cache."""
        return [c for entry in self._entries.values() for c in entry.status.running()]

    async def get_newer_than(self, uid: str, t_s: float) -> RuntimePodStatus:
        """Wait for a status of the pod newer than `t_s` (PLEG-102, LIFE-038).

        Returns at once if the cache has one, or if all pods were listed since then (for a pod that
        was not among them: an empty status). `t_s` is a stamp of this cache; 0 asks for any status.
        Raises `PodStatusError` if reading the status failed (PLEG-104).
        """
        if self._is_newer(uid, t_s):
            return self.get(uid)
        waiter = _Waiter(uid, t_s, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            entry = await waiter.future
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return RuntimePodStatus(uid) if entry is None else entry.status_or_error()

    def set(self, uid: str, status: RuntimePodStatus, error: Exception | None, t_s: float) -> None:
        """Replace status and error; `t_s` is the time of the listing (PLEG-103)."""
        text = None if error is None else str(error)
        self._entries[uid] = Known(status, text, t_s, t_s)
        self._held.discard(uid)
        self._notify(t_s, uid)

    def heard(self, uid: str, status: RuntimePodStatus, t_s: float) -> None:
        """Record the status that an event reports for `t_s` (PLEG-302)."""
        old = self._entries.get(uid)
        read_s = old.read_s if old is not None else -math.inf
        self._entries[uid] = Known(
            status=status, error=None, modified_s=t_s, read_s=read_s, heard_s=self.stamp_s()
        )
        self._notify(t_s, uid)

    def hold(self, uid: str) -> None:
        """Mark the pod's entry as doubtful: until the pod is read again, `update_time` does not
        make it newer."""
        self._held.add(uid)

    def release_all(self) -> None:
        """Trust all entries again, because all pods are listed every second from now on."""
        self._held.clear()

    def with_kept_ips(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """`status`, with the cached IPs if it has none and no sandbox is READY (PLEG-010)."""
        if status.ips or any(s.state is SandboxState.READY for s in status.sandboxes):
            return status
        try:
            return replace(status, ips=self.get(status.uid).ips)
        except PodStatusError:
            return status

    def delete(self, uid: str) -> None:
        """Remove the pod's entry; its waiters keep waiting (PLEG-103)."""
        self._entries.pop(uid, None)
        self._held.discard(uid)

    def observed(self, uid: str, t_s: float) -> None:
        """The pod was listed at `t_s` and had not changed (PLEG-011)."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._entries[uid] = replace(entry, read_s=t_s)
        self._held.discard(uid)
        self._notify(t_s, uid)

    def update_time(self, t_s: float) -> None:
        """All pods were listed at `t_s` and every change is in the cache (PLEG-009), except for
        pods that are held."""
        self._global_s = t_s
        if self._waiters:
            self._notify(t_s, None)

    def _is_newer(self, uid: str, t_s: float) -> bool:
        if self._global_s is not None and self._global_s > t_s and uid not in self._held:
            return True
        entry = self._entries.get(uid)
        return entry is not None and entry.newest_s > t_s

    def _notify(self, t_s: float, uid: str | None) -> None:
        """Wake the waiters of `uid` (None: of all pods not held) that asked for a time up to `t_s`
        (PLEG-102)."""
        for waiter in list(self._waiters):
            concerned = waiter.uid == uid or (uid is None and waiter.uid not in self._held)
            if concerned and t_s >= waiter.newer_than_s:
                self._waiters.remove(waiter)
                if not waiter.future.done():
                    waiter.future.set_result(self._entries.get(waiter.uid))
