"""The side of pytest of `mutant_tests.py`.

Either it becomes one mutant before anything of refkubelet is imported, and writes down which tests
failed; or, with a plan of several mutants, it forks a process for each, which exchanges functions,
runs the tests of the plan and adds a line: the mutant, and which of the tests failed that pass
without it; null where the mutant changes more than functions.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from mutant_import import become
from mutant_in_place import Functions, become_in_place, mutable_functions
from mutant_tables import Mutant, read_all
from unit_mutant_forks import Forks, add, lines_of

ALLOWED_S: Final = 20.0
"""Of processor time for one test; the longest take some."""

if os.environ.get("REFKUBELET_MUTANT"):
    become(read_all([os.environ["REFKUBELET_MUTANT"]])[0].texts())


def function_of(test: str) -> str:
    """The ID of a test without its class and parameters.

    >>> function_of("tests/test_a.py::TestB::test_c[1::2]")
    'tests/test_a.py::test_c'
    """
    path, _, name = test.partition("::")
    return f"{path}::{name.partition('[')[0].rpartition('::')[2]}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember the function of a failed test, where all of this pytest is about one mutant."""
    if report.failed and "REFKUBELET_MUTANT" in os.environ:
        add(os.environ["REFKUBELET_MUTANT_FAILED"], function_of(report.nodeid))


@dataclass
class Questions:
    """Asks about mutants, at most `jobs` at once."""

    forks: Forks
    functions: Functions
    tests: Mapping[str, list[str]]
    """Function -> its tests: one, or one for each set of parameters."""
    told: str
    trusted: dict[str, bool] = field(default_factory=dict)
    """Test -> whether it passes without a mutant, as far as that was tried."""

    def run(
        self, mutants: Sequence[Mutant], wanted: Mapping[str, Sequence[str]], jobs: int
    ) -> None:
        """All of them."""
        for mutant in mutants:
            if len(self.forks.running) >= jobs:
                self._end()
            tests = [test for name in wanted[mutant.name] for test in self.tests.get(name, ())]
            self.forks.start(mutant, partial(self._try_here, mutant, tests))
        while self.forks.running:
            self._end()

    def _try_here(self, mutant: Mutant | None, tests: Sequence[str], folder: Path) -> bool:
        """Write down which tests fail, of a function only the first."""
        if mutant is not None and not become_in_place(mutant.texts(), self.functions):
            return False
        for test, passed in zip(tests, self.forks.run_here(tests, folder, _allowed), strict=True):
            if not passed:
                add(str(folder.with_suffix(".jsonl")), test)
        return True

    def _end(self) -> None:
        ended = self.forks.wait()
        file = Path(ended.folder).with_suffix(".jsonl")
        failed = lines_of(str(file))
        file.unlink(missing_ok=True)
        if ended.verdict == "killed" or (ended.verdict == "suspicious" and not ended.test):
            answer = None
        else:
            failed += [ended.test] if ended.verdict != "survived" and ended.test else []
            answer = sorted({function_of(test) for test in failed if self._passes_alone(test)})
        add(self.told, {"mutant": ended.about.name, "failed": answer})

    def _passes_alone(self, test: str) -> bool:
        """Once of two times: it may use real time, and the machine be busy."""
        if test not in self.trusted:
            self.trusted[test] = any(self._passes(test) for _ in range(2))
        return self.trusted[test]

    def _passes(self, test: str) -> bool:
        ended = self.forks.wait(self.forks.start(None, partial(self._try_here, None, [test])))
        file = Path(ended.folder).with_suffix(".jsonl")
        failed = file.exists()
        file.unlink(missing_ok=True)
        return ended.verdict == "survived" and not failed


def _allowed(_: str) -> float:
    return ALLOWED_S


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In the place of the tests: the mutants, if there is a plan."""
    if "REFKUBELET_MUTANTS" not in os.environ:
        return None
    plan = json.loads(Path(os.environ["REFKUBELET_MUTANTS"]).read_text())
    mutants = [mutant for mutant in read_all() if plan["tests"].get(mutant.name)]
    tests: dict[str, list[str]] = {}
    for item in session.items:
        tests.setdefault(function_of(item.nodeid), []).append(item.nodeid)
    forks = Forks(session, {item.nodeid: item for item in session.items})
    gc.unfreeze()  # what is frozen would not be found
    functions = mutable_functions()
    gc.collect()
    gc.freeze()
    told = os.environ["REFKUBELET_MUTANT_FAILED"]
    Questions(forks, functions, tests, told).run(mutants, plan["tests"], plan["jobs"])
    return True
