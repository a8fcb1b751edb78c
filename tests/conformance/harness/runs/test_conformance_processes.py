"""Virtual cases in several processes: the same results, none lost, no process left."""

from __future__ import annotations

import multiprocessing  # noqa: TID251
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from kubelet_conformance.harness.runs import processes
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.processes import run_virtual_cases
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import REGISTRY, Case, load_cases


def some_cases() -> list[Case]:
    load_cases()
    return [case for case in REGISTRY.cases() if case.area == "static"][:5]


def told(result: Result) -> tuple[object, ...]:
    return result.case.id, result.outcome, result.detail, result.case_s, result.trace


def test_the_results_are_those_of_one_process_and_know_their_places() -> None:
    cases, choice = some_cases(), Choice(traces="all")
    here = [told(run_virtual_case(case, choice)) for case in cases]
    found = dict(run_virtual_cases([(case, choice) for case in cases], 2))
    assert [told(found[place]) for place in range(len(cases))] == here
    assert multiprocessing.active_children() == []


def test_the_case_of_a_process_that_dies_is_an_error_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = some_cases()

    def run(case: Case, _: Choice) -> Result:
        if case is cases[2]:
            os._exit(1)
        return Result(case, Outcome.PASSED)

    monkeypatch.setattr(processes, "run_virtual_case", run)
    by_place = dict(run_virtual_cases([(case, Choice()) for case in cases], 2))
    found = [by_place[place] for place in range(len(cases))]
    assert [result.case.id for result in found] == [case.id for case in cases]
    assert [result.outcome.value for result in found] == [
        *("passed", "passed", "error", "passed", "passed")
    ]
    assert "the process that ran it has ended" in found[2].detail


def test_whoever_stops_reading_leaves_no_process() -> None:
    results = run_virtual_cases([(case, Choice()) for case in some_cases()], 2)
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def test_a_result_comes_when_its_case_ends_and_the_others_are_stopped_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first process never ends by itself: nobody waits for it, and it tidies up."""
    tidied = tmp_path / "tidied"

    def run(case: Case, _: Choice) -> Result:
        try:
            while case is cases[0]:
                signal.pause()
        finally:
            tidied.touch()
        return Result(case, Outcome.FAILED)

    cases = some_cases()[:2]
    monkeypatch.setattr(processes, "run_virtual_case", run)
    with closing(run_virtual_cases([(case, Choice()) for case in cases], 2)) as results:
        place, result = next(results)
        tidied.unlink()
    assert (place, result.outcome) == (1, Outcome.FAILED)
    assert tidied.exists()
    assert multiprocessing.active_children() == []
