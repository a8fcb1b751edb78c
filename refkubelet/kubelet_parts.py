"""The small loops around the runtime, and the adapters between parts that do not know each other.

Upstream: pkg/kubelet/kubelet.go: updateRuntimeUp, StartGarbageCollection; eviction/helpers.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from refkubelet.config.kubelet_config import KubeletConfiguration
from refkubelet.events import EventRecorder
from refkubelet.runtime.client import CriCallError
from refkubelet.runtime.records import RuntimeConditions, RuntimeVersion
from refkubelet.runtime_state import STATUS_PERIOD_S, RuntimeState
from simtime import Clock

log = logging.getLogger(__name__)

CONTAINER_GC_PERIOD_S: Final = 60.0


class WatchedRuntime(Protocol):
    async def runtime_status(self) -> RuntimeConditions: ...

    async def version(self) -> RuntimeVersion: ...


class RuntimeWatch:
    """Asks the runtime for its status every 5 s (NODE-050). `ready` is set once, the first time
    the runtime is ready."""

    def __init__(self, runtime: WatchedRuntime, state: RuntimeState, clock: Clock) -> None:
        self._runtime = runtime
        self._state = state
        self._clock = clock
        self._name: str | None = None
        self.ready = asyncio.Event()

    def runtime_name(self) -> str:
        """The runtime's own name, the scheme of container IDs in statuses."""
        return self._name or "unknown"

    async def run(self) -> None:
        while True:
            await self.look()
            await self._clock.sleep(STATUS_PERIOD_S)

    async def look(self) -> None:
        """Ask once; a failing call changes nothing until the last good answer is too old."""
        try:
            if self._name is None:
                self._name = (await self._runtime.version()).runtime_name
            self._state.observe(await self._runtime.runtime_status())
        except CriCallError as error:
            log.warning("the runtime does not say how it is: %s", error)
            return
        if self._state.seen_ready:
            self.ready.set()
