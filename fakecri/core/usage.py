"""What all containers use together, kept as a running sum.

The curves of behaviours are steps, so what changes and when is known at the start of a container:
the steps are on a heap, and asking costs what has fallen due since the last time. What must never
happen here: a container that is gone is still counted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final

from fakecri.node import Usage
from fakecri.rules.behavior import Uses
from fakecri.rules.curves import at

_SPARE_STEPS: Final = 1000


@dataclass(slots=True)
class UsageLedger:
    """Memory of running containers and disk of all; times are nanoseconds since 1970."""

    _memory_bytes: int = 0
    _disk_bytes: int = 0
    _running: dict[str, tuple[int, int]] = field(default_factory=dict)  # id -> memory, disk
    _ended: dict[str, int] = field(default_factory=dict)  # id -> disk
    _steps: list[tuple[int, str, int, int]] = field(default_factory=list)
    _most_steps: int = _SPARE_STEPS

    def started(self, container_id: str, now_ns: int, uses: Uses) -> None:
        """It runs from now on and uses what the curves say."""
        times_s = sorted({at_s for curve in (uses.memory, uses.disk) for at_s, _ in curve})
        if not times_s:
            return
        self._running[container_id] = (0, 0)
        for at_s in times_s:
            amounts = at(uses.memory, at_s), at(uses.disk, at_s)
            heapq.heappush(self._steps, (now_ns + round(at_s * 1e9), container_id, *amounts))
        if len(self._steps) > self._most_steps:
            self._drop_steps_of_ended()

    def ended(self, container_id: str, now_ns: int) -> None:
        """It runs no longer; its disk stays in use."""
        self._settle(now_ns)
        if container_id in self._running:
            memory, disk = self._running.pop(container_id)
            self._memory_bytes -= memory
            self._ended[container_id] = disk

    def gone(self, container_id: str) -> None:
        """It was removed, with its disk."""
        memory, disk = self._running.pop(container_id, (0, 0))
        self._memory_bytes -= memory
        self._disk_bytes -= disk + self._ended.pop(container_id, 0)

    def clear(self) -> None:
        """All are gone."""
        self._memory_bytes = self._disk_bytes = 0
        for store in (self._running, self._ended, self._steps):
            store.clear()

    def total(self, now_ns: int, image_bytes: int) -> Usage:
        """What is used now, with that much by images."""
        self._settle(now_ns)
        return Usage(self._memory_bytes, self._disk_bytes, image_bytes)

    def as_of(self, now_ns: int) -> UsageLedger:
        """A ledger that always says what this one says now."""
        self._settle(now_ns)
        return UsageLedger(self._memory_bytes, self._disk_bytes)

    def _settle(self, now_ns: int) -> None:
        while self._steps and self._steps[0][0] <= now_ns:
            _, container_id, memory, disk = heapq.heappop(self._steps)
            if container_id in self._running:
                old_memory, old_disk = self._running[container_id]
                self._running[container_id] = (memory, disk)
                self._memory_bytes += memory - old_memory
                self._disk_bytes += disk - old_disk

    def _drop_steps_of_ended(self) -> None:
        self._steps = [step for step in self._steps if step[1] in self._running]
        heapq.heapify(self._steps)
        self._most_steps = 2 * len(self._steps) + _SPARE_STEPS
