"""Computes events from two successive listings of a pod. Pure.

Only ids and states are compared (PLEG-002): changes of exit codes, IPs and labels make no event,
nor does a container that appears and vanishes between two listings. Sandboxes are compared like
containers (PLEG-003).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct

from refkubelet.cri.records import (
    ContainerState,
    RuntimePod,
    RuntimePodStatus,
    SandboxState,
)


class PlegState(Enum):
    """The states that are compared; CREATED counts as UNKNOWN (PLEG-003)."""

    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"
    NON_EXISTENT = "non-existent"


class PodLifecycleEventType(Enum):
    """The types of events, with upstream's names (PLEG-004)."""

    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_DIED = "ContainerDied"
    CONTAINER_REMOVED = "ContainerRemoved"
    CONTAINER_CHANGED = "ContainerChanged"
    POD_SYNC = "PodSync"


class PodLifecycleEvent(Struct, frozen=True):
    """One event of a pod. `data`: the id of the container or sandbox; "" for PodSync."""

    uid: str
    type: PodLifecycleEventType
    data: str = ""


STARTED: Final = PodLifecycleEventType.CONTAINER_STARTED
DIED: Final = PodLifecycleEventType.CONTAINER_DIED
REMOVED: Final = PodLifecycleEventType.CONTAINER_REMOVED
CHANGED: Final = PodLifecycleEventType.CONTAINER_CHANGED

CONTAINER_STATE: Final = {
    ContainerState.CREATED: PlegState.UNKNOWN,
    ContainerState.RUNNING: PlegState.RUNNING,
    ContainerState.EXITED: PlegState.EXITED,
    ContainerState.UNKNOWN: PlegState.UNKNOWN,
}
SANDBOX_STATE: Final = {
    SandboxState.READY: PlegState.RUNNING,
    SandboxState.NOTREADY: PlegState.EXITED,
}
# (old, new) -> events; equal states give none. PLEG-003.
EVENTS: Final[dict[tuple[PlegState, PlegState], tuple[PodLifecycleEventType, ...]]] = {
    (PlegState.NON_EXISTENT, PlegState.RUNNING): (STARTED,),
    (PlegState.NON_EXISTENT, PlegState.EXITED): (DIED,),
    (PlegState.NON_EXISTENT, PlegState.UNKNOWN): (CHANGED,),
    (PlegState.RUNNING, PlegState.EXITED): (DIED,),
    (PlegState.RUNNING, PlegState.UNKNOWN): (CHANGED,),
    (PlegState.RUNNING, PlegState.NON_EXISTENT): (DIED, REMOVED),
    (PlegState.EXITED, PlegState.RUNNING): (STARTED,),
    (PlegState.EXITED, PlegState.UNKNOWN): (CHANGED,),
    (PlegState.EXITED, PlegState.NON_EXISTENT): (REMOVED,),
    (PlegState.UNKNOWN, PlegState.RUNNING): (STARTED,),
    (PlegState.UNKNOWN, PlegState.EXITED): (DIED,),
    (PlegState.UNKNOWN, PlegState.NON_EXISTENT): (DIED, REMOVED),
}


def compute_events(old: RuntimePod | None, new: RuntimePod | None) -> list[PodLifecycleEvent]:
    """The events of one pod: of its old containers, old sandboxes, then new ones; Died before
    Removed.

    `None`: the pod is not in that listing. Rules: PLEG-002..004. Upstream:
    pkg/kubelet/pleg/generic.go: computeEvents.
    """
    pod = old if old is not None else new
    if pod is None or old is new:
        return []  # an unchanged list gives the same objects again
    before, after = _states(old), _states(new)
    ids = [*before, *(i for i in after if i not in before)]
    return [
        PodLifecycleEvent(pod.uid, event, i)
        for i in ids
        for event in transition(
            before.get(i, PlegState.NON_EXISTENT), after.get(i, PlegState.NON_EXISTENT)
        )
    ]


def differs(pod: RuntimePod, status: RuntimePodStatus) -> bool:
    """Whether `pod`, a listing, and `status` differ in ids or states."""
    boxes = {s.id: s.state for s in pod.sandboxes} != {s.id: s.state for s in status.sandboxes}
    return boxes or (
        {c.id: c.state for c in pod.containers} != {c.id: c.state for c in status.containers}
    )


def transition(old: PlegState, new: PlegState) -> tuple[PodLifecycleEventType, ...]:
    """The events of one container or sandbox (PLEG-003)."""
    return () if old is new else EVENTS[old, new]


def _states(pod: RuntimePod | None) -> dict[str, PlegState]:
    if pod is None:
        return {}
    containers: Iterable[tuple[str, PlegState]] = (
        (c.id, CONTAINER_STATE[c.state]) for c in pod.containers
    )
    sandboxes = ((s.id, SANDBOX_STATE[s.state]) for s in pod.sandboxes)
    return dict((*containers, *sandboxes))
