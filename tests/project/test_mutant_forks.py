"""Mutants are tried in processes of their own: each gets its verdict, and is told at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from unit_mutant_functions import FAILING, Calls, become, exchangeable

pytestmark = pytest.mark.timeout(1200)  # some seconds of work, on a busy machine minutes
MUTANTS = Path(__file__).parents[1] / "mutants"
MODULE = """
from unit_mutant_functions import exchangeable as _mutmut_mutated, MutantDict
mutants_x_f__mutmut: MutantDict = {}

@_mutmut_mutated(mutants_x_f__mutmut)
def f(): return 1

def x_f__mutmut_orig(): return 1
def x_f__mutmut_1(): return 2
def x_f__mutmut_2(): return 1
def x_f__mutmut_3():
    while True:
        pass
def x_f__mutmut_4(): return 2

for place in ("_mutmut_orig", *(f"x_f__mutmut_{number}" for number in (1, 2, 3, 4))):
    name = "x_f__mutmut_orig" if place == "_mutmut_orig" else place
    mutants_x_f__mutmut[place] = globals()[name]
"""
TESTS = """
import os
import m

def test_quick():
    m.f()

def test_result():
    assert m.f() == 1

def test_wrong_without_a_mutant():
    assert m.f() == 3

def test_of_something_else():
    pass

class TestLeansOnAnother:
    there = False

    def test_a(self):
        TestLeansOnAnother.there = True

    def test_b_passes_only_after_it(self):
        m.f()
        assert self.there
"""
CONFTEST = """
from hypothesis import settings
settings.register_profile("project", deadline=None)
"""


def tried(folder: Path, mutants: list[str]) -> tuple[int, list[dict[str, Any]], str]:
    """The exit code, what was told, what was printed."""
    (folder / "m.py").write_text(MODULE)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "conftest.py").write_text(CONFTEST)
    # as in a real tree: a conftest that is not of all tests
    (folder / "deep").mkdir()
    (folder / "deep/conftest.py").write_text("")
    (folder / "deep/test_deep.py").write_text("def test_deep(): pass\n")
    told = folder / "told.jsonl"
    reach = str(folder / "reach.jsonl")
    plan = {"mutants": mutants, "jobs": 2, "within_s": 60.0, "reach": reach, "told": str(told)}
    (folder / "plan.json").write_text(json.dumps(plan))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(MUTANTS), str(folder)]),
        "MUTANTS_PLAN": str(folder / "plan.json"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "unit_mutant_trials", "--rootdir=."]
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    lines = told.read_text().splitlines() if told.exists() else []
    return done.returncode, [json.loads(line) for line in lines], done.stdout + done.stderr


@pytest.mark.slow
def test_each_mutant_gets_its_verdict(tmp_path: Path) -> None:
    names = [f"m.x_f__mutmut_{number}" for number in (1, 2, 3, 4)] + ["m.x_g__mutmut_1"]
    code, told, said = tried(tmp_path, names)
    assert code == 0, said
    assert {row["mutant"].removeprefix("m.x_"): row["verdict"] for row in told} == {
        "f__mutmut_1": "killed",
        "f__mutmut_2": "survived",
        "f__mutmut_3": "timeout",
        "f__mutmut_4": "killed",
        "g__mutmut_1": "no tests",
    }
    assert {row["test"] for row in told if row["verdict"] == "killed"} == {
        "test_it.py::test_result"
    }
    assert "1 tests are not asked: test_it.py::test_wrong_without_a_mutant" in said
    lines = (tmp_path / "reach.jsonl").read_text().splitlines()
    calls = {line["test"]: line["functions"] for line in map(json.loads, lines)}
    assert calls["test_it.py::test_result"] == ["m.x_f"]
    assert calls["test_it.py::test_of_something_else"] == []


def test_where_tests_notice_nothing_nothing_is_told(tmp_path: Path) -> None:
    """The mutant in which all fails must be noticed: here by no test, since none is of m.x_f."""
    (tmp_path / "reach.jsonl").write_text(
        json.dumps(
            {
                "test": "test_it.py::test_of_something_else",
                "seconds": 0.0,
                "functions": ["m.x_f"],
                "passed": True,
            }
        )
        + "\n"
        + json.dumps(
            {
                "test": "test_it.py::test_quick",
                "seconds": 0.1,
                "functions": ["m.x_f"],
                "passed": True,
            }
        )
        + "\n"
    )
    code, told, said = tried(tmp_path, ["m.x_f__mutmut_1"])
    assert code == 4
    assert told == []
    assert "with the mutant 'fail': survived, not killed" in said


def of(name: str, *mutants: FunctionType) -> FunctionType:
    """A function that has these mutants, the first of which is as it is."""
    table = {f"x_{name}__mutmut_{number}": other for number, other in enumerate(mutants)}
    table["_mutmut_orig"] = mutants[0]
    mutants[0].__name__ = f"x_{name}__mutmut_orig"
    first = mutants[0]
    copy = FunctionType(first.__code__, first.__globals__, name, first.__defaults__)
    return exchangeable(table)(copy)


def test_a_function_becomes_a_mutant_with_its_defaults() -> None:
    add = of("add", lambda a, b=1: a + b, lambda a, b=2: a - b)  # type: ignore[arg-type]
    calls = Calls()
    assert add(5) == 6
    assert [name.rpartition(".")[2] for name in calls.heard()] == ["x_add"]
    assert calls.heard() == []
    become(f"{__name__}.x_add__mutmut_1")
    assert add(5) == 3
    become(FAILING)
    with pytest.raises(RuntimeError, match="every function"):
        add(5)
