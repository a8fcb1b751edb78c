"""Keeps the resize conditions of all pods: PodResizePending and PodResizeInProgress.

The allocation manager and the pod's worker set and clear them; the next generated status has them.
What must never happen: a resize in progress shows a later generation, which is not carried out yet.
Rules: LIFE-186, CG-062, CG-063. Upstream: pkg/kubelet/status/status_manager.go:
SetPodResizePendingCondition, SetPodResizeInProgressCondition, BackfillPodResizeConditions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from refkubelet.model.objects import Pod, PodCondition
from refkubelet.model.pod import uid
from simclock import Clock

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
DEFERRED: Final = "Deferred"
INFEASIBLE: Final = "Infeasible"
ERROR: Final = "Error"
_TYPES: Final = (PENDING, IN_PROGRESS)  # in the order of the status


class ResizeConditions:
    """The conditions by pod UID."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, dict[str, PodCondition]] = {}

    def of(self, pod_uid: str) -> tuple[PodCondition, ...]:
        """The pod's conditions, pending before in progress; nearly always none."""
        rows = self._pods.get(pod_uid)
        return tuple(rows[name] for name in _TYPES if name in rows) if rows else ()

    def pending(self, pod_uid: str) -> PodCondition | None:
        """The condition PodResizePending; None: no resize of the pod waits."""
        return self._pods.get(pod_uid, {}).get(PENDING)

    def pending_reasons(self) -> list[str]:
        """The reasons of all resizes that are pending."""
        return [c.reason or "" for rows in self._pods.values() if (c := rows.get(PENDING))]

    def in_progress_count(self) -> int:
        """How many resizes are in progress."""
        return sum(IN_PROGRESS in rows for rows in self._pods.values())

    def set_pending(self, pod_uid: str, reason: str, message: str, generation: int) -> bool:
        """Set the condition Pending, with the reason Deferred for every `reason` but Infeasible.
        True: the reason or the generation is new."""
        reason = reason if reason == INFEASIBLE else DEFERRED
        old = self.pending(pod_uid)
        self._set(pod_uid, PENDING, reason=reason, message=message, generation=generation)
        return old is None or (old.reason, old.observedGeneration) != (reason, generation or None)

    def set_in_progress(
        self, pod_uid: str, generation: int, reason: str = "", message: str = ""
    ) -> tuple[int, bool]:
        """Set the condition in progress; returns its generation, and whether reason or message
        changed. The generation, and an error, stay until the condition is cleared."""
        old = self._pods.get(pod_uid, {}).get(IN_PROGRESS)
        if old is not None:
            generation = old.observedGeneration or 0
            if not reason and not message:
                reason, message = old.reason or "", old.message or ""
        self._set(pod_uid, IN_PROGRESS, reason=reason, message=message, generation=generation)
        same = old is not None and (old.reason or "", old.message or "") == (reason, message)
        return generation, not same

    def clear_pending(self, pod_uid: str) -> None:
        """No resize of the pod waits any more."""
        self._clear(pod_uid, PENDING)

    def clear_in_progress(self, pod_uid: str) -> int | None:
        """Clear the condition; returns its generation, None: no resize was in progress."""
        old = self._clear(pod_uid, IN_PROGRESS)
        return None if old is None else old.observedGeneration or 0

    def finish(self, pod_uid: str, generation: int) -> int | None:
        """`clear_in_progress`, unless the resize in progress is of a later generation: then the
        worker has not seen it yet."""
        current = self._pods.get(pod_uid, {}).get(IN_PROGRESS)
        if current is None or (current.observedGeneration or 0) > generation:
            return None
        return self.clear_in_progress(pod_uid)

    def clear(self, pod_uid: str) -> None:
        """Remove both conditions of a pod that ends."""
        self._pods.pop(pod_uid, None)

    def restore(self, pods: Iterable[Pod]) -> None:
        """Take over the resize conditions that an earlier kubelet wrote into the pods' statuses."""
        for pod in pods:
            for condition in (pod.status.conditions if pod.status is not None else None) or ():
                if condition.type in _TYPES:
                    self._set(
                        uid(pod),
                        condition.type,
                        reason=condition.reason or "",
                        message=condition.message or "",
                        generation=condition.observedGeneration or 0,
                    )

    def keep_only(self, pod_uids: Collection[str]) -> None:
        """Forget all pods but these."""
        if not self._pods:
            return
        for pod_uid in [u for u in self._pods if u not in pod_uids]:
            del self._pods[pod_uid]

    def _clear(self, pod_uid: str, name: str) -> PodCondition | None:
        rows = self._pods.get(pod_uid, {})
        old = rows.pop(name, None)
        if old is not None and not rows:
            del self._pods[pod_uid]
        return old

    def _set(self, pod_uid: str, name: str, reason: str, message: str, generation: int) -> None:
        """Replace a condition; lastTransitionTime changes only with the reason."""
        changed_at = self._clock.now()
        rows = self._pods.setdefault(pod_uid, {})
        old = rows.get(name)
        since = (
            old.lastTransitionTime
            if old is not None and old.reason == (reason or None)
            else changed_at
        )
        rows[name] = PodCondition(
            type=name,
            status="True",
            reason=reason or None,
            message=message or None,
            observedGeneration=generation or None,
            lastProbeTime=changed_at,
            lastTransitionTime=since,
        )
