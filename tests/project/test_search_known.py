"""Whether search finds known bugs: the list, the kept answers, and the command that asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import search_mutants
from mutant_tables import read_all
from places import ROOT
from search_mutants import found, lines_of, listed, share_of, wanted_names
from suite_run import Answer


def test_each_wrong_kubelet_of_a_fixture_is_listed_once() -> None:
    names = [name for names in listed(search_mutants.LISTED.read_text()).values() for name in names]
    assert sorted(names) == sorted(each.name.partition("/")[2] for each in read_all(["bugs"]))
    assert len(wanted_names()) >= 30


def test_what_is_kept_is_of_those_to_be_found() -> None:
    kept = json.loads((ROOT / "results" / "search-known.json").read_text())
    assert set(kept) <= {each.name for each in read_all(["bugs"])}
    assert all(bool(row["laws"]) == (row["seed"] is not None) for row in kept.values())


class Record:
    """Says of all worlds that they are reached, but of the first."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def reaching(self, wanted: object) -> list[str]:
        return [f"world-{seed}" for seed in range(2, 41)]


def test_worlds_are_played_in_rounds_until_one_breaks_what_the_right_kubelet_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    early, late, never = read_all(["bugs/17253", "bugs/24819", "bugs/29845"])
    breaks = {early.name: {3: ("also-right",), 7: ("law",)}, late.name: {30: ("other",)}}
    asked: list[int] = []

    def ask(plans: Any, *_: object) -> Any:
        for plan in plans:
            asked.append(len(plan.questions))
            seeds = [int(question.case.removeprefix("world-")) for question in plan.questions]
            hit = next((s for s in seeds if s in breaks.get(plan.mutant.name, {})), None)
            answer = Answer(plan.mutant, seconds=1.0)
            if hit is not None:
                answer.noticed = (f"world-{hit}",)
                answer.laws = {f"world-{hit}": breaks[plan.mutant.name][hit]}
            yield answer

    monkeypatch.setattr(search_mutants, "ask", ask)
    monkeypatch.setattr(search_mutants, "record_of_worlds", lambda *_: Record())
    monkeypatch.setattr(search_mutants, "_broken_by_right", lambda seed: {"also-right"})
    rows = {mutant.name: row for mutant, row in found([early, late, never], 40, 1)}
    assert {name: row["seed"] for name, row in rows.items()} == {
        early.name: 7,
        late.name: 30,
        never.name: None,
    }
    assert rows[never.name]["worlds"] == 40
    assert asked == [24, 24, 24, 22, 15, 15]
    assert share_of(rows, [early.name, late.name, never.name]) == (2, 2 / 3)
    assert "not found in 40 worlds" in "\n".join(lines_of(rows, rows))


def test_the_command_finds_one_in_a_world_that_it_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: it forks what it has imported."""
    script = (
        "import sys, search_mutants as asked;"
        "asked.record_of_worlds = lambda *_: None; asked.reaching = lambda *_: [14];"
        "sys.exit(asked.main(sys.argv[1:]))"
    )
    file = tmp_path / "answers.json"
    words = ["bugs/107695", "--seeds", "14", "--jobs", "1", "--results", str(file)]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={"PYTHONPATH": f"{ROOT / 'tests' / 'mutants'}:{ROOT}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 1 found (100%)" in done.stdout
    assert json.loads(file.read_text())["bugs/107695"]["seed"] == 14
