"""What one sync or kill of a pod did: its errors, and when a failed start may be tried again. Pure.

The pod worker turns a result into the next sync time (LIFE-037): back-off errors carry an expiry
and win over other errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refkubelet.golang.strconv import quoted


class SyncAction(Enum):
    """The step that failed (kubelet: container.SyncAction)."""

    KILL_POD = "KillPod"
    KILL_CONTAINER = "KillContainer"
    STOP_SANDBOX = "StopPodSandbox"
    CREATE_SANDBOX = "CreatePodSandbox"
    CONFIG_SANDBOX = "ConfigPodSandbox"
    START_CONTAINER = "StartContainer"
    REMOVE_CONTAINER = "RemoveContainer"
    RESIZE_POD = "ResizePodInPlace"


@dataclass(frozen=True, slots=True)
class SyncError:
    """One failed action. `target` is a container name, or the pod's name for pod-wide actions.

    `backoff_expiry_s`: monotonic second of the clock at which the action leaves its crash-loop
    back-off; None for errors that are not back-off errors (image pull errors are not: BACK-207).
    """

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


@dataclass(frozen=True, slots=True)
class PodSyncResult:
    """All errors of one `sync_pod` or `kill_pod`, in the order they happened.

    `actions` counts the steps that were tried (sandboxes, starts, kills): a sync without error
    and with at least one action asks for an on-demand relist (PLEG-011). `containers_reset` tells
    that all containers were removed to start over, so the pod is synced again at once (LIFE-125).
    `resized`: a resize was carried out or tried, which no list of the runtime shows (CG-065).
    """

    errors: tuple[SyncError, ...] = ()
    actions: int = 0
    containers_reset: bool = False
    resized: bool = False

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def resize_error(self) -> str | None:
        """The text of a resize that failed."""
        failed = (e.message for e in self.errors if e.action is SyncAction.RESIZE_POD)
        return next(failed, None)

    @property
    def message(self) -> str:
        """All errors as one text; "" when there are none."""
        texts = [str(error) for error in self.errors]
        return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]" if texts else ""

    def min_backoff_expiry_s(self) -> float | None:
        """The earliest monotonic second at which a back-off of this pod ends (BACK-011), or None
        when no error was a back-off error."""
        expiries = [e.backoff_expiry_s for e in self.errors if e.backoff_expiry_s is not None]
        return min(expiries, default=None)
