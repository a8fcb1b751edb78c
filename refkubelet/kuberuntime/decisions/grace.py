"""The grace period of a container, in whole seconds (LIFE-143, PROBE-037). Pure."""

from __future__ import annotations

from typing import Final

from refkubelet.kuberuntime.decisions.pod_actions import KillReason
from refkubelet.model.objects import Container, Pod

MINIMUM_GRACE_S: Final = 2
ROUNDING_S: Final = 1e-6


def container_grace_s(pod: Pod, container: Container | None, reason: KillReason | None) -> int:
    """The grace period: deletionGracePeriodSeconds, else that of the failed probe, else the spec's;
    2 for a spec without one, even if the probe has one."""
    if pod.metadata.deletionGracePeriodSeconds is not None:
        return pod.metadata.deletionGracePeriodSeconds
    if pod.spec.terminationGracePeriodSeconds is None:
        return MINIMUM_GRACE_S
    probe = None
    if container is not None and reason is KillReason.LIVENESS:
        probe = container.livenessProbe
    elif container is not None and reason is KillReason.STARTUP:
        probe = container.startupProbe
    if probe is not None and probe.terminationGracePeriodSeconds is not None:
        return probe.terminationGracePeriodSeconds
    return pod.spec.terminationGracePeriodSeconds


def rest_after(grace_s: int, elapsed_s: float) -> int:
    """The rest of a grace period after a wait, less whole seconds only; may be negative.

    >>> rest_after(30, 10.9), rest_after(3, 5.0), rest_after(6, 3.01 - 1.01)
    (20, -2, 4)
    """
    # A wait of exactly 2 s can measure a hair less, because clocks are floats.
    return grace_s - int(elapsed_s + ROUNDING_S)


def stop_timeout_s(rest_s: int) -> int:
    """The timeout of StopContainer: at least 2.

    >>> stop_timeout_s(20), stop_timeout_s(0), stop_timeout_s(-5)
    (20, 2, 2)
    """
    return max(MINIMUM_GRACE_S, rest_s)
