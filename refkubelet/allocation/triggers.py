"""When resizes are queued and looked at: what the sync loop's operations mean for them (CG-061).

What must never happen here: a look at resizes that costs anything while none is pending.
Upstream: pkg/kubelet/kubelet.go: HandlePodAdditions, HandlePodUpdates, HandlePodRemoves,
HandlePodReconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from refkubelet.allocation.conditions import ResizeConditions
from refkubelet.allocation.manager import AllocationManager
from refkubelet.allocation.resources import asks_for_resize
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.model.resources import COMPUTE, requests_in_use


class ResizeTriggers:
    """One method per operation; each returns once the pending resizes were looked at."""

    def __init__(self, allocations: AllocationManager, conditions: ResizeConditions) -> None:
        self._allocations = allocations
        self._conditions = conditions

    @property
    def pend(self) -> bool:
        """Whether an operation leads to a look at resizes."""
        return self._allocations.has_pending

    def asked_for(self, old: Pod | None, new: Pod) -> bool:
        """The update may ask for other resources, or for the old ones again."""
        return old is None or asks_for_resize(old, new)

    def admitted(self, pod: Pod) -> None:
        """The pod was admitted; its status may show resizes that an earlier kubelet has noted. To
        be called before its worker starts."""
        self._conditions.restore([pod])
        if not self._allocations.wants_resize(pod):
            self._conditions.clear_pending(uid(pod))

    async def added(self, pods: Iterable[Pod]) -> None:
        """All new pods were admitted: those whose spec asks for more than they have are pending."""
        pending = [pod for pod in pods if self._allocations.wants_resize(pod)]
        for pod in pending:
            self._allocations.push(uid(pod))
        if pending:
            await self._allocations.retry()

    async def updated(self, old: Pod | None, new: Pod) -> None:
        """The spec of a pod may ask for other resources now, or for the old ones again."""
        if not self.asked_for(old, new):
            return
        if self._allocations.wants_resize(new):
            self._allocations.push(uid(new))
            await self._allocations.retry()
        else:
            self._conditions.clear_pending(uid(new))

    def removed(self, pod: Pod) -> None:
        """The pod is gone from its source; `room_was_made` is called next."""
        self._allocations.forget(uid(pod))

    async def room_was_made(self) -> None:
        """Pods are gone: look at the pending resizes."""
        await self._allocations.retry()

    def makes_room(self, old: Pod | None, new: Pod, is_over: Callable[[Pod], bool]) -> bool:
        """A status has changed: the pod is over, or takes less than before."""
        if old is None or not self._allocations.has_pending:
            return False
        if is_over(new) and not is_over(old):
            return True
        before = requests_in_use(self._allocations.allocated(old))
        after = requests_in_use(self._allocations.allocated(new))
        return any(after.get(name, 0) < before.get(name, 0) for name in COMPUTE)
