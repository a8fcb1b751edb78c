"""What /metrics/probes shows (PROBE-082)."""

from __future__ import annotations

from pods import container, make_pod

from refkubelet.model.probe_results import ProbeResult
from refkubelet.probes.decide import probe_targets
from refkubelet.probes.metrics import ProbeMetrics

PROBE = {"exec": {"command": ["x"]}}
POD = make_pod(container("c", livenessProbe=PROBE, readinessProbe=PROBE))
READINESS, LIVENESS = probe_targets(POD)


def samples(metrics: ProbeMetrics) -> dict[str, str]:
    lines = [line for line in metrics.text().splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_runs_are_counted_by_result_PROBE_082() -> None:
    metrics = ProbeMetrics()
    for result in (ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.SUCCESS):
        metrics.count(LIVENESS, result, 0.02)
    found = samples(metrics)
    labels = 'container="c",namespace="default",pod="web",pod_uid="uid-web",probe_type="Liveness"'
    for result, count in (("successful", "2.0"), ("failed", "1.0")):
        key = f'prober_probe_total{{{labels},result="{result}"}}'
        assert found[key] == count
    assert not any("unknown" in key or "_created" in key for key in found)


def test_only_runs_that_did_not_fail_have_a_duration_PROBE_082() -> None:
    metrics = ProbeMetrics()
    metrics.count(LIVENESS, ProbeResult.FAILURE, 7.0)
    assert not any("duration" in key for key in samples(metrics))
    for took_s in (0.005, 0.02, 7.0, 70.0):
        metrics.count(LIVENESS, ProbeResult.SUCCESS, took_s)
    found = samples(metrics)
    labels = 'container="c",namespace="default",pod="web",probe_type="Liveness"'
    name = "prober_probe_duration_seconds"
    buckets = {
        key.partition('le="')[2].partition('"')[0]: value
        for key, value in found.items()
        if key.startswith(f"{name}_bucket")
    }
    assert (buckets["0.005"], buckets["0.01"], buckets["0.025"]) == ("1.0", "1.0", "2.0")
    assert (buckets["5.0"], buckets["10.0"], buckets["+Inf"]) == ("2.0", "3.0", "4.0")
    total = next(value for key, value in found.items() if key.startswith(f"{name}_sum"))
    assert float(total) == 77.025
    count = next(key for key in found if key.startswith(f"{name}_count"))
    assert sorted(count.partition("{")[2].rstrip("}").split(",")) == labels.split(",")


def test_a_worker_that_ends_takes_its_counts_along_PROBE_082() -> None:
    metrics = ProbeMetrics()
    metrics.count(LIVENESS, ProbeResult.SUCCESS, 0.02)
    metrics.count(READINESS, ProbeResult.SUCCESS, 0.02)
    metrics.forget(LIVENESS)
    assert not any("Liveness" in key for key in samples(metrics))
    metrics.forget(READINESS)
    assert samples(metrics) == {}
