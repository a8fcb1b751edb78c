"""One probe of one container: a loop that ticks, decides and runs the handler.

The first tick comes at once (in a young kubelet after a random part of the period, PROBE-004), then
one every period. Runs never overlap; of the ticks during a long run at most one is kept
(PROBE-005). A trigger makes a tick at once, and the period starts again (PROBE-007). A worker
starts before its container and notices it at a tick, so the first run comes up to a period after
the container's start (PROBE-006). All decisions are in `decide.py`.
Upstream: pkg/kubelet/prober/worker.go.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from refkubelet.failures import Complaints
from refkubelet.model.objects import PodStatus
from refkubelet.model.pod import uid
from refkubelet.model.probe_results import ResultManager
from refkubelet.probes.decide import (
    ProbeTarget,
    ProbeVerdict,
    WorkerState,
    count_outcome,
    decide_probe_run,
    find_status,
)
from refkubelet.probes.metrics import ProbeMetrics
from refkubelet.probes.prober import Prober
from simclock import Clock

log = logging.getLogger(__name__)


class WorkerDeps(Struct, frozen=True):
    """What a worker works with."""

    clock: Clock
    prober: Prober
    results: ResultManager
    pod_status: Callable[[str], PodStatus | None]  # the status manager's cache, by pod UID
    predates_kubelet: Callable[[datetime | None], bool]
    metrics: ProbeMetrics


class ProbeWorker:
    """Runs until its pod has ended or `stop` is called. `first_delay_s`: before the first tick."""

    def __init__(self, target: ProbeTarget, deps: WorkerDeps, first_delay_s: float) -> None:
        self.target = target
        self._deps = deps
        self._complaints = Complaints(log, deps.clock)
        self._first_delay_s = first_delay_s
        self._state = WorkerState()
        self._next_tick_s = math.inf
        self._stopping = False
        self._what = f"probe run of container {target.container.name}"
        self._triggered = False
        self._wake = asyncio.Event()

    def stop(self) -> None:
        """End the worker; a run that has begun is finished first (PROBE-095)."""
        self._stopping = True
        self._wake.set()

    def trigger(self) -> None:
        """Make a tick as soon as possible; triggers before that tick are one (PROBE-007)."""
        self._triggered = True
        self._wake.set()

    async def run(self) -> None:
        """Tick until the end; then remove the worker's result and metrics (PROBE-094)."""
        clock = self._deps.clock
        try:
            if self._first_delay_s > 0:
                await self._first_delay()
            self._next_tick_s = clock.monotonic_s() + self.target.period_s
            while not self._stopping and await self._step():
                await self._wait_for_tick()
        finally:
            if self._state.container_id:
                self._deps.results.remove(self._state.container_id)
            self._deps.metrics.forget(self.target)

    async def _first_delay(self) -> None:
        """Wait for the first tick, or for `stop`: a stopped worker must end at once, since no new
        worker of the same probe can start before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._first_delay_s):
                while not self._stopping:
                    await self._wake.wait()
                    self._wake.clear()

    async def _wait_for_tick(self) -> None:
        """Wait for a trigger or for the next tick, skipping ticks that were missed."""
        while not self._stopping:
            now_s = self._deps.clock.monotonic_s()
            if self._triggered:
                self._triggered = False
                self._next_tick_s = now_s + self.target.period_s
                return
            if now_s >= self._next_tick_s:
                missed = math.floor((now_s - self._next_tick_s) / self.target.period_s)
                self._next_tick_s += self.target.period_s * (missed + 1)
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(self._next_tick_s - now_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _step(self) -> bool:
        """Handle one tick; False ends the worker. An error is logged, and the worker goes on
        (PROBE-083)."""
        try:
            goes_on = await self._decide_and_run()
        except Exception as error:
            self._complaints.failed(self._what, error)
            return True
        self._complaints.over(self._what)
        return goes_on

    async def _decide_and_run(self) -> bool:
        """Ask `decide_probe_run`, store its results, and run the probe if it says so; False ends
        the worker."""
        pod_uid = uid(self.target.pod)
        status = self._deps.pod_status(pod_uid)
        step = decide_probe_run(
            target=self.target,
            state=self._state,
            status=status,
            now=self._deps.clock.now(),
            predates_kubelet=self._predates_kubelet(status),
        )
        self._state = step.state
        results = self._deps.results
        if step.forget:
            results.remove(step.forget)
        for result in step.stores:
            await results.set(step.state.container_id, result, pod_uid)
        if step.verdict is ProbeVerdict.RUN and status is not None:
            await self._run_handler(status, pod_uid)
        return step.verdict is not ProbeVerdict.END

    async def _run_handler(self, status: PodStatus, pod_uid: str) -> None:
        container_id, began_s = self._state.container_id, self._deps.clock.monotonic_s()
        result = await self._deps.prober.probe(self.target, status, container_id)
        if result is None:
            return
        took_s = self._deps.clock.monotonic_s() - began_s
        self._deps.metrics.count(self.target, result, took_s)
        self._state, stored = count_outcome(self.target, self._state, result)
        if stored is not None:
            await self._deps.results.set(container_id, stored, pod_uid)

    def _predates_kubelet(self, status: PodStatus | None) -> bool:
        container = find_status(status, self.target.container.name) if status else None
        running = container.state.running if container is not None and container.state else None
        return running is not None and self._deps.predates_kubelet(running.startedAt)
