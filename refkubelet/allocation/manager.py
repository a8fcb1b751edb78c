"""The allocation manager: the allocated resources of pods, and the queue of pending resizes.

How it works. Resources are allocated to a pod at admission; later changes of the spec count only
when a resize is admitted. An edited spec puts the pod into the queue. Every resize in the queue is
tried at once, whenever another pod changes, and every 3 minutes. If it is admitted, the new
resources are allocated, and the pod's worker carries them out; if it is refused, the pod gets a
condition and stays in the queue, unless the resize is Infeasible.
What must never happen: a worker uses resources of the spec that are not allocated; a resize is
decided before every source has delivered its pods; any work while no resize is pending.
Rules: CG-060..063, LIFE-186. Upstream: pkg/kubelet/allocation/allocation_manager.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

from msgspec import Struct, field

from refkubelet.admission.admit_handler import Refusal
from refkubelet.allocation import messages
from refkubelet.allocation.conditions import DEFERRED, INFEASIBLE, ResizeConditions
from refkubelet.allocation.order import PendingResize, in_order
from refkubelet.allocation.resources import (
    PodResources,
    increases_requests,
    resources_of,
    with_resources_of,
)
from refkubelet.allocation.state import ResourceState
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import log_failure
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref, priority, uid
from refkubelet.model.qos import qos_class
from refkubelet.telemetry.pod_metrics import ResizeMetrics
from simclock import Clock

log = logging.getLogger(__name__)

FIRST_RETRY_S: Final = 30.0
RETRY_S: Final = 180.0
PERIODICALLY: Final = "periodic_retry"
ADDED: Final = "pods_added"
UPDATED: Final = "pod_updated"
REMOVED: Final = "pods_removed"
RESIZED: Final = "pod_resized"
TERMINATED: Final = "pod_terminated"
"""Why pending resizes are tried again, as metrics call it."""


class AllocationDeps(Struct, frozen=True):
    """What the manager works with. `pod`: the source's pod with that UID; `admit`: asks the
    admission handlers about a resize, and allocates it unless one refuses; `sync`: wakes the pod's
    worker; `sources_ready`: whether every source has delivered its pods."""

    clock: Clock
    recorder: EventRecorder
    conditions: ResizeConditions
    pod: Callable[[str], Pod | None]
    admit: Callable[[Pod], Awaitable[Refusal | None]]
    sync: Callable[[Pod], None]
    sources_ready: Callable[[], bool]
    metrics: ResizeMetrics = field(default_factory=ResizeMetrics)
    pod_level_resizes: bool = True
    """Whether spec.resources can be resized (InPlacePodLevelResourcesVerticalScaling)."""
    init_resizes: bool = True
    """Whether plain init containers can (InPlacePodVerticalScalingInitContainers)."""


class AllocationManager:
    """Allocates resources and decides resizes; `state`: the checkpoint of allocated resources."""

    def __init__(self, state: ResourceState, deps: AllocationDeps) -> None:
        self._state = state
        self._deps = deps
        self.pod_level_resizes = deps.pod_level_resizes
        self._pending: list[str] = []
        self._answers: dict[str, tuple[Pod, PodResources, Pod]] = {}
        self._all: tuple[tuple[Pod, ...], int, tuple[Pod, ...]] | None = None
        self._due_s = deps.clock.monotonic_s() + FIRST_RETRY_S
        self._waiting = asyncio.Event()

    # What pods have

    def allocated(self, pod: Pod) -> Pod:
        """The pod with its allocated resources; the same object if none are allocated, or if they
        equal the spec's."""
        pod_uid = uid(pod)
        allocation = self._state.pod(pod_uid)
        if allocation is None:
            return pod
        last = self._answers.get(pod_uid)
        if last is not None and last[0] is pod and last[1] is allocation:
            return last[2]
        answer = with_resources_of(pod, allocation, pod_level=self.pod_level_resizes)
        self._answers[pod_uid] = (pod, allocation, answer)
        return answer

    def all_allocated(self, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """These pods as of `allocated`; the same object while nothing changes."""
        version = self._state.version
        if self._all is None or self._all[0] is not pods or self._all[1] != version:
            self._all = (pods, version, tuple(map(self.allocated, pods)))
        return self._all[2]

    def allocate(self, pod: Pod) -> None:
        """Allocate the resources of the pod's spec."""
        self._state.set_pod(uid(pod), self._resources_of(pod))
        self._state.save_soon()

    def _resources_of(self, pod: Pod) -> PodResources:
        deps = self._deps
        return resources_of(
            pod, pod_level=deps.pod_level_resizes, init_containers=deps.init_resizes
        )

    def forget(self, pod_uid: str) -> None:
        """Forget a pod that was removed from its source."""
        self._state.remove(pod_uid)
        self._answers.pop(pod_uid, None)

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Forget all pods but these."""
        self._state.keep_only(pod_uids)
        self._deps.conditions.keep_only(pod_uids)
        for pod_uid in [u for u in self._answers if u not in pod_uids]:
            del self._answers[pod_uid]

    # Pending resizes

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def wants_resize(self, pod: Pod) -> bool:
        """Whether the spec has other resources than the allocated ones."""
        return self.allocated(pod) is not pod

    def push(self, pod_uid: str) -> None:
        """Put the pod into the queue, for the next `retry`."""
        if pod_uid in self._pending:
            return
        queued = [*self._pending, pod_uid]
        pods = [pod for each in queued if (pod := self._deps.pod(each)) is not None]
        self._pending = in_order(self._in_queue(pod) for pod in pods)
        self._waiting.set()

    def _in_queue(self, pod: Pod) -> PendingResize:
        condition = self._deps.conditions.pending(uid(pod))
        allocated = self.allocated(pod)
        return PendingResize(
            uid(pod),
            increases=allocated is not pod and increases_requests(allocated, pod),
            priority=priority(pod),
            guaranteed=qos_class(pod) == "Guaranteed",
            since=condition.lastTransitionTime if condition is not None else None,
        )

    async def run(self) -> None:
        """Retry every 3 minutes while a resize is pending; until cancelled."""
        clock = self._deps.clock
        while True:
            await self._waiting.wait()
            while (wait_s := self._due_s - clock.monotonic_s()) > 0:
                await clock.sleep(wait_s)
            if self._pending:
                await self.retry(PERIODICALLY)
            if not self._pending:
                self._waiting.clear()

    async def retry(self, trigger: str) -> None:
        """Try every pending resize, in the order of the queue, if all sources are ready.
        `trigger`: what metrics call the reason."""
        deps = self._deps
        ready = deps.sources_ready()
        self._due_s = deps.clock.monotonic_s() + (RETRY_S if ready else FIRST_RETRY_S)
        if not ready:
            return
        for pod_uid in tuple(self._pending):
            pod = deps.pod(pod_uid)
            if pod is None or await self._look_at(pod, trigger):
                with suppress(ValueError):
                    self._pending.remove(pod_uid)

    async def _look_at(self, pod: Pod, trigger: str) -> bool:
        """Try one pending resize. True: it leaves the queue."""
        before = self._deps.conditions.of(uid(pod))
        pending = self._deps.conditions.pending(uid(pod))
        try:
            allocated = await self._resize(pod)
        except Exception as error:
            log_failure(log, f"resize of {pod_ref(pod)} failed and is tried again later", error)
            return False
        after = self._deps.conditions.of(uid(pod))
        if allocated or after != before:
            self._deps.sync(pod)
        condition = self._deps.conditions.pending(uid(pod))
        if condition is None and pending is not None and pending.reason == DEFERRED:
            self._deps.metrics.accepted.inc(trigger)
        return condition is None or condition.reason == INFEASIBLE

    async def _resize(self, pod: Pod) -> bool:
        """Ask admission about the pod's resize; True: new resources are allocated."""
        conditions = self._deps.conditions
        if not self.wants_resize(pod):
            conditions.clear_pending(uid(pod))
            return False
        refusal = await self._deps.admit(pod)
        generation = pod.metadata.generation or 0
        if refusal is not None:
            self._refused(pod, refusal, generation)
            return False
        conditions.clear_pending(uid(pod))
        conditions.clear_in_progress(uid(pod))  # with the error of an earlier resize
        conditions.set_in_progress(uid(pod), generation)
        text = messages.started(pod, generation)
        self._deps.recorder.pod_event(pod, "Normal", messages.STARTED, text)
        return True

    def _refused(self, pod: Pod, refusal: Refusal, generation: int) -> None:
        reason, message = refusal.reason, refusal.message
        if not self._deps.conditions.set_pending(uid(pod), reason, message, generation):
            return
        word = messages.INFEASIBLE if reason == INFEASIBLE else messages.DEFERRED
        text = messages.pending(pod, generation, reason, message)
        self._deps.recorder.pod_event(pod, "Warning", word, text)
