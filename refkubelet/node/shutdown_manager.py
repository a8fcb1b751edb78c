"""Delays a shutdown of the machine until the pods have ended, group by group.

What must never happen here: the kubelet fails because the source of shutdown signals does, or a
lock is held longer than the pods need.
Rules: NODE-060..064, LIFE-229. Upstream: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from refkubelet.admission.admit_handler import PodAdmitAttributes, Rejection
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import pod_ref
from refkubelet.node.shutdown import (
    REFUSAL,
    SHUTTING_DOWN,
    ShutdownGroup,
    grace_s,
    pods_by_group,
    shut_down_status,
)
from refkubelet.node.shutdown_state import ShutdownTimes, load_times, store_times
from simclock import Clock

log = logging.getLogger(__name__)

EVENT: Final = "Shutdown"
RECONNECT_S: Final = 1.0
DELAY_CHECKS_S: Final = (0.0, 0.1, 0.2, 0.4, 0.8)
NOT_NOTICED: Final = "shutdowns of the node are not noticed"


class ShutdownSourceError(Exception):
    """The source of shutdown signals cannot be reached, or refuses a request; the text says why."""


class InhibitLock(Protocol):
    """Delays a shutdown while it is held, for the longest delay at most."""

    async def release(self) -> None:
        """Release it; a second call does nothing."""


class ShutdownSignals(Protocol):
    """Yields True when a shutdown begins, False when it is cancelled; ends with the connection."""

    def __aiter__(self) -> AsyncIterator[bool]: ...

    async def aclose(self) -> None:
        """Stop listening."""


class ShutdownSource(Protocol):
    """The source of shutdown signals, systemd-logind. Every method may raise
    `ShutdownSourceError`."""

    async def longest_delay_s(self) -> float:
        """For how many seconds locks can delay a shutdown."""

    async def set_longest_delay(self, delay_s: float) -> None:
        """Request another longest delay; it takes effect a little later."""

    async def inhibit(self) -> InhibitLock: ...

    def signals(self) -> ShutdownSignals: ...


class ShutdownDeps(Struct, frozen=True):
    """What the shutdown manager works with."""

    clock: Clock
    events: EventRecorder
    active_pods: Callable[[], tuple[Pod, ...]]
    kill_pod: Callable[[Pod, Callable[[PodStatus], PodStatus], int], Awaitable[None]]
    """Called with the pod, a function that makes its status, and the grace period in seconds.
    Returns when the pod has stopped; raises when that takes too long (LIFE-040)."""
    tell_node_status: Callable[[], None]
    """Makes the registrar write the Node's status at once (NODE-061)."""
    state_file: Path
    """The file with the times of the last shutdown."""


class NodeShutdownManager:
    """Handles shutdowns, and refuses pods meanwhile as an admission handler. `times`: begin and end
    of the last shutdown, for the metrics."""

    def __init__(
        self, groups: tuple[ShutdownGroup, ...], source: ShutdownSource, deps: ShutdownDeps
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
        """Refuses every pod while the node is shutting down (LIFE-229)."""
        return REFUSAL if self._shutting_down else None

    def not_ready(self) -> list[str]:
        """Why the node is not ready (NODE-061)."""
        return [SHUTTING_DOWN] if self._shutting_down else []

    async def run(self) -> None:
        """Watch for shutdowns until cancelled; if the source fails, try again every second."""
        self.times = load_times(self._deps.state_file)
        try:
            while True:
                try:
                    await self._watch()
                except ShutdownSourceError as error:
                    self._complaints.failed(NOT_NOTICED, error, ShutdownSourceError)
                await self._deps.clock.sleep(RECONNECT_S)
        finally:
            for kill in self._kills:
                kill.cancel()
            await self._let_go()

    async def _watch(self) -> None:
        await self._demand_time()
        async with aclosing(self._source.signals()) as signals:
            await self._hold_up()
            self._complaints.over(NOT_NOTICED)
            async for begins in signals:
                await (self._shut_down() if begins else self._call_off())

    async def _demand_time(self) -> None:
        """Make sure that a lock can delay a shutdown for as long as all groups together need
        (NODE-060, NODE-064): a shorter longest delay is raised once, then checked. Raises
        `ShutdownSourceError` while it is too short."""
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
            f"shutdowns can be delayed for {allowed_s:g} s, but shutdownGracePeriod needs "
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
        """End the groups in turn, then release the lock (NODE-061, NODE-062)."""
        self._note("Shutdown manager detected shutdown event", shutting_down=True)
        began_ns = self._deps.clock.wall_ns()
        self._store(ShutdownTimes(began_ns))
        try:
            for group, pods in pods_by_group(self._groups, self._deps.active_pods()):
                await self._end(group, pods)
        finally:
            await self._let_go()
            self._store(ShutdownTimes(began_ns, self._deps.clock.wall_ns()))
        log.info("all pods were told to end; the node may shut down")

    async def _call_off(self) -> None:
        self._note("Shutdown manager detected shutdown cancellation", shutting_down=False)
        await self._hold_up()

    def _note(self, message: str, *, shutting_down: bool) -> None:
        self._deps.events.node_event("Normal", EVENT, message)
        self._shutting_down = shutting_down
        if shutting_down:
            self._deps.tell_node_status()

    async def _end(self, group: ShutdownGroup, pods: tuple[Pod, ...]) -> None:
        """Kill all pods of a group at once, and wait for at most the group's grace period; the
        kills of later pods go on."""
        kills = [asyncio.create_task(self._kill(pod, group)) for pod in pods]
        self._kills = [kill for kill in self._kills if not kill.done()] + kills
        _, late = await asyncio.wait(kills, timeout=group.grace_s)
        if late:
            log.warning(
                "%d pods of the shutdown group with priority %d have not ended in time",
                len(late),
                group.priority,
            )

    async def _kill(self, pod: Pod, group: ShutdownGroup) -> None:
        try:
            await self._deps.kill_pod(pod, shut_down_status(pod), grace_s(pod, group))
        except Exception as error:
            log.warning("shutdown: pod %s: %s", pod_ref(pod), error)

    def _store(self, times: ShutdownTimes) -> None:
        self.times = times
        store_times(self._deps.state_file, times)
