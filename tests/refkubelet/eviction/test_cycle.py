"""The seven steps of a cycle: which thresholds act."""

from __future__ import annotations

from typing import Any

from eviction_world import MI, hard, soft
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.config.eviction_thresholds import SIGNALS
from refkubelet.eviction.cycle import (
    CycleMemory,
    CycleResult,
    Observation,
    evaluate,
    thresholds_met,
)
from refkubelet.eviction.messages import (
    reclaim_message,
)

LOW, PLENTY = 50 * MI, 500 * MI


def run_cycle(
    thresholds: Any, available: int, before: CycleMemory, now_s: float, **more: Any
) -> CycleResult:
    observation = Observation(available, 1000 * MI, more.get("time_ns", int(now_s * 10**9) + 1))
    seen = {"memory.available": observation}
    return evaluate(
        thresholds, seen, memory=before, now_s=now_s, transition_s=more.get("transition_s", 30)
    )


def test_hard_thresholds_act_at_once_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    result = run_cycle([threshold], LOW, CycleMemory(), 5)
    assert (result.conditions, result.acting) == (("MemoryPressure",), (threshold,))


def test_comparison_is_strict_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    assert run_cycle([threshold], 100 * MI, CycleMemory(), 5).acting == ()


def test_soft_thresholds_wait_for_their_grace_EVIC_053() -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory, acted = CycleMemory(), []
    for now_s in (0, 10, 20):
        result = run_cycle([threshold], LOW, memory, now_s)
        assert result.conditions == ("MemoryPressure",)  # step 4: regardless of grace
        memory, acted = result.memory, [*acted, bool(result.acting)]
    assert acted == [False, False, True]


def test_recovery_restarts_the_grace_clock_EVIC_053() -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    memory = run_cycle([threshold], PLENTY, memory, 10).memory
    assert memory.first_seen_s == {}
    assert run_cycle([threshold], LOW, memory, 20).acting == ()


def test_conditions_outlive_pressure_by_the_transition_period_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    seen = []
    for now_s in (10, 20, 29.9, 30):
        result = run_cycle([threshold], PLENTY, memory, now_s)
        memory, seen = result.memory, [*seen, bool(result.conditions)]
    assert seen == [True, True, True, False]


def test_minimum_reclaim_keeps_a_met_threshold_acting_EVIC_053() -> None:
    threshold = hard("memory.available", "100Mi", "50Mi")
    memory = run_cycle([threshold], LOW, CycleMemory(), 0).memory
    between = run_cycle([threshold], 120 * MI, memory, 10)
    assert between.acting == (threshold,)
    assert run_cycle([threshold], 150 * MI, between.memory, 20).acting == ()
    assert run_cycle([threshold], 120 * MI, CycleMemory(), 0).acting == ()


def test_a_frozen_measurement_acts_once_EVIC_054() -> None:
    threshold = hard("memory.available", "100Mi")
    first = run_cycle([threshold], LOW, CycleMemory(), 0, time_ns=9)
    second = run_cycle([threshold], LOW, first.memory, 10, time_ns=9)
    third = run_cycle([threshold], LOW, second.memory, 20, time_ns=10)
    assert [bool(r.acting) for r in (first, second, third)] == [True, False, True]


def test_no_observation_is_no_pressure_EVIC_027() -> None:
    threshold = hard("allocatableMemory.available", "100Mi")
    assert thresholds_met([threshold], {}, enforce_min_reclaim=True) == ()


def test_memory_comes_before_disk_EVIC_055() -> None:
    disk, memory = hard("nodefs.available", "10%"), hard("memory.available", "100Mi")
    seen = {s: Observation(0, 100, 1) for s in ("nodefs.available", "memory.available")}
    result = evaluate([disk, memory], seen, memory=CycleMemory(), now_s=0, transition_s=30)
    assert result.acting == (memory, disk)
    assert result.conditions == ("DiskPressure", "MemoryPressure")


def test_resources_and_conditions_of_signals_EVIC_060_EVIC_061_EVIC_062() -> None:
    """EVIC-056."""
    assert SIGNALS["memory.available"] == ("memory", "MemoryPressure")
    assert SIGNALS["imagefs.available"] == ("ephemeral-storage", "DiskPressure")
    assert SIGNALS["nodefs.inodesFree"] == ("inodes", "DiskPressure")
    assert SIGNALS["pid.available"] == ("pids", "PIDPressure")
    assert reclaim_message("memory") == "Attempting to reclaim memory"


LEVELS = st.lists(st.tuples(st.integers(0, 200), st.floats(0.1, 40)), max_size=12)


@given(LEVELS)
def test_an_acting_soft_threshold_was_low_for_its_whole_grace_EVIC_053(levels: Any) -> None:
    threshold = soft("memory.available", "100Mi", "15s")
    memory, now_s, low_since = CycleMemory(), 0.0, None
    for available, step_s in levels:
        now_s += step_s
        result = run_cycle([threshold], available * MI, memory, now_s)
        memory = result.memory
        low_since = (low_since if low_since is not None else now_s) if available < 100 else None
        expected = low_since is not None and now_s - low_since >= 15
        assert bool(result.acting) == expected
