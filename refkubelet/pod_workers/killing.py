"""Killing a pod and waiting until its containers have stopped (LIFE-040).

Upstream: pkg/kubelet/pod_workers.go: killPodNow.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from refkubelet.events.recorder import EventRecorder
from refkubelet.eviction.evictor import KillRequest
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref
from refkubelet.pod_workers.sync_status import (
    KillPodOptions,
    PodStatusFn,
    SyncPodType,
    UpdatePodOptions,
)
from refkubelet.pod_workers.workers import PodWorkers

SHORTEST_WAIT_S: Final = 10.0
WAIT_FACTOR: Final = 1.5


class KillTimeout(Exception):
    """The pod did not stop in time; its worker keeps trying."""


def longest_wait_s(pod: Pod, grace_override_s: int | None) -> float:
    """Seconds to wait for a kill: 1.5 times the grace period, at least 10."""
    spec_s = pod.spec.terminationGracePeriodSeconds
    grace_s = grace_override_s if grace_override_s is not None else spec_s or 0
    return max(SHORTEST_WAIT_S, WAIT_FACTOR * grace_s)


class PodKiller(Struct, frozen=True):
    """How eviction, preemption and the shutdown of the node end a pod: each waits until the pod's
    containers have stopped, and raises `KillTimeout` when that takes too long."""

    workers: PodWorkers
    recorder: EventRecorder

    async def evict(self, request: KillRequest) -> None:
        """For the eviction manager, with the grace period that it chose."""
        await self.kill(request.pod, request.status_fn, request.grace_s)

    async def preempt(self, pod: Pod, status_fn: PodStatusFn) -> None:
        """To make room for a critical pod, with the pod's own grace period."""
        await self.kill(pod, status_fn)

    async def end_for_shutdown(self, pod: Pod, status_fn: PodStatusFn, grace_s: int) -> None:
        """Because the node shuts down: not an eviction, so its containers are kept."""
        await self.kill(pod, status_fn, grace_s, evict=False)

    async def kill(
        self,
        pod: Pod,
        status_fn: PodStatusFn | None,
        grace_override_s: int | None = None,
        *,
        evict: bool = True,
    ) -> None:
        """Ask the worker to end the pod and wait until its containers have stopped.

        Raises `KillTimeout` (and leaves a Warning event) when that takes too long; the kill goes
        on.
        """
        stopped = asyncio.Event()
        kill = KillPodOptions(stopped, evict, status_fn, grace_override_s)
        self.workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod, kill=kill))
        try:
            async with asyncio.timeout(longest_wait_s(pod, grace_override_s)):
                await stopped.wait()
        except TimeoutError:
            message = "Container runtime did not kill the pod within specified grace period."
            self.recorder.pod_event(pod, "Warning", "ExceededGracePeriod", message)
            raise KillTimeout(f"timeout waiting to kill pod {pod_ref(pod)}") from None
