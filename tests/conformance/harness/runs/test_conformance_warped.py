"""Kubelet programs in warped time: cases in processes of their own, and a program that is none."""

from __future__ import annotations

import multiprocessing  # noqa: TID251
import os
import subprocess
import sys
from pathlib import Path

import pytest
from go_programs import built

from kubelet_conformance.features import Feature
from kubelet_conformance.harness.kubelets.base import DEVICE_PLUGINS, LOG_LINKS
from kubelet_conformance.harness.runs import warped
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.warped import run_warped_cases
from kubelet_conformance.registry import REGISTRY, Case, load_cases

KUBELET = "REFKUBELET_TEST_KUBELET"
"""The variable with the path of a kubelet binary, for tests that want a real one."""


def some_cases() -> list[Case]:
    load_cases()
    return [case for case in REGISTRY.cases() if case.area == "static"][:6]


def test_each_case_runs_once_in_one_of_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: Case, *_: object) -> Result:
        return Result(case, Outcome.PASSED, detail=str(os.getpid()))

    monkeypatch.setattr(warped, "run_warped_case", run)
    cases = some_cases()
    found = list(run_warped_cases(cases, Choice(alone=True), 3))
    assert sorted(result.case.id for result in found) == sorted(case.id for case in cases)
    assert str(os.getpid()) not in {result.detail for result in found}
    assert multiprocessing.active_children() == []


def test_cases_that_take_minutes_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warped, "run_warped_case", lambda case, *_: Result(case, Outcome.PASSED))
    load_cases()
    cases = [case for case in REGISTRY.cases() if case.area == "pleg"]
    long = [case.id for case in cases if Feature.VIRTUAL_TIME in case.needs]
    found = [result.case.id for result in run_warped_cases(cases, Choice(alone=True), 1)]
    assert found == [*long, *(case.id for case in cases if case.id not in long)]
    assert long
    assert found != [case.id for case in cases]


@pytest.mark.parametrize("shared", [LOG_LINKS, DEVICE_PLUGINS], ids=["logs", "plugins"])
def test_a_process_has_what_kubelets_share_for_itself(
    monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    def run(case: Case, _: Choice, own_mounts: bool) -> Result:
        (shared / case.id).symlink_to("nowhere")
        return Result(case, Outcome.PASSED, detail=str(own_mounts))

    monkeypatch.setattr(warped, "run_warped_case", run)
    case = some_cases()[0]
    (result,) = run_warped_cases([case], Choice(alone=True), 1)
    if result.detail != "True":
        pytest.skip("this process may not have a mount namespace of its own")
    assert not (shared / case.id).is_symlink()


def test_the_case_of_a_process_that_dies_is_an_error_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = some_cases()

    def run(case: Case, *_: object) -> Result:
        if case is cases[1]:
            os._exit(1)
        return Result(case, Outcome.PASSED)

    monkeypatch.setattr(warped, "run_warped_case", run)
    found = {r.case.id: r.outcome for r in run_warped_cases(cases, Choice(alone=True), 2)}
    assert found.pop(cases[1].id) is Outcome.ERROR
    assert set(found.values()) == {Outcome.PASSED}
    assert len(found) == len(cases) - 1


def test_whoever_stops_reading_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warped, "run_warped_case", lambda case, *_: Result(case, Outcome.PASSED))
    results = run_warped_cases(some_cases(), Choice(alone=True), 2)
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def run_cli(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubelet_conformance.cli", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_go_program_that_is_no_kubelet_ends_with_exit_code_2(tmp_path: Path) -> None:
    program = built(tmp_path / "kubelet")
    done = run_cli(
        *("--kubelet", str(program), "--runtime", "fake", "--time", "jump"),
        *("--id", "backoff-first"),
    )
    assert done.returncode == 2, done.stdout + done.stderr
    told = done.stdout + done.stderr
    assert "wanted a kubelet that runs in warped time" in told
    assert "the kubelet ended with exit code 0" in told


def test_a_real_kubelet_passes_a_long_case_in_jumping_time() -> None:
    kubelet = os.environ.get(KUBELET)
    if not kubelet:
        pytest.skip(f"{KUBELET} names no kubelet binary")
    done = run_cli(
        *("--kubelet", kubelet, "--runtime", "fake", "--time", "jump"),
        *("--id", "backoff-series", "--id", "backoff-forgotten", "--id", "backoff-maximum-bounds"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
