"""The part of systemd-logind that holds up shutdowns, for kubelets of fake machines.

Listeners to `signals` are told when a shutdown begins or is called off; while a lock is held, and
no longer than `delay_s`, the machine stays up. What must never happen here: a lock that counts
twice, or after its release.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct, field


class FakeLock(Struct, eq=False):
    """A delay lock on shutdowns."""

    logind: FakeLogind

    async def release(self) -> None:
        """Release the lock. May be called again."""
        if self in self.logind.locks:
            self.logind.locks.remove(self)


class Signals(AsyncIterator[bool]):
    """The signals that one listener has not read yet; after `aclose` none are kept."""

    def __init__(self, listeners: list[Signals]) -> None:
        self.unheard: asyncio.Queue[bool] = asyncio.Queue()
        self._listeners = listeners
        listeners.append(self)

    async def aclose(self) -> None:
        """Stop to listen. May be called again."""
        if self in self._listeners:
            self._listeners.remove(self)

    def __aiter__(self) -> Signals:
        return self

    async def __anext__(self) -> bool:
        return await self.unheard.get()


class FakeLogind(Struct, eq=False, dict=True):
    """The part of logind that delays shutdowns. `delay_s`: its InhibitDelayMaxSec. A client may
    change it, unless logind is `stubborn`; `asked_s` has what clients asked for. `locks`: those
    that are held."""

    delay_s: float = 5.0
    stubborn: bool = False
    asked_s: list[float] = field(default_factory=list)
    locks: list[FakeLock] = field(default_factory=list)
    shutting_down: bool = False
    _listeners: list[Signals] = field(default_factory=list)

    def shut_down(self) -> None:
        """Begin a shutdown: listeners are told."""
        self._tell(True)

    def call_off(self) -> None:
        """Call the shutdown off: listeners are told."""
        self._tell(False)

    def _tell(self, begins: bool) -> None:
        self.shutting_down = begins
        for listener in self._listeners:
            listener.unheard.put_nowait(begins)

    @property
    def listening(self) -> int:
        """How many clients listen to the signals."""
        return len(self._listeners)

    @property
    def delayed(self) -> bool:
        """Whether a shutdown is under way that a lock delays."""
        return self.shutting_down and bool(self.locks)

    # What a kubelet asks

    async def longest_delay_s(self) -> float:
        return self.delay_s

    async def set_longest_delay(self, delay_s: float) -> None:
        self.asked_s.append(delay_s)
        if not self.stubborn:
            self.delay_s = delay_s

    async def inhibit(self) -> FakeLock:
        lock = FakeLock(self)
        self.locks.append(lock)
        return lock

    def signals(self) -> Signals:
        return Signals(self._listeners)
