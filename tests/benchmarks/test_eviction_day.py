"""The day of evictions, short: fewer pods and waves, the same laws."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import eviction_day
import pytest
from eviction_day import Day, Plan, WatchedNode, a_day

PODS, WAVES, DURATION_S = 12, 8, 1800.0
BY_ITSELF = (
    "import eviction_day; "
    f"print('\\n'.join(eviction_day.a_day({DURATION_S}, {PODS}, {WAVES}).trace))"
)


@pytest.fixture(scope="module")
def day() -> Day:
    return a_day(DURATION_S, PODS, WAVES)


def test_memory_crosses_the_thresholds_and_pods_are_evicted(day: Day) -> None:
    assert day.crossings == WAVES
    assert len(day.evicted) >= WAVES // 2


def test_crossings_are_those_that_were_seen() -> None:
    node = WatchedNode(memory_bytes=8 << 30, base_memory_used_bytes=0)
    for used_gi in (0, 7, 8, 8, 2, 8, 0):
        node.base_memory_used_bytes = used_gi << 30
        node.memory()
    assert node.crossings == 2
    assert a_day(300.0, 2, waves=0).crossings == 0


def test_every_eviction_is_explained_by_rule(day: Day) -> None:
    """One line for each event, with signal, rank and rules; nobody else is said to be evicted."""
    wanted = re.compile(
        r"^\d+\.\d{3} evicting (pod-\d+-\d+)_default: memory\.available, rank \d+ of \d+: "
        r"uses \d+Mi, request 64Mi, priority \d+ \(EVIC-080\); grace \d s \(EVIC-086 EVIC-087\)$"
    )
    lines = [line for line in day.trace if "evicting" in line]
    explained = [found[1] for line in lines if (found := wanted.match(line))]
    assert len(explained) == len(lines)
    assert sorted(explained) == sorted(day.evicted)
    before = [day.trace[day.trace.index(line) - 1] for line in lines]
    assert all(line.endswith(("(EVIC-020 EVIC-053)", "(EVIC-085)")) for line in before)


def test_hard_and_soft_thresholds_acted(day: Day) -> None:
    assert any(" of 500Mi, hard, wanted 100Mi more " in line for line in day.trace)
    assert any(" of 1Gi, soft for 60 s, wanted 100Mi more " in line for line in day.trace)


def test_a_second_run_leaves_the_same_trace(day: Day) -> None:
    """In a process of its own, with other hashes of strings."""
    directory = Path(eviction_day.__file__).parent
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(directory)}
    again = subprocess.run(
        [sys.executable, "-c", BY_ITSELF],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=directory,
        timeout=200,
    )
    assert again.stdout.splitlines() == day.trace


def test_a_wave_is_in_the_curve_of_its_pod_alone() -> None:
    plan = Plan(pods=12, waves=2, every_s=100.0)
    calm = 60 << 20
    assert plan.curve(0, 0.0)[:2] == [(0.0, calm), (100.0, 7400 << 20)]
    assert plan.curve(0, 150.0) == [(0.0, calm)]  # it was before this life of the pod
    assert plan.curve(1, 150.0)[1][0] == 50.0
    assert plan.curve(7, 0.0) == [(0.0, calm)]
