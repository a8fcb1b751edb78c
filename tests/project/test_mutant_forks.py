"""Mutants are tried in processes of their own: each gets its verdict, and is told at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MUTANTS = Path(__file__).parents[1] / "mutants"
TESTS = """
import os

def f():
    mutant = os.environ.get("MUTANT_UNDER_TEST", "")
    if mutant == "fail":
        raise RuntimeError
    while mutant == "m.x_f__mutmut_3":
        pass
    return 2 if mutant in ("m.x_f__mutmut_1", "m.x_f__mutmut_5") else 1

def test_quick():
    f()

def test_result():
    assert f() == RESULT
"""
CONFTEST = """
from hypothesis import settings
settings.register_profile("project", deadline=None)
"""
PLAN = {
    "mutants": [f"m.x_f__mutmut_{number}" for number in (1, 2, 3, 5)] + ["m.x_g__mutmut_1"],
    "tests": {"m.x_f": ["test_it.py::test_quick", "test_it.py::test_result"]},
    "seconds": {},
    "jobs": 2,
}


def tried(folder: Path, result: int) -> tuple[int, list[dict[str, Any]], str]:
    """The exit code, what was told, what was printed."""
    (folder / "test_it.py").write_text(f"RESULT = {result}\n{TESTS}")
    (folder / "conftest.py").write_text(CONFTEST)
    # as in a real tree: a conftest that is not of all tests
    (folder / "deep").mkdir()
    (folder / "deep/conftest.py").write_text("")
    (folder / "deep/test_deep.py").write_text("def test_deep(): pass\n")
    (folder / "plan.json").write_text(json.dumps(PLAN))
    told = folder / "told.jsonl"
    environment = os.environ | {
        "PYTHONPATH": str(MUTANTS),
        "MUTANTS_PLAN": str(folder / "plan.json"),
        "MUTANTS_TOLD": str(told),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "unit_mutant_forks", "--rootdir=."]
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    lines = told.read_text().splitlines() if told.exists() else []
    return done.returncode, [json.loads(line) for line in lines], done.stdout + done.stderr


@pytest.mark.slow
def test_each_mutant_gets_its_verdict(tmp_path: Path) -> None:
    code, told, said = tried(tmp_path, result=1)
    assert code == 0, said
    assert {row["mutant"].removeprefix("m.x_"): row["verdict"] for row in told} == {
        "f__mutmut_1": "killed",
        "f__mutmut_2": "survived",
        "f__mutmut_3": "timeout",
        "f__mutmut_5": "killed",
        "g__mutmut_1": "no tests",
    }
    assert {row["test"] for row in told} == {"", "test_it.py::test_result"}


def test_tests_that_fail_without_a_mutant_tell_nothing(tmp_path: Path) -> None:
    code, told, said = tried(tmp_path, result=3)
    assert code == 4
    assert told == []
    assert "with the mutant '': killed test_it.py::test_result, not survived" in said
