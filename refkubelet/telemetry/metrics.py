"""What /metrics shows of the PLEG, the pods and their workers (PLEG-013, PLEG-303, MIRR-036).

Counting only adds to a number, because it happens every second; what can be read from the parts is
read at a scrape, and only then is the Prometheus library imported and asked. What must never happen
here: a scrape changes anything.
Upstream: pkg/kubelet/metrics/metrics.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PREFIX: Final = "kubelet_"
Labels = tuple[str, ...]
Values = Mapping[Labels, float]


@dataclass(slots=True)
class Durations:
    """A histogram of seconds, with the usual bounds unless others are given."""

    bounds_s: tuple[float, ...] = BUCKETS_S
    in_bucket: list[int] = field(default_factory=list)
    sum_s: float = 0.0

    def __post_init__(self) -> None:
        self.in_bucket = self.in_bucket or [0] * (len(self.bounds_s) + 1)

    def add(self, took_s: float) -> None:
        self.in_bucket[bisect_left(self.bounds_s, took_s)] += 1
        self.sum_s += took_s

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, how many were at most that long), as Prometheus wants it."""
        found, total = [], 0
        for bound, count in zip((*map(str, self.bounds_s), "+Inf"), self.in_bucket, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


@dataclass(slots=True)
class PlegMetrics:
    """Counted by the generic PLEG (PLEG-013), and by the evented one (PLEG-303)."""

    relist_duration: Durations = field(default_factory=Durations)
    relist_interval: Durations = field(default_factory=Durations)
    pod_relist_duration: Durations = field(default_factory=Durations)
    event_latency: Durations = field(default_factory=Durations)


@dataclass(slots=True)
class HousekeepingMetrics:
    """`restarted` by `static`: pods whose UID came back (MIRR-006); `orphaned`: pods that only the
    runtime knew."""

    restarted: Counter[str] = field(default_factory=Counter)
    orphaned: int = 0


@dataclass(frozen=True, slots=True)
class Numbers:
    """A metric that is read when it is asked for. `kind`: gauge, counter (its name ends in
    `_total`) or unknown (a counter whose name does not)."""

    name: str
    help: str
    read: Callable[[], Values]
    labels: Labels = ()
    kind: str = "gauge"


@dataclass(frozen=True, slots=True)
class Histograms:
    """A histogram for each value of one label."""

    name: str
    help: str
    label: str
    read: Callable[[], Mapping[str, Durations]]


def one(read: Callable[[], float]) -> Callable[[], Values]:
    """The values of a metric without labels."""
    return lambda: {(): read()}


def counts(name: str, help: str, label: str, counted: Mapping[str, int]) -> Numbers:
    """A counter for each value of one label; `counted` is read at a scrape."""
    return Numbers(
        name,
        help,
        read=lambda: {(value,): number for value, number in counted.items()},
        labels=(label,),
        kind="counter" if name.endswith("_total") else "unknown",
    )


def prometheus_text(collector: Any) -> str:
    """What a collector of the Prometheus library collects now, in the Prometheus text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


class MetricsPage:
    """The text of a scrape."""

    def __init__(
        self,
        numbers: Iterable[Numbers],
        durations: Mapping[str, Durations],
        histograms: Iterable[Histograms] = (),
    ) -> None:
        self._numbers = tuple(numbers)
        self._durations = durations
        self._histograms = tuple(histograms)

    def text(self) -> str:
        """In the Prometheus text format."""
        return prometheus_text(self)

    def collect(self) -> Iterator[Any]:
        """As a collector of the Prometheus library."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
            UnknownMetricFamily,
        )

        kinds: dict[str, Any] = {
            "gauge": GaugeMetricFamily,
            "counter": CounterMetricFamily,
            "unknown": UnknownMetricFamily,
        }
        for numbers in self._numbers:
            family = kinds[numbers.kind](PREFIX + numbers.name, numbers.help, labels=numbers.labels)
            for labels, value in numbers.read().items():
                family.add_metric(labels, value)
            yield family
        for name, durations in self._durations.items():
            histogram = HistogramMetricFamily(PREFIX + name, "Seconds.")
            histogram.add_metric((), durations.cumulative(), durations.sum_s)
            yield histogram
        for several in self._histograms:
            name = PREFIX + several.name
            histogram = HistogramMetricFamily(name, several.help, labels=(several.label,))
            for label, durations in several.read().items():
                histogram.add_metric((label,), durations.cumulative(), durations.sum_s)
            yield histogram
