"""Admits pods one at a time, against the resources allocated to the others (LIFE-221..229).

What must never happen here: two pods are asked about at the same time (both would get what is
left), or a pod is counted among the others.
Upstream: pkg/kubelet/allocation/allocation_manager.go: AddPod, canAdmitPod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from refkubelet.admission.admit_handler import (
    AdmitHandler,
    Operation,
    PodAdmitAttributes,
    Refusal,
    admit,
)
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid


class Allocations(Protocol):
    """The resources that pods were admitted with (LIFE-186)."""

    def allocated(self, pod: Pod) -> Pod:
        """The pod with its allocated resources; the same object if nothing differs."""

    def all_allocated(self, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """All of these; the same object while nothing changes."""

    def allocate(self, pod: Pod) -> None:
        """Remember the resources `pod` names as allocated to it."""


class PodAdmission:
    """Asks `handlers`, in their order. `active_pods`: those that count (LIFE-012)."""

    def __init__(
        self,
        handlers: tuple[AdmitHandler, ...],
        active_pods: Callable[[], tuple[Pod, ...]],
        allocations: Allocations,
    ) -> None:
        self._handlers = handlers
        self._active_pods = active_pods
        self._allocations = allocations
        self._one_at_a_time = asyncio.Lock()

    def allocated_pods(self) -> tuple[Pod, ...]:
        """The active pods, with what they were allocated; the same object while nothing changes."""
        return self._allocations.all_allocated(self._active_pods())

    async def add(self, pod: Pod) -> Refusal | None:
        """None: the pod may run, and what it asks for is allocated to it."""
        async with self._one_at_a_time:
            pod = self._allocations.allocated(pod)
            refusal = await self._ask(pod, Operation.ADD)
            if refusal is None:
                self._allocations.allocate(pod)
            return refusal

    async def resize(self, pod: Pod) -> Refusal | None:
        """None: the resources that `pod` now names are allocated to it."""
        async with self._one_at_a_time:
            refusal = await self._ask(pod, Operation.RESIZE)
            if refusal is None:
                self._allocations.allocate(pod)
            return refusal

    async def _ask(self, pod: Pod, operation: Operation) -> Refusal | None:
        own_uid = uid(pod)
        other_pods = tuple(other for other in self.allocated_pods() if uid(other) != own_uid)
        return await admit(PodAdmitAttributes(pod, other_pods, operation), self._handlers)
