"""The metrics of /metrics/probes (PROBE-082, SRV-032): runs by result, and their durations.

Counting is two dictionary look-ups, because probes run all the time; the Prometheus library is used
only at a scrape. Runs that ended in an error are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from refkubelet.model.pod import name_and_namespace, uid
from refkubelet.model.probe_results import ProbeResult
from refkubelet.probes.decide import ProbeTarget
from refkubelet.telemetry.metrics import Durations, prometheus_text

WORDS: Final = {
    ProbeResult.SUCCESS: "successful",
    ProbeResult.FAILURE: "failed",
    ProbeResult.UNKNOWN: "unknown",
}
OF_PROBE: Final = ("probe_type", "container", "pod", "namespace")
Labels = tuple[str, str, str, str, str]  # OF_PROBE and the pod's UID


@dataclass(slots=True)
class _Runs:
    """The runs of one probe."""

    results: dict[ProbeResult, int] = field(default_factory=dict)
    durations: Durations = field(default_factory=Durations)


class ProbeMetrics:
    """The counts of all probe workers; those of a worker that ends are removed."""

    def __init__(self) -> None:
        self._runs: dict[Labels, _Runs] = {}

    def count(self, target: ProbeTarget, result: ProbeResult, took_s: float) -> None:
        """Count a run with this result; its duration `took_s` counts unless it failed."""
        runs = self._runs.setdefault(labels_of(target), _Runs())
        runs.results[result] = runs.results.get(result, 0) + 1
        if result is not ProbeResult.FAILURE:
            runs.durations.add(took_s)

    def forget(self, target: ProbeTarget) -> None:
        """Remove the counts of a worker that has ended."""
        self._runs.pop(labels_of(target), None)

    def text(self) -> str:
        """The metrics in the Prometheus text format."""
        return prometheus_text(self)

    def collect(self) -> Iterator[Any]:
        """The metric families, for the registry of the Prometheus library."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        total = CounterMetricFamily(
            "prober_probe_total",
            "Number of runs of a probe by result.",
            labels=("probe_type", "result", "container", "pod", "namespace", "pod_uid"),
        )
        duration = HistogramMetricFamily(
            "prober_probe_duration_seconds",
            "Duration in seconds of runs that did not fail.",
            labels=OF_PROBE,
        )
        for labels, runs in self._runs.items():
            for result, count in runs.results.items():
                total.add_metric((labels[0], WORDS[result], *labels[1:]), count)
            if any(runs.durations.in_bucket):
                durations = runs.durations
                duration.add_metric(labels[:4], durations.cumulative(), durations.sum_s)
        yield total
        yield duration


def labels_of(target: ProbeTarget) -> Labels:
    """The labels of a probe's metrics; the last is the pod's UID."""
    pod, namespace = name_and_namespace(target.pod)
    return target.probe_type.value, target.container.name, pod, namespace, uid(target.pod)
