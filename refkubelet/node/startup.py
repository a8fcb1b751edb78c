"""How long a new node takes until it is ready for the first time (SRV-038.6).

Counted once for a Node object that this kubelet makes; a Node that is there already is no new node.
Upstream: pkg/kubelet/util/node_startup_latency_tracker.go.
"""

from __future__ import annotations

from refkubelet.telemetry.node_metrics import NodeMetrics
from simclock import Clock
from simclock.clock import NANOSECONDS


class NodeStartup:
    """`started_ns`, `booted_ns`: of this kubelet and the machine, in ns since 1970; None: it is not
    known when it was booted."""

    def __init__(
        self, metrics: NodeMetrics, clock: Clock, *, started_ns: int, booted_ns: int | None
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._started_ns = started_ns
        self._booted_ns = booted_ns
        self._tried_ns: int | None = None
        self._registered_ns: int | None = None
        self._is_ready = False

    def tried(self) -> None:
        """The Node object is about to be made."""
        if self._tried_ns is None:
            self._tried_ns = self._clock.wall_ns()

    def registered(self) -> None:
        """It was made."""
        if self._tried_ns is None or self._registered_ns is not None:
            return
        self._registered_ns = self._clock.wall_ns()
        if self._booted_ns is not None:
            self._metrics.pre_kubelet.set(_seconds(self._booted_ns, self._started_ns))
        self._metrics.pre_registration.set(_seconds(self._started_ns, self._tried_ns))
        self._metrics.registration.set(_seconds(self._tried_ns, self._registered_ns))

    def ready(self) -> None:
        """It shows that the node is ready."""
        if self._registered_ns is None or self._is_ready:
            return
        self._is_ready = True
        now_ns = self._clock.wall_ns()
        self._metrics.post_registration.set(_seconds(self._registered_ns, now_ns))
        if self._booted_ns is not None:
            self._metrics.startup.set(_seconds(self._booted_ns, now_ns))


def _seconds(begun_ns: int, ended_ns: int) -> float:
    return (ended_ns - begun_ns) / NANOSECONDS
