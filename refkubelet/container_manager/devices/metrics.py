"""What /metrics shows of device plugins (CG-084)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from refkubelet.metrics import Durations


@dataclass(slots=True)
class DeviceMetrics:
    """By resource: `registrations` that were asked for, `allocations`: how long Allocate took."""

    registrations: Counter[str] = field(default_factory=Counter)
    allocations: dict[str, Durations] = field(default_factory=dict)

    def allocated(self, resource: str, took_s: float) -> None:
        """A plugin has answered Allocate, well or not."""
        self.allocations.setdefault(resource, Durations()).add(took_s)
