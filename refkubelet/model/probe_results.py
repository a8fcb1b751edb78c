"""Results of probes: one value per container ID, and a queue of changes for the sync loop.

Rule: PROBE-031. Only a change of the stored value makes an update. The queue has room for 20
updates; a full queue blocks the probe worker.
Upstream: pkg/kubelet/prober/results/results_manager.go.
"""

from __future__ import annotations

import asyncio
from enum import Enum

from msgspec import Struct


class ProbeResult(Enum):
    """What a probe worker stored for a container."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class ProbeType(Enum):
    """The three probes, by the word their events start with (PROBE-081)."""

    LIVENESS = "Liveness"
    READINESS = "Readiness"
    STARTUP = "Startup"


class ProbeUpdate(Struct, frozen=True):
    """A changed result, for the sync loop (PROBE-032)."""

    container_id: str
    result: ProbeResult
    pod_uid: str


class ResultManager:
    """The results of one probe type (upstream: results.Manager). They are in memory only: a
    restarted kubelet has none (PROBE-053)."""

    def __init__(self) -> None:
        self.updates: asyncio.Queue[ProbeUpdate] = asyncio.Queue(maxsize=20)
        self._results: dict[str, ProbeResult] = {}

    def get(self, container_id: str) -> ProbeResult | None:
        """The stored result of a container, or None."""
        return self._results.get(container_id)

    async def set(self, container_id: str, result: ProbeResult, pod_uid: str) -> None:
        """Store `result`, and queue an update if it differs from the stored one (PROBE-031)."""
        if self._results.get(container_id) is result:
            return
        self._results[container_id] = result
        await self.updates.put(ProbeUpdate(container_id, result, pod_uid))

    def remove(self, container_id: str) -> None:
        """Forget the container, without an update (PROBE-031)."""
        self._results.pop(container_id, None)
