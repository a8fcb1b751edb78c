"""What worlds have met is told, and what was seldom met is drawn more often."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubelet_conformance.cli import main
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.laws.history import Planned
from kubelet_conformance.scenarios.play.struck import struck_in, verbs_of
from kubelet_conformance.search import steering
from kubelet_conformance.search.campaign import Summary
from kubelet_conformance.search.drawing import world_of as drawn
from kubelet_conformance.search.drawing.kinds import OF_STEPS
from kubelet_conformance.search.records import Head, Met, line_of, read_lines
from kubelet_conformance.search.sources import weights_in, with_weights, world_of
from kubelet_conformance.search.tasks import meet
from kubelet_conformance.search.whole.whole_world import whole_world
from refkubelet.pod_workers.taken import name_of
from refkubelet.pod_workers.transitions import TRANSITIONS


def call(method: str, began_s: float, ended_s: float | None, **more: Any) -> Any:
    facts = {"error": None, "disturbed": False, **more}
    return SimpleNamespace(method=method, started_s=began_s, ended_s=ended_s, **facts)


NO = ("UNKNOWN", "no")


@pytest.mark.parametrize(
    ("calls", "verbs", "struck"),
    [
        ([call("A", 0, 1, error=NO, disturbed=True)], {"A": ["fails"]}, {"failing A"}),
        ([call("A", 0, 1, disturbed=True)], {"A": ["fails", "delays"]}, {"slow A"}),
        ([call("A", 0, 1, error=NO)], {"A": ["fails", "hangs"]}, set()),
        ([call("A", 0, 1, error=NO)], {"A": ["fails_halfway"]}, {"half A"}),
        ([call("A", 0, 1, disturbed=True)], {"B": ["hangs"]}, set()),
    ],
)
def test_faults_are_told_by_the_calls_that_they_struck(
    calls: list[Any], verbs: dict[str, list[str]], struck: set[str]
) -> None:
    assert struck_in(calls, [], verbs) == struck


@pytest.mark.parametrize(
    ("calls", "struck"),
    [
        ([call("A", 0, 9), call("B", 6, 7)], {"killed in A"}),
        ([call("A", 0, None)], {"killed in A"}),
        ([call("A", 5, 5, error=NO)], {"killed in A"}),
        ([call("A", 5, 5)], {"killed in no call"}),  # the next kubelet's
        ([call("GetContainerEvents", 0, None)], {"killed in no call"}),
    ],
)
def test_a_kill_is_told_by_the_calls_under_way(calls: list[Any], struck: set[str]) -> None:
    assert struck_in(calls, [Planned(5, "kill"), Planned(6, "start")], {}) == struck


def test_the_line_of_a_world_has_what_struck() -> None:
    world = whole_world("two")
    words = {
        "lost StartContainer": "lost StartContainer",
        "killed after CreateContainer": "killed in CreateContainer",
    }
    for word, struck in words.items():
        number = 1 + [point.word for point in world.points].index(word)
        assert meet(number, "whole two", Choice()).struck == (struck,)
        assert verbs_of(world.world(number).scenario()).keys() <= {"StartContainer"}


def test_sizes_have_weights() -> None:
    size = with_weights("small", {"drops": 2.0, "edits": 1.0, "half calls": 1.25})
    assert size == "small; drops 2, half calls 1.25"
    assert weights_in(size) == ("small", {"drops": 2.0, "half calls": 1.25})
    assert with_weights("large", {"drops": 1.0}) == "large"
    assert weights_in("large") == ("large", {})
    assert world_of(3, size) == drawn(3, "small", {"drops": 2.0, "half calls": 1.25})
    assert world_of(3, "small") == drawn(3)


def test_what_was_seldom_met_has_more_weight() -> None:
    often = tuple(kind for kind in OF_STEPS if kind not in ("drops", "half calls", "reboots"))
    struck = ("failing A", "late A", "hanging A", "lost A", "killed in A", "stopped in A")
    lines = [Met(seed=n, kinds=often, struck=struck, verdict="holds") for n in range(9)]
    lines.append(Met(seed=9, kinds=("drops", "half calls"), struck=(), verdict="holds"))
    lines += [Met(seed=n, kinds=("drops",), verdict="holds") for n in range(10, 13)]
    weights = steering.weights_of(lines)
    assert weights["edits"] == weights["failing calls"] == weights["kubelet killed"] == 1.0
    assert weights["drops"] == 2.0  # 4 of 9 worlds
    assert weights["half calls"] == weights["reboots"] == 3.0  # never, and it may have been there
    missed = [Met(seed=1, kinds=often, struck=("killed in no call",), verdict="holds")]
    assert steering.weights_of(missed)["kubelet killed"] == 2.0


def test_a_search_is_steered_by_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    head = Head(suite="x", kubelet="refkubelet", size="small", began="then")
    kinds = tuple(kind for kind in OF_STEPS if kind != "drops")
    before.write_bytes(line_of(head) + line_of(Met(seed=1, kinds=kinds, verdict="holds")))
    words = ["search", "--seeds", "1", "--jobs", "1", "--tries", "0", "--steer", str(before)]
    assert main([*words, "--results", str(after)]) == 0
    assert "killed in: " in capsys.readouterr().out
    again, _ = read_lines(after)
    assert again.size.startswith("small; ")
    assert "drops 2" in again.size
    assert main(["search", "--seeds", "1", "--resume", str(after)]) == 2
    assert "drops 2" in capsys.readouterr().err
    assert main([*words[:5], "--steer", str(tmp_path / "none")]) == 2
    assert "--steer" in capsys.readouterr().err
    assert main(["search", "--whole", "two", "--steer", str(before)]) == 2
    assert "--steer: wanted without --whole" in capsys.readouterr().err


def test_the_table_says_what_calls_have_met_and_never() -> None:
    summary = Summary()
    summary.add(Met(seed=1, kinds=(), struck=("lost RunPodSandbox",), verdict="holds"))
    told = list(steering.words_of(summary))
    assert told[0] == "failing: nothing"
    (lost,) = (line for line in told if line.startswith("lost: "))
    assert lost.startswith("lost: RunPodSandbox 1; never CreateContainer, StartContainer")


def test_transitions_of_pod_workers_are_told_with_the_rare_ones() -> None:
    line = meet(3, "small", Choice())
    assert "sync: sync ok" in line.transitions
    assert set(line.transitions) <= {name_of(row) for row in TRANSITIONS}
    summary = Summary()
    summary.add(line)
    for seed in range(4, 6):
        summary.add(Met(seed=seed, kinds=(), transitions=("sync: sync ok",), verdict="holds"))
    *_, told = steering.words_of(summary)
    count = len(line.transitions)
    assert told.startswith(f"pod workers: {count} of {len(TRANSITIONS)} transitions; rarest ")
    assert told.partition("; never ")[2].count(", ") == len(TRANSITIONS) - count - 1
    assert "sync: sync ok" not in told.partition("; never ")[2]
    assert not any(line.startswith("pod workers") for line in steering.words_of(Summary()))
