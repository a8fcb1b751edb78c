"""Queues and retries resizes when the sync loop adds, updates or removes pods (CG-061).

Upstream: pkg/kubelet/kubelet.go: HandlePodAdditions, HandlePodUpdates, HandlePodRemoves,
HandlePodReconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubeobjects.resource_names import COMPUTE
from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.manager import (
    ADDED,
    REMOVED,
    RESIZED,
    TERMINATED,
    UPDATED,
    AllocationManager,
)
from refkubelet.allocation.resources import asks_for_resize, changes_of
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.resources import requests_in_use
from refkubelet.telemetry.pod_metrics import ResizeMetrics


class ResizeTriggers:
    """One method per operation of the sync loop; each waits until pending resizes were tried."""

    def __init__(
        self,
        allocations: AllocationManager,
        conditions: ResizeConditions,
        metrics: ResizeMetrics | None = None,
    ) -> None:
        self._metrics = metrics or ResizeMetrics()
        self._allocations = allocations
        self._conditions = conditions

    @property
    def pend(self) -> bool:
        """Whether any resize is pending, so that an operation would retry it."""
        return self._allocations.has_pending

    def asked_for(self, old: Pod | None, new: Pod) -> bool:
        """Whether the update may change the wanted resources."""
        return old is None or asks_for_resize(old, new)

    def admitted(self, pod: Pod) -> None:
        """Take over the resize conditions of an admitted pod from its status, written by an earlier
        kubelet. Call it before the pod's worker starts."""
        self._conditions.restore([pod])
        if not self._allocations.wants_resize(pod):
            self._conditions.clear_pending(uid(pod))

    async def added(self, pods: Iterable[Pod]) -> None:
        """Queue and try the resizes of new pods, after all of them were admitted: a restarted
        kubelet may find specs that differ from the allocated resources."""
        pending = [pod for pod in pods if self._allocations.wants_resize(pod)]
        for pod in pending:
            self._allocations.push(uid(pod))
        if pending:
            await self._allocations.retry(ADDED)

    async def updated(self, old: Pod | None, new: Pod) -> None:
        """Queue and try the resize of an edited spec; if the spec is as allocated again, clear the
        pending condition."""
        if not self.asked_for(old, new):
            return
        for change in changes_of(old, new) if old is not None else ():
            self._metrics.requested.inc(*change)
        if self._allocations.wants_resize(new):
            self._allocations.push(uid(new))
            await self._allocations.retry(UPDATED)
        else:
            self._conditions.clear_pending(uid(new))

    def removed(self, pod: Pod) -> None:
        """Forget a pod that was removed from its source; `room_was_made` is called next."""
        self._allocations.forget(uid(pod))

    async def room_was_made(self, trigger: str = REMOVED) -> None:
        """Try the pending resizes, because pods have released resources; `trigger`: what metrics
        call that."""
        await self._allocations.retry(trigger)

    def makes_room(self, old: Pod | None, new: Pod, is_over: Callable[[Pod], bool]) -> str:
        """What metrics call it if a changed status releases resources for pending resizes: the pod
        uses less than before, or has ended (`is_over`); "": it does not."""
        if old is None or not self._allocations.has_pending:
            return ""
        before, after = (
            requests_in_use(
                self._allocations.allocated(pod),
                pod_level_resizes=self._allocations.pod_level_resizes,
            )
            for pod in (old, new)
        )
        if any(after.get(name, 0) < before.get(name, 0) for name in COMPUTE):
            return RESIZED
        return TERMINATED if is_over(new) and not is_over(old) else ""
