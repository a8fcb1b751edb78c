"""Back-off arithmetic and grace arithmetic (BACK-*, LIFE-143)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import make_pod

from refkubelet.kuberuntime.decisions.backoff import (
    BackoffEntry,
    BackoffLimits,
    BackoffTable,
    backoff_end,
    next_entry,
    restart_key,
)
from refkubelet.kuberuntime.decisions.grace import container_grace_s
from refkubelet.kuberuntime.decisions.pod_actions import KillReason

S = 1_000_000_000


def series(limits: BackoffLimits, restarts: int) -> list[float]:
    """Start times of a container that ends at once."""
    table, now, times = BackoffTable(limits), 0, [0.0]
    for _ in range(restarts):
        finished = now
        now = table.wait_until("k", finished, now) or now
        table.next("k", finished, now)
        times.append(now / S)
    return times


def test_series_of_an_instantly_failing_container_BACK_001() -> None:
    assert series(BackoffLimits.up_to(300), 8) == [0, 0, 10, 30, 70, 150, 310, 610, 910]


@pytest.mark.parametrize(
    ("max_s", "times"), [(30, [0, 0, 10, 30, 60, 90]), (2, [0, 0, 2, 4, 6, 8])]
)
def test_configured_maximum_BACK_013(max_s: float, times: list[float]) -> None:
    assert series(BackoffLimits.up_to(max_s), 5) == times


@pytest.mark.parametrize(
    ("ran_s", "delay_s"),
    [(590, 20), (600, 20), (601, 10)],
)
def test_reset_after_more_than_ten_minutes_BACK_003(ran_s: int, delay_s: int) -> None:
    entry = BackoffEntry(10 * S, 0)
    after = next_entry(entry, ran_s * S, ran_s * S, BackoffLimits.up_to(300))
    assert after.delay_ns == delay_s * S


def test_exactly_the_delay_is_over_BACK_002() -> None:
    entry = BackoffEntry(10 * S, 0)
    assert backoff_end(entry, 5 * S, 15 * S - 1) == 15 * S
    assert backoff_end(entry, 5 * S, 15 * S) is None
    assert backoff_end(None, 0, 0) is None


def test_old_entries_are_collected_against_now_BACK_004() -> None:
    table = BackoffTable(BackoffLimits.up_to(300))
    table.next("k", 0, 0)
    table.collect(600 * S)
    assert table.get("k") is not None
    table.collect(601 * S)
    assert table.get("k") is None


def test_key_changes_with_image_and_resources_only_BACK_005() -> None:
    def key(**fields: Any) -> str:
        pod = make_pod({"name": "main", **fields})
        return restart_key(pod, pod.spec.containers[0])

    assert key() == key(args=["x"])
    assert key() != key(image="other:1")
    assert key() != key(resources={"limits": {"cpu": "1"}})


@given(st.lists(st.integers(0, 900), min_size=1, max_size=20))
def test_delay_stays_between_initial_and_maximum(gaps: list[int]) -> None:
    limits = BackoffLimits.up_to(300)
    entry, now = None, 0
    for gap in gaps:
        now += gap * S
        before = entry
        entry = next_entry(entry, now, now, limits)
        assert limits.initial_ns <= entry.delay_ns <= limits.max_ns
        assert before is None or entry.delay_ns in (
            limits.initial_ns,
            min(2 * before.delay_ns, limits.max_ns),
        )


# -- grace ---------------------------------------------------------------------------------------

PROBE = {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 7}


@pytest.mark.parametrize(
    ("meta", "spec", "reason", "grace"),
    [
        ({"deletionGracePeriodSeconds": 5}, {"terminationGracePeriodSeconds": 9}, None, 5),
        ({"deletionGracePeriodSeconds": 0}, {}, KillReason.LIVENESS, 0),
        ({}, {"terminationGracePeriodSeconds": 9}, KillReason.LIVENESS, 7),
        ({}, {"terminationGracePeriodSeconds": 9}, KillReason.STARTUP, 9),
        ({}, {"terminationGracePeriodSeconds": 9}, None, 9),
        ({}, {}, None, 2),
    ],
)
def test_grace_LIFE_143(
    meta: dict[str, Any], spec: dict[str, Any], reason: KillReason | None, grace: int
) -> None:
    pod = make_pod({"name": "main", "livenessProbe": PROBE}, meta=meta, **spec)
    assert container_grace_s(pod, pod.spec.containers[0], reason) == grace


def test_each_probe_has_its_own_grace_LIFE_143() -> None:
    startup = {**PROBE, "terminationGracePeriodSeconds": 3}
    container = {"name": "main", "livenessProbe": PROBE, "startupProbe": startup}
    pod = make_pod(container, terminationGracePeriodSeconds=30)
    main = pod.spec.containers[0]
    assert container_grace_s(pod, main, KillReason.LIVENESS) == 7
    assert container_grace_s(pod, main, KillReason.STARTUP) == 3
    bare = make_pod(container)
    for reason in KillReason:  # PROBE-037: without a grace of the pod, a probe's does not count
        assert container_grace_s(bare, bare.spec.containers[0], reason) == 2
