"""Metrics that are counted where something happens, or read when they are asked for.

Counting only adds to a number, because it happens all the time. A metric without labels has a
sample from the start, one with labels a sample for each of their values that has been counted, as
with upstream's. What must never happen here: a scrape changes anything.
Upstream: staging/src/k8s.io/component-base/metrics: CounterVec, GaugeVec, HistogramVec.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec import Struct

from refkubelet.telemetry.exposition import Family, Kind, Sample, exposition
from simclock import Clock

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The bounds that Prometheus' clients have by default."""
Labels = tuple[str, ...]
Values = Mapping[Labels, float]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of a histogram, each `factor` times the one before.

    >>> exponential(1, 2, 5)
    (1, 2, 4, 8, 16)
    """
    return tuple(start * factor**power for power in range(count))


@dataclass(slots=True)
class Durations:
    """A histogram of seconds, with the usual bounds unless others are given."""

    bounds_s: tuple[float, ...] = BUCKETS_S
    in_bucket: list[int] = field(default_factory=list)
    sum_s: float = 0.0

    def __post_init__(self) -> None:
        self.in_bucket = self.in_bucket or [0] * (len(self.bounds_s) + 1)

    def add(self, took_s: float) -> None:
        """Count one that took so many seconds."""
        self.in_bucket[bisect_left(self.bounds_s, took_s)] += 1
        self.sum_s += took_s

    @property
    def count(self) -> int:
        return sum(self.in_bucket)

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound, how many were at most that long), as Prometheus wants it."""
        buckets, total = [], 0
        for bound, count in zip((*map(str, self.bounds_s), "+Inf"), self.in_bucket, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets

    def samples(self, labels: tuple[tuple[str, str], ...] = ()) -> Iterator[Sample]:
        """The lines of a histogram with these labels."""
        total = 0.0
        for bound, total in self.cumulative():
            yield Sample((*labels, ("le", bound)), total, "_bucket")
        yield Sample(labels, self.sum_s, "_sum")
        yield Sample(labels, total, "_count")


class Metric(Protocol):
    """What a page shows."""

    @property
    def name(self) -> str: ...

    def family(self) -> Family:
        """As it is now."""


class CounterVec:
    """Counts by the values of its labels."""

    kind: Kind = "counter"

    def __init__(self, name: str, help: str, *labels: str) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Count one, or `by`; by 0 only makes the sample."""
        self.values[labels] = self.values.get(labels, 0.0) + by

    def family(self) -> Family:
        return Family(self.name, self.kind, self.help, list(_samples(self.labels, self.values)))


class GaugeVec(CounterVec):
    """Numbers that go up and down, by the values of its labels."""

    kind: Kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        """It is `value` now."""
        self.values[labels] = value


class HistogramVec:
    """Histograms by the values of its labels. `lazy`: one without labels has no sample either
    before the first observation."""

    def __init__(
        self,
        name: str,
        help: str,
        *labels: str,
        bounds: tuple[float, ...] = BUCKETS_S,
        lazy: bool = False,
    ) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self.bounds = bounds
        self.values: dict[Labels, Durations] = {}
        if not labels and not lazy:
            self.values[()] = Durations(bounds)

    def of(self, *labels: str) -> Durations:
        """The histogram of these values of the labels; a new one is a sample from now on."""
        durations = self.values.get(labels)
        if durations is None:
            durations = self.values[labels] = Durations(self.bounds)
        return durations

    def observe(self, value: float, *labels: str) -> None:
        """Add one value."""
        (self.values.get(labels) or self.of(*labels)).add(value)

    @contextmanager
    def timed(self, clock: Clock, *labels: str) -> Iterator[None]:
        """Observe how many seconds the block takes, however it ends."""
        began_s = clock.monotonic_s()
        try:
            yield
        finally:
            self.observe(clock.monotonic_s() - began_s, *labels)

    def counts(self) -> Values:
        """How often each was observed."""
        return {labels: float(durations.count) for labels, durations in self.values.items()}

    def family(self) -> Family:
        return _histogram(self.name, self.help, self.labels, self.values)


class Group:
    """Metrics of parts that belong together: each is an attribute, or a value of one."""

    def metrics(self) -> Iterator[Metric]:
        """All of them, in the order of their making."""
        for each in vars(self).values():
            if isinstance(each, dict):
                yield from each.values()
            else:
                yield each


class PlegMetrics(Group):
    """Counted by the generic PLEG (PLEG-013), and by the evented one (PLEG-303)."""

    def __init__(self) -> None:
        self.relist_duration = HistogramVec(
            "kubelet_pleg_relist_duration_seconds", "How long relists took."
        )
        self.relist_interval = HistogramVec(
            "kubelet_pleg_relist_interval_seconds", "How long it was from relist to relist."
        )
        self.pod_relist_duration = HistogramVec(
            "kubelet_pleg_pod_relist_duration_seconds",
            "How long it took to read a single pod for a relist.",
        )
        self.event_latency = HistogramVec(
            "kubelet_evented_pleg_connection_latency_seconds",
            "How old events of the runtime were when they arrived.",
        )
        self.stream_errors = CounterVec(
            "kubelet_evented_pleg_connection_error_count", "Streams of events that broke."
        )
        self.streams = CounterVec(
            "kubelet_evented_pleg_connection_success_count", "Streams of events that were opened."
        )
        self.discarded = CounterVec(
            "kubelet_pleg_discard_events", "Events that found no room in the queue."
        )


class HousekeepingMetrics(Group):
    """What housekeeping found."""

    def __init__(self) -> None:
        self.restarted = CounterVec(
            "kubelet_restarted_pods_total", "Pods that came back with the same UID.", "static"
        )
        for static in ("", "true"):
            self.restarted.inc(static, by=0)
        self.orphaned = CounterVec(
            "kubelet_orphaned_runtime_pods_total", "Pods that only the runtime knew."
        )


class Numbers(Struct, frozen=True):
    """A metric that is read when it is asked for."""

    name: str
    help: str
    read: Callable[[], Values]
    labels: Labels = ()
    kind: Kind = "gauge"

    def family(self) -> Family:
        return Family(self.name, self.kind, self.help, list(_samples(self.labels, self.read())))


class Histograms(Struct, frozen=True):
    """A histogram for each value of its labels, read when it is asked for."""

    name: str
    help: str
    read: Callable[[], Mapping[Labels, Durations]]
    labels: Labels = ()

    def family(self) -> Family:
        return _histogram(self.name, self.help, self.labels, self.read())


def one(read: Callable[[], float]) -> Callable[[], Values]:
    """The values of a metric without labels."""
    return lambda: {(): read()}


def counts(name: str, help: str, label: str, counted: Mapping[str, int]) -> Numbers:
    """A counter for each value of one label; `counted` is read at a scrape."""

    def read() -> Values:
        return {(value,): number for value, number in counted.items()}

    return Numbers(name, help, read, (label,), "counter")


def timings(name: str, help: str, label: str, counted: Mapping[str, Durations]) -> Histograms:
    """A histogram for each value of one label; `counted` is read at a scrape."""
    return Histograms(
        name, help, lambda: {(value,): each for value, each in counted.items()}, (label,)
    )


def _samples(names: Labels, values: Values) -> Iterator[Sample]:
    for labels, value in values.items():
        yield Sample(_by_name(names, labels), value)


def _by_name(names: Labels, labels: Labels) -> tuple[tuple[str, str], ...]:
    """The labels in the order of their names, as Prometheus' clients write them."""
    return tuple(sorted(zip(names, labels, strict=True)))


def _histogram(name: str, help: str, names: Labels, values: Mapping[Labels, Durations]) -> Family:
    samples = [
        sample
        for labels, durations in values.items()
        for sample in durations.samples(_by_name(names, labels))
    ]
    return Family(name, "histogram", help, samples)


def prometheus_text(collector: Any) -> str:
    """What a collector of the Prometheus library collects now, in the Prometheus text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


class MetricsPage:
    """The text of a scrape. `process`: numbers of the process of the kubelet stand below the
    metrics, as far as this machine tells them."""

    def __init__(self, metrics: Iterable[Metric], *, process: bool = True) -> None:
        self.metrics = tuple(metrics)
        self._process = process

    def text(self, more: Iterable[Family] = ()) -> str:
        """In the Prometheus text format; `more`: what has just been measured."""
        page = exposition((*(metric.family() for metric in self.metrics), *more))
        return page + _of_the_process() if self._process else page


def _of_the_process() -> str:
    """`process_cpu_seconds_total` and its like, of this process."""
    from prometheus_client import ProcessCollector

    return prometheus_text(ProcessCollector(registry=None))
