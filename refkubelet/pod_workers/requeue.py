"""When a pod worker runs its next step (LIFE-037, BACK-011). Pure. Random numbers come from
outside.

Upstream: pkg/kubelet/pod_workers.go: completeWork.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

NETWORK_NOT_READY = "network is not ready"
NETWORK_RETRY_S = 1.0
ERROR_RETRY_S = 10.0
JITTER = 0.5


class StepOutcome(Struct, frozen=True):
    """The part of a step's result that decides when the next step runs."""

    phase_changed: bool = False
    error: str | None = None
    backoff_expiry_s: float | None = None  # monotonic; the earliest expiry of the step's back-offs


def requeue_delay_s(
    outcome: StepOutcome, now_s: float, sync_frequency_s: float, uniform: Callable[[], float]
) -> float:
    """Seconds until the next step; `uniform` draws from [0, 1).

    A change of phase: 0. Network not ready: 1. A back-off: when it expires, but at most
    `sync_frequency_s`. Another error: 10. Success: `sync_frequency_s`. All are multiplied by a
    random factor in [1, 1.5).
    """
    if outcome.phase_changed:
        return 0.0
    return _base_delay_s(outcome, now_s, sync_frequency_s) * (1.0 + JITTER * uniform())


def _base_delay_s(outcome: StepOutcome, now_s: float, sync_frequency_s: float) -> float:
    if outcome.error is None:
        return sync_frequency_s
    if NETWORK_NOT_READY in outcome.error:
        return NETWORK_RETRY_S
    if outcome.backoff_expiry_s is not None:
        return min(max(outcome.backoff_expiry_s - now_s, 0.0), sync_frequency_s)
    return ERROR_RETRY_S


def start_retry_s(uniform: Callable[[], float]) -> float:
    """Seconds until a static pod that waits for its turn asks again (MIRR-002)."""
    return ERROR_RETRY_S * (1.0 + JITTER * uniform())
