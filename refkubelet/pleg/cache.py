"""The pod cache: the newest known runtime status per pod, and waiting for a newer one.

The PLEG writes, pod workers read. A worker asks for a status newer than the end of its previous
step, so no step ever acts on what it already changed (LIFE-038). What must never happen: a waiter
woken with a status older than it asked for, also when an older one is written before it runs. There
is no time-out: a hung runtime hangs its workers, and nothing else (PLEG-102).
With the gate EventedPLEG the runtime's events write, too. Where what they said is in doubt, the pod
is held (`hold`): then only a status that was read from the runtime counts as newer.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from refkubelet.cri.records import ContainerRecord, RuntimePodStatus, SandboxState
from simtime import Clock


class PodStatusError(Exception):
    """The last attempt to read a pod's status from the runtime failed; the text says why."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a pod. `modified_s`: when it was so; `read_s`: when the runtime was asked
    last, and it was so; `heard_s`: when an event was taken last."""

    status: RuntimePodStatus
    error: str | None
    modified_s: float
    read_s: float
    heard_s: float = -math.inf

    @property
    def newest_s(self) -> float:
        return max(self.modified_s, self.read_s)

    def status_or_error(self) -> RuntimePodStatus:
        if self.error is not None:
            raise PodStatusError(self.error)
        return self.status


@dataclass(frozen=True, slots=True)
class _Waiter:
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
        return RuntimePodStatus(uid) if entry is None else entry.status_or_error()

    def known(self, uid: str) -> Known | None:
        """Status or error, and of when; None: the pod is unknown."""
        return self._entries.get(uid)

    def uids(self) -> list[str]:
        """Of all pods that something is known of."""
        return list(self._entries)

    def running_containers(self) -> list[ContainerRecord]:
        """The containers that run as far as is known, of all pods."""
        return [c for entry in self._entries.values() for c in entry.status.running()]

    async def get_newer_than(self, uid: str, t_s: float) -> RuntimePodStatus:
        """Wait for a status of the pod newer than `t_s` (PLEG-102, LIFE-038).

        Returns at once if one is there, or if everything was listed since and the pod is unknown
        (an empty status). `t_s` is a stamp of this cache; 0 asks for any status. Raises
        `PodStatusError` (PLEG-104).
        """
        if self._is_newer(uid, t_s):
            return self.get(uid)
        waiter = _Waiter(uid, t_s, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            found = await waiter.future
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return RuntimePodStatus(uid) if found is None else found.status_or_error()

    def set(self, uid: str, status: RuntimePodStatus, error: Exception | None, t_s: float) -> None:
        """Replace status and error; `t_s` is the time of the listing (PLEG-103)."""
        text = None if error is None else str(error)
        self._entries[uid] = Known(status, text, t_s, t_s)
        self._held.discard(uid)
        self._notify(t_s, uid)

    def heard(self, uid: str, status: RuntimePodStatus, t_s: float) -> None:
        """An event says that the pod was so at `t_s` (PLEG-302)."""
        old = self._entries.get(uid)
        read_s = old.read_s if old is not None else -math.inf
        self._entries[uid] = Known(
            status=status, error=None, modified_s=t_s, read_s=read_s, heard_s=self.stamp_s()
        )
        self._notify(t_s, uid)

    def hold(self, uid: str) -> None:
        """What is known of the pod is in doubt: until it is read, the time of the whole cache says
        nothing of it."""
        self._held.add(uid)

    def release_all(self) -> None:
        """No pod is in doubt any more: everything is listed all the time."""
        self._held.clear()

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
        self._held.discard(uid)

    def observed(self, uid: str, t_s: float) -> None:
        """The pod was listed at `t_s` and had not changed (PLEG-011)."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._entries[uid] = replace(entry, read_s=t_s)
        self._held.discard(uid)
        self._notify(t_s, uid)

    def update_time(self, t_s: float) -> None:
        """All pods were listed at `t_s`, and every change is in the cache (PLEG-009), but for pods
        that are held."""
        self._global_s = t_s
        self._notify(t_s, None)

    def _is_newer(self, uid: str, t_s: float) -> bool:
        if self._global_s is not None and self._global_s > t_s and uid not in self._held:
            return True
        entry = self._entries.get(uid)
        return entry is not None and entry.newest_s > t_s

    def _notify(self, t_s: float, uid: str | None) -> None:
        """Wake those for whom `t_s` is not before the time they asked for (PLEG-102)."""
        for waiter in list(self._waiters):
            mine = waiter.uid == uid or (uid is None and waiter.uid not in self._held)
            if mine and t_s >= waiter.newer_than_s:
                self._waiters.remove(waiter)
                if not waiter.future.done():
                    waiter.future.set_result(self._entries.get(waiter.uid))
