"""Ends the pods in order when the machine is about to go down, and holds it up until they ended.

What must never happen here: a kubelet that fails because nobody tells of shutdowns; a lock that is
kept longer than the pods need.
Rules: NODE-060..064, LIFE-229. Upstream: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from refkubelet.admission.admit_handler import PodAdmitAttributes, Rejection
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import pod_ref
from refkubelet.node.shutdown import (
    REFUSAL,
    SHUTTING_DOWN,
    Group,
    grace_s,
    pods_by_group,
    shut_down_status,
)
from refkubelet.node.shutdown_state import ShutdownTimes, load_times, store_times
from simtime import Clock

log = logging.getLogger(__name__)

EVENT: Final = "Shutdown"
RECONNECT_S: Final = 1.0
DELAY_CHECKS_S: Final = (0.0, 0.1, 0.2, 0.4, 0.8)
NOBODY_TELLS: Final = "shutdowns of the node are not noticed"


class ShutdownSourceError(Exception):
    """Who tells of shutdowns cannot be reached, or refuses; the text says why."""


class InhibitLock(Protocol):
    """Holds up a shutdown, for a time, while it is held."""

    async def release(self) -> None:
        """Let go of it; once more is no error."""
        ...


class ShutdownSignals(Protocol):
    """True: a shutdown begins, False: it has been called off. Ends when the connection does."""

    def __aiter__(self) -> AsyncIterator[bool]: ...

    async def aclose(self) -> None:
        """Nobody listens any longer."""
        ...


class ShutdownSource(Protocol):
    """Who tells of shutdowns: systemd-logind. Every method raises `ShutdownSourceError`."""

    async def longest_delay_s(self) -> float:
        """For how long locks can hold up a shutdown."""
        ...

    async def set_longest_delay(self, delay_s: float) -> None:
        """Ask for another longest delay; it holds a little later."""
        ...

    async def inhibit(self) -> InhibitLock: ...

    def signals(self) -> ShutdownSignals: ...


@dataclass(frozen=True, slots=True)
class ShutdownDeps:
    """`kill_pod` returns when the pod has stopped, and raises when that takes too long (LIFE-040).
    `tell_node_status`: have it written at once (NODE-061). `state_file`: where the times of the
    last shutdown are kept."""

    clock: Clock
    events: EventRecorder
    active_pods: Callable[[], tuple[Pod, ...]]
    kill_pod: Callable[[Pod, Callable[[PodStatus], PodStatus], int], Awaitable[None]]
    tell_node_status: Callable[[], None]
    state_file: Path


class NodeShutdownManager:
    """One per kubelet that has `groups`; also an admission handler. `times`: of the last shutdown,
    for the metrics."""

    def __init__(
        self, groups: tuple[Group, ...], source: ShutdownSource, deps: ShutdownDeps
    ) -> None:
        self._groups = groups
        self._source = source
        self._deps = deps
        self._shutting_down = False
        self._lock: InhibitLock | None = None
        self._asked_for_time = False
        self._kills: list[asyncio.Task[None]] = []
        self._complaints = Complaints(log, deps.clock)
        self.times = ShutdownTimes()

    def admit(self, asked: PodAdmitAttributes) -> Rejection | None:
        """LIFE-229."""
        return REFUSAL if self._shutting_down else None

    def not_ready(self) -> list[str]:
        """Why the node is not ready (NODE-061)."""
        return [SHUTTING_DOWN] if self._shutting_down else []

    async def run(self) -> None:
        """Until cancelled; while nobody can tell of shutdowns it asks again every second."""
        self.times = load_times(self._deps.state_file)
        try:
            while True:
                try:
                    await self._watch()
                except ShutdownSourceError as error:
                    self._complaints.failed(NOBODY_TELLS, error, ShutdownSourceError)
                await self._deps.clock.sleep(RECONNECT_S)
        finally:
            for kill in self._kills:
                kill.cancel()
            await self._let_go()

    async def _watch(self) -> None:
        await self._demand_time()
        async with aclosing(self._source.signals()) as signals:
            await self._hold_up()
            self._complaints.over(NOBODY_TELLS)
            async for begins in signals:
                await (self._shut_down() if begins else self._call_off())

    async def _demand_time(self) -> None:
        """NODE-060, NODE-064: the lock must be able to hold for as long as all groups together
        need. Who allows less is asked for more once, and watched from then on."""
        wanted_s = sum(group.grace_s for group in self._groups)
        allowed_s = await self._source.longest_delay_s()
        if allowed_s < wanted_s and not self._asked_for_time:
            await self._source.set_longest_delay(wanted_s)
            self._asked_for_time = True
            allowed_s = await self._delay_granted_s(wanted_s)
        if allowed_s >= wanted_s:
            self._asked_for_time = False
            return
        raise ShutdownSourceError(
            f"shutdowns can be held up for {allowed_s:g} s, and shutdownGracePeriod needs "
            f"{wanted_s} s; set InhibitDelayMaxSec in logind.conf"
        )

    async def _delay_granted_s(self, wanted_s: float) -> float:
        allowed_s = 0.0
        for pause_s in DELAY_CHECKS_S:
            await self._deps.clock.sleep(pause_s)
            allowed_s = await self._source.longest_delay_s()
            if allowed_s >= wanted_s:
                break
        return allowed_s

    async def _hold_up(self) -> None:
        lock = await self._source.inhibit()
        await self._let_go()
        self._lock = lock

    async def _let_go(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            await lock.release()

    async def _shut_down(self) -> None:
        """NODE-061, NODE-062."""
        self._note("Shutdown manager detected shutdown event", shutting_down=True)
        began_ns = self._deps.clock.wall_ns()
        self._store(ShutdownTimes(began_ns))
        try:
            for group, pods in pods_by_group(self._groups, self._deps.active_pods()):
                await self._end(group, pods)
        finally:
            await self._let_go()
            self._store(ShutdownTimes(began_ns, self._deps.clock.wall_ns()))
        log.info("all pods have been told to end: the node may go down")

    async def _call_off(self) -> None:
        self._note("Shutdown manager detected shutdown cancellation", shutting_down=False)
        await self._hold_up()

    def _note(self, message: str, *, shutting_down: bool) -> None:
        self._deps.events.node_event("Normal", EVENT, message)
        self._shutting_down = shutting_down
        if shutting_down:
            self._deps.tell_node_status()

    async def _end(self, group: Group, pods: tuple[Pod, ...]) -> None:
        """All pods of a group at once; those that are not ready in time go on ending."""
        kills = [asyncio.create_task(self._kill(pod, group)) for pod in pods]
        self._kills = [kill for kill in self._kills if not kill.done()] + kills
        _, late = await asyncio.wait(kills, timeout=group.grace_s)
        if late:
            log.warning("%d pods of priority %d are late", len(late), group.priority)

    async def _kill(self, pod: Pod, group: Group) -> None:
        try:
            await self._deps.kill_pod(pod, shut_down_status(pod), grace_s(pod, group))
        except Exception as error:
            log.warning("shutdown: pod %s: %s", pod_ref(pod), error)

    def _store(self, times: ShutdownTimes) -> None:
        self.times = times
        store_times(self._deps.state_file, times)
