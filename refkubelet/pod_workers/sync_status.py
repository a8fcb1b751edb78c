"""The messages to a pod worker, and the record that it keeps.

`UpdatePodOptions` is the argument of `PodWorkers.update_pod`; `PodSyncStatus` is the record of one
UID, changed only by `workers.py` and `updates.py`.
Upstream: pkg/kubelet/pod_workers.go: podSyncStatus.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from msgspec import Struct

from refkubelet.cri.records import RuntimePod, RuntimePodStatus
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import full_name, is_static, uid
from refkubelet.pod_workers.transitions import WorkState

PodStatusFn = Callable[[PodStatus], PodStatus]


class SyncPodType(Enum):
    """Why a pod is handed to its worker."""

    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"


class KillPodOptions(Struct, frozen=True):
    """How to end a pod. `completed` is set when its containers have stopped (or it never ran)."""

    completed: asyncio.Event | None = None
    evict: bool = False
    status_fn: PodStatusFn | None = None
    grace_override_s: int | None = None


class UpdatePodOptions(Struct, frozen=True):
    """One update of one pod: of a source (`pod`), or of the runtime only (`running_pod`)."""

    update_type: SyncPodType
    pod: Pod | None = None
    mirror: Pod | None = None
    running_pod: RuntimePod | None = None
    kill: KillPodOptions | None = None
    told_s: float | None = None
    """When the sync loop learned of it, by the monotonic clock; None: it was no update of a
    source."""

    def uid(self) -> str:
        """Of the pod, or of one that only the runtime knows. Raises ValueError without either."""
        if self.pod is not None:
            return uid(self.pod)
        if self.running_pod is None:
            raise ValueError("an update needs a pod or a running pod")
        return self.running_pod.uid

    def full_name(self) -> str:
        """`name_namespace`, likewise. Raises ValueError."""
        if self.pod is not None:
            return full_name(self.pod)
        if self.running_pod is None:
            raise ValueError("an update needs a pod or a running pod")
        return f"{self.running_pod.name}_{self.running_pod.namespace}"


class StepContext(Struct, frozen=True):
    """Why a sync runs, and whether it should give way: `cancelled` is asked only before volumes are
    set up (LIFE-032)."""

    update_type: SyncPodType
    cancelled: asyncio.Event


class StepError(Exception):
    """A step failed; the whole step is retried, at `backoff_expiry_s` (monotonic) if that is given,
    else after 10 s (LIFE-037)."""

    def __init__(self, message: str, backoff_expiry_s: float | None = None) -> None:
        super().__init__(message)
        self.backoff_expiry_s = backoff_expiry_s


class StepCancelled(Exception):
    """A step stopped because a newer update is waiting (LIFE-032)."""


class PodSyncer(Protocol):
    """The four steps (LIFE-070..073); a step that raises `StepError` is retried."""

    async def sync_pod(
        self, context: StepContext, pod: Pod, mirror: Pod | None, status: RuntimePodStatus
    ) -> bool:
        """Bring the pod nearer to its spec; True: its phase is terminal."""

    async def sync_terminating_pod(
        self, pod: Pod, status: RuntimePodStatus, grace_s: int | None, status_fn: PodStatusFn | None
    ) -> None: ...

    async def sync_terminating_runtime_pod(self, running: RuntimePod) -> None: ...

    async def sync_terminated_pod(self, pod: Pod, status: RuntimePodStatus) -> None: ...


@dataclass(slots=True)
class PodSyncStatus:
    """The record of one UID."""

    uid: str  # the pod's; of a static pod its own, not its mirror's
    full_name: str
    """`name_namespace`."""
    state: WorkState = WorkState.SYNCING  # what the worker does with the pod
    pending: UpdatePodOptions | None = None
    """The update that the next step takes."""
    active: UpdatePodOptions | None = None
    """The update that a retry takes: the one of the last step, merged with those before it."""
    started: bool = False
    """A step was begun; for a static pod: it had its turn."""
    deleted: bool = False
    """The pod ends because its object is being deleted or gone (LIFE-057)."""
    evicted: bool = False
    """The pod ends because it was evicted (LIFE-057)."""
    observed_runtime: bool = False
    """Housekeeping has killed it as a pod that only the runtime knows."""
    restart_requested: bool = False
    """The UID was added again while the pod was ending (LIFE-031 row 4)."""
    grace_s: int = 0
    """The grace period that was decided; 0: none yet (LIFE-033)."""
    status_fns: list[PodStatusFn] = field(default_factory=list)
    """How the kills so far change the status; the last one counts (LIFE-035)."""
    waiters: list[asyncio.Event] = field(default_factory=list)
    """Set when the containers have stopped."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the task has something to do."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the running step should give way (LIFE-032)."""
    stepping: bool = False
    """A step is running."""
    last_sync_s: float = -1.0
    """Stamp of the cache: the status of the next step must be newer (LIFE-038)."""
    task: asyncio.Task[None] | None = None
    """None: no update has been accepted yet."""

    @property
    def log_name(self) -> str:
        """`namespace/name (uid)`, as logs name pods."""
        name, _, namespace = self.full_name.rpartition("_")
        return f"{namespace}/{name} ({self.uid})"

    @property
    def termination_requested(self) -> bool:
        """It is to end, or has ended."""
        return self.state is not WorkState.SYNCING

    @property
    def terminated(self) -> bool:
        """Its containers have stopped."""
        return self.state in (WorkState.TERMINATED, WorkState.FINISHED)

    @property
    def finished(self) -> bool:
        return self.state is WorkState.FINISHED

    @property
    def has_config(self) -> bool:
        """Whether the pod comes from a source, and not only from the runtime."""
        options = self.active or self.pending
        return options is not None and options.pod is not None

    @property
    def static(self) -> bool:
        options = self.active or self.pending
        return options is not None and options.pod is not None and is_static(options.pod)
