"""Makes the kernel notify when memory passes a threshold, so that a cycle starts sooner (EVIC-058).

Only with kernelMemcgNotification and cgroup v1.
Upstream: pkg/kubelet/eviction/memory_threshold_notifier.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from refkubelet.config.eviction_thresholds import ALLOCATABLE, MEMORY, Threshold
from refkubelet.eviction.observer import Observer
from refkubelet.stats.cgroup_files import memory_dir, read_memory
from simclock import Clock

log = logging.getLogger(__name__)

REFRESH_S: Final = 10.0


class MemoryNotifications:
    """Calls `passed` when memory usage passes a threshold, in bytes as of the last `update`."""

    def __init__(
        self,
        observer: Observer,
        thresholds: Iterable[Threshold],
        clock: Clock,
        passed: Callable[[], None],
    ) -> None:
        self._observer = observer
        self._thresholds = tuple(t for t in thresholds if t.resource == MEMORY)
        self._clock = clock
        self._passed = passed
        self._updated_s: float | None = None
        self._stops: dict[Threshold, Callable[[], None]] = {}

    def update(self) -> None:
        """Register the thresholds again, in bytes: these change with the inactive memory. At most
        every 10 s; a refusal of the kernel is logged."""
        now_s = self._clock.monotonic_s()
        if self._updated_s is not None and now_s - self._updated_s <= REFRESH_S:
            return
        self._updated_s = now_s
        for threshold in self._thresholds:
            try:
                self._watch(threshold)
            except OSError as error:
                log.info("eviction manager: no notification for %s: %s", threshold.signal, error)

    def close(self) -> None:
        """Cancel all notifications."""
        while self._stops:
            self._stops.popitem()[1]()

    def _watch(self, threshold: Threshold) -> None:
        machine = self._observer.machine
        of_pods = threshold.signal == ALLOCATABLE
        path = self._observer.pods_cgroup if of_pods else ""
        memory = read_memory(memory_dir(machine, path), 1)
        if memory is None or (of_pods and memory.limit_bytes is None):
            raise OSError(f"cannot read the memory of cgroup {path or '/'}")
        capacity = memory.limit_bytes if of_pods else machine.memory().total_bytes
        limit = notification_bytes(
            threshold, capacity or 0, memory.usage_bytes - memory.working_set_bytes
        )
        if threshold in self._stops:
            self._stops.pop(threshold)()
        self._stops[threshold] = machine.watch_memory(path, limit, self._passed)


def notification_bytes(threshold: Threshold, capacity: int, inactive_bytes: int) -> int:
    """The memory usage, in bytes, at which the available memory reaches the threshold."""
    return capacity - threshold.value.amount(capacity) + inactive_bytes
