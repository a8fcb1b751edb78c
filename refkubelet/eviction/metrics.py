"""What /metrics shows of evictions (EVIC-096)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from refkubelet.metrics import Durations


@dataclass(slots=True)
class EvictionMetrics:
    """`evictions` by signal; `stats_age`: how old the measurements were that led to them."""

    evictions: Counter[str] = field(default_factory=Counter)
    stats_age: dict[str, Durations] = field(default_factory=dict)

    def acted_on(self, times_ns: Mapping[str, int], now_ns: int) -> None:
        """Pods are ranked because of these signals, measured then; 0 is an unknown time."""
        for signal, time_ns in times_ns.items():
            if time_ns:
                age_s = (now_ns - time_ns) / 10**9
                self.stats_age.setdefault(signal, Durations()).add(age_s)
