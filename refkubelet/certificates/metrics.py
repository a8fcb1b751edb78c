"""What is counted of a certificate: failures to renew it, and how old its predecessors became.

Rules: SRV-006. Upstream: pkg/kubelet/certificate/kubelet.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from refkubelet.telemetry.metrics import Durations

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 24 * 3600.0
_YEAR = 360 * _DAY
LIVES_S: Final = (
    *(_MINUTE, _HOUR, 4 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 180 * _DAY, _YEAR),
    4 * _YEAR,
)
"""Bounds of the histogram of lives."""


@dataclass(slots=True)
class CertificateMetrics:
    """Counted by one certificate manager."""

    failures: int = 0
    lives: Durations = field(default_factory=lambda: Durations(LIVES_S))
