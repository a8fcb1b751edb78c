"""The work queue: when each pod is due for its next sync; read once a second (LIFE-004).

Upstream: pkg/kubelet/util/queue/work_queue.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from simclock import Clock


class WorkQueue:
    """At most one due time per UID. `next_s`: nothing is due before that time of the clock;
    `sooner` is called whenever that becomes earlier."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s: dict[str, float] = {}
        self.next_s = math.inf
        self.sooner: Callable[[], None] = lambda: None

    def enqueue(self, uid: str, delay_s: float) -> None:
        """Make `uid` due in `delay_s` seconds; replaces its earlier due time."""
        due_s = self._due_s[uid] = self._clock.monotonic_s() + delay_s
        if due_s < self.next_s:
            self.next_s = due_s
            self.sooner()

    def take_due(self) -> tuple[str, ...]:
        """Remove and return the due UIDs, in the order of their due times."""
        now_s = self._clock.monotonic_s()
        due = sorted((at_s, uid) for uid, at_s in self._due_s.items() if at_s <= now_s)
        for _, uid in due:
            del self._due_s[uid]
        self.next_s = min(self._due_s.values(), default=math.inf)
        return tuple(uid for _, uid in due)

    def forget(self, uid: str) -> None:
        """Nothing is due for the pod."""
        self._due_s.pop(uid, None)
