"""When a worker looks at its pod again (LIFE-037, BACK-011). Pure. Random numbers come from
outside.

Upstream: pkg/kubelet/pod_workers.go: completeWork.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NETWORK_NOT_READY = "network is not ready"
NETWORK_RETRY_S = 1.0
ERROR_RETRY_S = 10.0
JITTER = 0.5


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step ended, as far as the next one is concerned."""

    phase_changed: bool = False
    error: str | None = None
    backoff_expiry_s: float | None = None  # monotonic; the earliest expiry of the step's back-offs


def requeue_delay_s(
    outcome: StepOutcome, now_s: float, sync_frequency_s: float, uniform: Callable[[], float]
) -> float:
    """Seconds until the next step; `uniform` draws from [0, 1).

    A network that is not ready is looked at each second, a back-off when it expires but within the
    sync frequency, other errors every 10 s, success every `sync_frequency_s`; all but a change of
    phase are stretched by a random factor in [1, 1.5).
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
