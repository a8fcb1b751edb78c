"""The pod cache: the newest known runtime status per pod, and waiting for a newer one.

The PLEG writes, pod workers read. A worker asks for a status newer than the end of its previous
step, so no step ever acts on what it already changed (LIFE-038). What must never happen: a waiter
woken with a status older than it asked for. There is no time-out: a hung runtime hangs its
workers, and nothing else (PLEG-102).
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from refkubelet.runtime.records import ContainerRecord, RuntimePodStatus, SandboxState
from simtime import Clock


class PodStatusError(Exception):
    """The last attempt to read a pod's status from the runtime failed; the text says why."""


@dataclass(frozen=True, slots=True)
class _Entry:
    status: RuntimePodStatus
    error: str | None
    modified_s: float
    observed_s: float


@dataclass(frozen=True, slots=True)
class _Waiter:
    uid: str
    newer_than_s: float
    future: asyncio.Future[None]


class PodCache:
    """Times are stamps: monotonic seconds of the clock, never the same twice (`stamp_s`).
    `refuse_older`: with the gate EventedPLEG two write into it, and the newer picture stays.

    Upstream: pkg/kubelet/container/cache.go.
    """

    def __init__(self, clock: Clock, *, refuse_older: bool = False) -> None:
        self._clock = clock
        self._refuse_older = refuse_older
        self._last_stamp_s = -math.inf
        self._entries: dict[str, _Entry] = {}
        self._global_s: float | None = None
        self._waiters: list[_Waiter] = []

    def stamp_s(self) -> float:
        """Now, and later than every stamp given before.

        Listings and the ends of worker steps are both stamped here, so that their order is known
        even when virtual time stands still: a listing made before the end of a step is older.
        """
        later_s = math.nextafter(self._last_stamp_s, math.inf)
        self._last_stamp_s = max(self._clock.monotonic_s(), later_s)
        return self._last_stamp_s

    def get(self, uid: str) -> RuntimePodStatus:
        """The cached status without waiting; an empty one for an unknown pod (PLEG-101).

        Raises `PodStatusError` if the last attempt to read the status failed.
        """
        entry = self._entries.get(uid)
        if entry is None:
            return RuntimePodStatus(uid)
        if entry.error is not None:
            raise PodStatusError(entry.error)
        return entry.status

    def running_containers(self) -> list[ContainerRecord]:
        """The containers that run as far as is known, of all pods."""
        return [c for entry in self._entries.values() for c in entry.status.running()]

    async def get_newer_than(self, uid: str, t_s: float) -> RuntimePodStatus:
        """Wait for a status of the pod newer than `t_s` (PLEG-102, LIFE-038).

        Returns at once if one is there, or if everything was listed since and the pod is unknown
        (an empty status). `t_s` is a stamp of this cache; 0 asks for any status. Raises
        `PodStatusError` (PLEG-104).
        """
        if not self._is_newer(uid, t_s):
            waiter = _Waiter(uid, t_s, asyncio.get_running_loop().create_future())
            self._waiters.append(waiter)
            try:
                await waiter.future
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self.get(uid)

    def set(self, uid: str, status: RuntimePodStatus, error: Exception | None, t_s: float) -> bool:
        """Replace status and error; `t_s` is the time of the listing (PLEG-103). False: refused,
        because what is there is newer."""
        old = self._entries.get(uid)
        if self._refuse_older and old is not None and old.modified_s > t_s:
            return False
        text = None if error is None else str(error)
        self._entries[uid] = _Entry(status, text, t_s, t_s)
        self._notify(t_s, uid)
        return True

    def with_kept_ips(self, status: RuntimePodStatus) -> RuntimePodStatus:
        """`status` with the cached IPs, if it has none and no sandbox is READY (PLEG-010)."""
        if status.ips or any(s.state is SandboxState.READY for s in status.sandboxes):
            return status
        try:
            return replace(status, ips=self.get(status.uid).ips)
        except PodStatusError:
            return status

    def delete(self, uid: str) -> None:
        """Forget the pod; waiters go on waiting (PLEG-103)."""
        self._entries.pop(uid, None)

    def observed(self, uid: str, t_s: float) -> None:
        """The pod was listed at `t_s` and had not changed (PLEG-011)."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._entries[uid] = _Entry(entry.status, entry.error, entry.modified_s, t_s)
        self._notify(t_s, uid)

    def update_time(self, t_s: float) -> None:
        """All pods were listed at `t_s`, and every change is in the cache (PLEG-009)."""
        self._global_s = t_s
        self._notify(t_s, None)

    def _is_newer(self, uid: str, t_s: float) -> bool:
        if self._global_s is not None and self._global_s > t_s:
            return True
        entry = self._entries.get(uid)
        return entry is not None and max(entry.modified_s, entry.observed_s) > t_s

    def _notify(self, t_s: float, uid: str | None) -> None:
        """Wake those for whom `t_s` is not before the time they asked for (PLEG-102)."""
        for waiter in list(self._waiters):
            if uid in (None, waiter.uid) and t_s >= waiter.newer_than_s:
                self._waiters.remove(waiter)
                if not waiter.future.done():
                    waiter.future.set_result(None)
