"""A pytest plugin that tries mutants: it collects tests once, then forks a process for each mutant.

`-p unit_mutant_trials` with MUTANTS_PLAN=FILE (see `Plan`). Each mutant is tried with tests that
call its function, until one fails; a line per mutant is added to a file at once, so that nothing is
lost when a run is cut off. What a test says counts only if it passes alone, without a mutant.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

import pytest
from hypothesis import Phase, settings
from unit_mutant_forks import Ended, Forks, add
from unit_mutant_functions import FAILING, become, function_of
from unit_mutant_reach import Reached, find_reach

UNDER_TEST: Final = "MUTANT_UNDER_TEST"
"""The variable that tells programs which tests start which mutant is tried."""
NONE: Final = ""
"""The mutant that is none."""
CPU_S: Final = 1.0
TIMES_SLOWER: Final = 10.0


class Plan(TypedDict):
    """What is tried."""

    mutants: list[str]
    """In this order."""
    jobs: int
    """So many processes at once."""
    within_s: float
    """So many seconds of tests are asked about a mutant, the likely and the quick ones first."""
    reach: str
    """The file of what tests call."""
    told: str
    """The file of verdicts."""


@dataclass
class Trials:
    """Tries mutants."""

    forks: Forks
    plan: Plan
    reached: Mapping[str, Reached]
    """Test -> what it calls; those that can be asked."""
    tests: dict[str, list[str]] = field(default_factory=dict)
    """Function -> tests that call it, those of its own room first, then the quickest."""
    good_at: dict[str, list[str]] = field(default_factory=dict)
    """Function -> tests that noticed mutants of it, the last one first: they are asked first."""
    trusted: dict[str, bool] = field(default_factory=dict)
    """Test -> whether it passes alone without a mutant, as far as that was tried."""

    def __post_init__(self) -> None:
        for test, line in self.reached.items():
            for function in line["functions"]:
                self.tests.setdefault(function, []).append(test)
        for function, tests in self.tests.items():
            room = f"tests/{'/'.join(function.split('.')[:2])}/"
            tests.sort(key=lambda test: (not test.startswith(room), self._takes_s(test), test))

    def _takes_s(self, test: str) -> float:
        return self.reached[test]["seconds"]

    def _allowed_s(self, test: str) -> float:
        return CPU_S + TIMES_SLOWER * self._takes_s(test)

    def chosen(self, function: str) -> list[str]:
        """Which tests are asked: as many as there is time for, one at least."""
        order = dict.fromkeys([*self.good_at.get(function, ()), *self.tests.get(function, ())])
        found: list[str] = []
        left_s = self.plan["within_s"]
        for test in order:
            if self.trusted.get(test, True) and (self._takes_s(test) <= left_s or not found):
                found.append(test)
                left_s -= self._takes_s(test)
        return found

    def start(self, mutant: str, tests: Sequence[str]) -> int:
        """A process that tries the mutant."""
        return self.forks.start(mutant, partial(self._try_here, mutant, tests))

    def _try_here(self, mutant: str, tests: Sequence[str], folder: Path) -> bool:
        os.environ[UNDER_TEST] = mutant
        become(mutant)
        return all(self.forks.run_here(tests, folder, self._allowed_s))

    def begin(self, mutant: str) -> None:
        """Try that one, or tell that no test calls its function."""
        if tests := self.chosen(function_of(mutant)):
            self.start(mutant, tests)
        else:
            self.tell(Ended(mutant, "no tests", ""))

    def end(self) -> None:
        """Wait for one. A test that fails without a mutant, too, is not asked any more."""
        ended = self.forks.wait()
        if ended.verdict in ("killed", "timeout") and not self.passes_alone(ended.test):
            self.begin(ended.about)
        else:
            self.tell(ended)

    def passes_alone(self, test: str) -> bool:
        """In a process of its own without a mutant. One that uses real time may fail once on a busy
        machine, so it is run twice then."""
        if test not in self.trusted:
            self.trusted[test] = any(
                self.forks.wait(self.start(NONE, [test])).verdict == "survived" for _ in range(2)
            )
        return self.trusted[test]

    def tell(self, ended: Ended) -> None:
        """One line more."""
        found = ended.verdict in ("killed", "timeout")
        test = ended.test if found else ""
        line = {"mutant": ended.about, "verdict": ended.verdict, "test": test}
        add(self.plan["told"], line | {"within_s": self.plan["within_s"]})
        if found:
            good = self.good_at.setdefault(function_of(ended.about), [])
            good[:] = [test, *(other for other in good if other != test)][:5]

    def check(self) -> None:
        """Changed functions that fail make a test fail.

        Raises pytest.UsageError otherwise: no verdict would mean anything.
        """
        functions = {function_of(mutant) for mutant in self.plan["mutants"]}
        tests = [self.tests[function][0] for function in sorted(functions & self.tests.keys())]
        if tests:
            self.start(FAILING, list(dict.fromkeys(tests)))
            said = self.forks.wait().verdict
            if said != "killed":
                raise pytest.UsageError(f"with the mutant {FAILING!r}: {said}, not killed")

    def run(self) -> None:
        """All of the plan."""
        for count, mutant in enumerate(self.plan["mutants"], 1):
            if len(self.forks.running) >= self.plan["jobs"]:
                self.end()
            self.begin(mutant)
            if count % 500 == 0:
                print(f"{count} of {len(self.plan['mutants'])}", file=sys.stderr, flush=True)
        while self.forks.running:
            self.end()


def pytest_sessionstart() -> None:
    """Of what hypothesis finds it seeks no smaller example, and it finds the same each time."""
    settings.register_profile(
        "mutants",
        parent=settings.get_profile("project"),
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """In the place of the tests: the mutants."""
    if session.testsfailed:
        raise session.Interrupted("tests could not be collected")
    plan: Plan = json.loads(Path(os.environ["MUTANTS_PLAN"]).read_text())
    forks = Forks(session, {item.nodeid: item for item in session.items})
    gc.collect()
    gc.freeze()
    trials = Trials(forks, plan, find_reach(forks, plan["reach"], plan["jobs"]))
    trials.check()
    trials.run()
    return True
