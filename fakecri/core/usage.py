"""What all containers use together, kept as a running sum.

The curves of behaviours are steps, so what changes and when is known at the start of a container:
the steps are on a heap, and asking costs what has fallen due since the last time. What must never
happen here: a container that is gone is still counted.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

from msgspec import Struct, field

from fakecri.words import behaviors as words
from fakecri.words.curves import at

_SPARE_STEPS: Final = 1000


class Amounts(NamedTuple):
    """Of one container, or of all. `inodes`: beside the one that every container has."""

    memory: int = 0
    disk: int = 0
    inodes: int = 0


NOTHING: Final = Amounts()


class UsageLedger(Struct, eq=False):
    """Memory of running containers and disk of all; times are nanoseconds since 1970.

    Of containers with a cgroup it has the disk alone: their memory is charged there.
    """

    _sum: Amounts = NOTHING
    _running: dict[str, Amounts] = field(default_factory=dict)
    _ended: dict[str, Amounts] = field(default_factory=dict)
    _steps: list[tuple[int, str, Amounts]] = field(default_factory=list)
    _most_steps: int = _SPARE_STEPS

    def started(
        self, container_id: str, started_ns: int, uses: words.uses, *, has_cgroup: bool = False
    ) -> None:
        """It runs from now on and uses what the curves say; what they say of its start at once."""
        memory = () if has_cgroup else uses.memory_bytes
        if not (memory or uses.disk_bytes or uses.inodes):
            return
        curves = (memory, uses.disk_bytes, uses.inodes)
        times_s = sorted({at_s for curve in curves for at_s, _ in curve})
        self._running[container_id] = NOTHING
        for at_s in times_s:
            inodes = max(0, at(uses.inodes, at_s) - 1)
            amounts = Amounts(at(memory, at_s), at(uses.disk_bytes, at_s), inodes)
            if at_s == 0:
                self._change(NOTHING, amounts)
                self._running[container_id] = amounts
            else:
                due_ns = started_ns + round(at_s * 1e9)
                heapq.heappush(self._steps, (due_ns, container_id, amounts))
        if len(self._steps) > self._most_steps:
            self._drop_steps_of_ended()

    def ended(self, container_id: str, now_ns: int) -> None:
        """It runs no longer; its disk stays in use."""
        self._settle(now_ns)
        if container_id in self._running:
            amounts = self._running.pop(container_id)
            on_disk = amounts._replace(memory=0)
            self._change(amounts, on_disk)
            self._ended[container_id] = on_disk

    def gone(self, container_id: str) -> None:
        """It was removed, with its disk."""
        for table in (self._running, self._ended):
            self._change(table.pop(container_id, NOTHING), NOTHING)

    def clear(self) -> None:
        """All are gone."""
        self._sum = NOTHING
        for store in (self._running, self._ended, self._steps):
            store.clear()

    def total(self, now_ns: int) -> Amounts:
        """What is used now."""
        self._settle(now_ns)
        return self._sum

    def as_of(self, now_ns: int) -> UsageLedger:
        """A ledger that always says what this one says now."""
        return UsageLedger(self.total(now_ns))

    def _settle(self, now_ns: int) -> None:
        while self._steps and self._steps[0][0] <= now_ns:
            _, container_id, amounts = heapq.heappop(self._steps)
            if container_id in self._running:
                self._change(self._running[container_id], amounts)
                self._running[container_id] = amounts

    def _change(self, old: Amounts, new: Amounts) -> None:
        if old != new:
            self._sum = Amounts(*(s - a + b for s, a, b in zip(self._sum, old, new, strict=True)))

    def _drop_steps_of_ended(self) -> None:
        self._steps = [step for step in self._steps if step[1] in self._running]
        heapq.heapify(self._steps)
        self._most_steps = 2 * len(self._steps) + _SPARE_STEPS
