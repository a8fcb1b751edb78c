"""The suite under several seeds: what `--seeds` takes, what is counted, told and kept of each."""

import os
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from result_files import head_line, write_lines

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.seeds import seeds_of, text_of
from kubelet_conformance.registry import Case, Level
from kubelet_conformance.results_file import document, read
from kubelet_conformance.results_lines import case_line
from kubelet_conformance.summary import seed_rows


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("7", (7,)), ("1:4", (1, 2, 3, 4)), ("3,7", (3, 7)), ("5,1:2,5", (5, 1, 2)), ("0:0", (0,))],
)
def test_seeds_are_numbers_and_ranges(text: str, seeds: tuple[int, ...]) -> None:
    assert seeds_of(text) == seeds
    assert seeds_of(text_of(seeds)) == seeds


@pytest.mark.parametrize("text", ["", "x", "3:1", "1:", "1,,2", "1:2:3", "1:99999999999"])
def test_what_is_no_seed_is_told_in_words(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="wanted seeds such as 7, 3,7 or 1:20") as told:
        seeds_of(text)
    assert repr(text) in str(told.value)


async def nothing(node: object) -> None:
    """A case that does nothing."""


def results() -> list[Result]:
    first, second = (
        Case(
            id=name, area="a", title="t", rules=("LIFE-001",), level=Level.MUST,
            needs=frozenset(), body=nothing,
        )
        for name in ("one", "two")
    )  # fmt: skip
    return [
        Result(first, Outcome.PASSED, seed=3, case_s=1),
        Result(second, Outcome.PASSED, seed=3, case_s=1),
        Result(first, Outcome.FAILED, "too late", seed=7, case_s=1),
        Result(second, Outcome.PASSED, seed=7, case_s=1),
    ]


def kept_of(found: list[Result], file: Path) -> dict[str, object]:
    seeds = tuple(dict.fromkeys(result.seed or 0 for result in found))
    lines = [case_line(result, Choice(latency=2)) for result in found]
    return document(read(write_lines(file, head_line(seeds=seeds, latency=2.0), *lines)))


def test_the_summary_has_a_row_for_each_of_several_seeds() -> None:
    assert seed_rows(results()) == [
        ["seed 3", "2", "-", "-", "-", "-", "-", "-", "2.0 s", "0.0 s"],
        ["seed 7", "1", "1", "-", "-", "-", "-", "-", "2.0 s", "0.0 s"],
    ]
    assert seed_rows(results()[:2]) == []


def test_the_results_file_says_which_seed_had_which_outcome(tmp_path: Path) -> None:
    kept = kept_of(results(), tmp_path / "run.json")
    assert kept["seeds"] == {"3": {"passed": 2}, "7": {"failed": 1, "passed": 1}}
    assert "seed" not in kept
    assert kept["latency"] == 2
    seeds = {"passed": [3], "failed": [7]}
    one = {"area": "a", "level": "must", "outcome": "failed", "detail": "too late", "seeds": seeds}
    two = {"area": "a", "level": "must", "outcome": "passed", "seeds": {"passed": [3, 7]}}
    assert kept["cases"] == {"one": one, "two": two}


def test_the_results_file_of_one_seed_has_one_outcome_for_each_case(tmp_path: Path) -> None:
    kept = kept_of(results()[:2], tmp_path / "run.json")
    assert kept["seed"] == 3
    assert "seeds" not in kept
    assert kept["cases"] == {
        name: {"area": "a", "level": "must", "outcome": "passed"} for name in ("one", "two")
    }


FAILS_WITH_SEED_7 = """\
from kubelet_conformance.session import run as run_state
from kubelet_conformance.harness.runs import processes
from kubelet_conformance.harness.runs.case_run import Outcome, Result

def run(case, choice):
    outcome = Outcome.FAILED if choice.seed == 7 else Outcome.PASSED
    return Result(case, outcome, "planted", seed=choice.seed)

processes.run_virtual_case = run_state.run_virtual_case = run
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_failure_prints_its_seed_and_the_line_that_repeats_it(jobs: str, tmp_path: Path) -> None:
    (tmp_path / "fails_with_seed_7.py").write_text(FAILS_WITH_SEED_7)
    kept = tmp_path / "kept.json"
    options = ("--id", "probe-grace", "--id", "start-order", "--seeds", "3,7:8", "--latency", "3")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kubelet_conformance.cli", "run", "-p", "fails_with_seed_7"),
            *(*options, "--jobs", jobs, "--results", str(kept)),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert done.returncode == 1, done.stderr
    repeat = "kubelet-conformance run --id start-order --seed 7 --latency 3"
    assert f"repeat:   {repeat}" in done.stdout
    assert f"  repeat: {repeat}" in done.stdout
    assert "seeds 3,7,8, latency 3, " in done.stdout
    counted = document(read(kept))["seeds"]
    assert counted == {"3": {"passed": 2}, "7": {"failed": 2}, "8": {"passed": 2}}
