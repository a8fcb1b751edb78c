"""The result of a sync or kill of a pod: its errors, and when a failed start may be retried. Pure.

The pod worker computes the time of the next sync from it (LIFE-037).
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from kubeobjects.golang.strconv import quoted


class SyncAction(Enum):
    """The step that failed (upstream: container.SyncAction)."""

    KILL_CONTAINER = "KillContainer"
    STOP_SANDBOX = "StopPodSandbox"
    CREATE_SANDBOX = "CreatePodSandbox"
    CONFIG_SANDBOX = "ConfigPodSandbox"
    START_CONTAINER = "StartContainer"
    REMOVE_CONTAINER = "RemoveContainer"
    RESIZE_POD = "ResizePodInPlace"


class SyncError(Struct, frozen=True):
    """One failed action. `target`: a container's name, or the pod's. `backoff_expiry_s`: when the
    crash-loop back-off ends, in monotonic seconds; None for all other errors, failed image pulls
    included (BACK-207)."""

    action: SyncAction
    target: str
    reason: str
    message: str
    backoff_expiry_s: float | None = None

    def __str__(self) -> str:
        return (
            f"failed to {quoted(self.action.value)} for {quoted(self.target)} with {self.reason}: "
            f"{quoted(self.message)}"
        )


class PodSyncResult(Struct, frozen=True):
    """All errors of one `sync_pod` or `kill_pod`, in their order.

    `actions` counts the tried steps (sandboxes, starts, kills); after a sync with at least one and
    without errors, the PLEG relists the pod (PLEG-011). `containers_reset`: all containers were
    removed to start again, so the pod is synced again at once (LIFE-125). `resized`: a resize was
    tried, which the runtime's lists do not show (CG-065). `interrupted`: the grace period was
    shortened during a preStop hook, and the kill is to be done again with the new one (LIFE-033).
    """

    errors: tuple[SyncError, ...] = ()
    actions: int = 0
    containers_reset: bool = False
    resized: bool = False
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def resize_error(self) -> str | None:
        """The text of a failed resize; None: no resize failed."""
        failed = (e.message for e in self.errors if e.action is SyncAction.RESIZE_POD)
        return next(failed, None)

    @property
    def message(self) -> str:
        """All errors as one text; "" without errors."""
        texts = [str(error) for error in self.errors]
        return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]" if texts else ""

    def min_backoff_expiry_s(self) -> float | None:
        """When the first back-off of this pod ends, in monotonic seconds (BACK-011); None: no error
        is a back-off."""
        expiries = [e.backoff_expiry_s for e in self.errors if e.backoff_expiry_s is not None]
        return min(expiries, default=None)
