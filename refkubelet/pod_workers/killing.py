"""Killing a pod and waiting until its containers have stopped (LIFE-040).

Upstream: pkg/kubelet/pod_workers.go: killPodNow.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

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


async def kill_pod_now(
    workers: PodWorkers,
    recorder: EventRecorder,
    pod: Pod,
    status_fn: PodStatusFn | None,
    *,
    evict: bool,
    grace_override_s: int | None = None,
) -> None:
    """Ask the worker to end the pod and wait until its containers have stopped.

    Raises `KillTimeout` (and leaves a Warning event) when that takes too long; the kill goes on.
    """
    stopped = asyncio.Event()
    kill = KillPodOptions(stopped, evict, status_fn, grace_override_s)
    workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod, kill=kill))
    try:
        async with asyncio.timeout(longest_wait_s(pod, grace_override_s)):
            await stopped.wait()
    except TimeoutError:
        message = "Container runtime did not kill the pod within specified grace period."
        recorder.pod_event(pod, "Warning", "ExceededGracePeriod", message)
        raise KillTimeout(f"timeout waiting to kill pod {pod_ref(pod)}") from None


@dataclass(frozen=True, slots=True)
class PodKiller:
    """How eviction, preemption and the shutdown of the node end a pod: each waits until the pod's
    containers have stopped, and raises `KillTimeout` when that takes too long."""

    workers: PodWorkers
    recorder: EventRecorder

    async def evict(self, request: KillRequest) -> None:
        """For the eviction manager, with the grace period that it chose."""
        await kill_pod_now(
            self.workers,
            self.recorder,
            pod=request.pod,
            status_fn=request.status_fn,
            evict=True,
            grace_override_s=request.grace_s,
        )

    async def preempt(self, pod: Pod, status_fn: PodStatusFn) -> None:
        """To make room for a critical pod, with the pod's own grace period."""
        await kill_pod_now(
            workers=self.workers, recorder=self.recorder, pod=pod, status_fn=status_fn, evict=True
        )

    async def end_for_shutdown(self, pod: Pod, status_fn: PodStatusFn, grace_s: int) -> None:
        """Because the node shuts down: not an eviction, so its containers are kept."""
        await kill_pod_now(
            workers=self.workers,
            recorder=self.recorder,
            pod=pod,
            status_fn=status_fn,
            evict=False,
            grace_override_s=grace_s,
        )
