"""Which tests call which of the functions that have mutants, and how long they take.

Each test is run once without a mutant, many in one process. A line of JSON per test tells what was
seen, at once, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

from unit_mutant_forks import Forks, add, lines_of, used_s
from unit_mutant_functions import Calls

LONGEST_S: Final = 10.0
"""Tests that take more processor time are not asked about mutants."""
TOGETHER: Final = 100
"""So many tests share a process."""


class Reached(TypedDict):
    """A line."""

    test: str
    seconds: float
    """Of processor time."""
    functions: list[str]
    passed: bool
    """If not, it is not asked about mutants."""


def find_reach(forks: Forks, file: str, jobs: int) -> dict[str, Reached]:
    """Of each test that can be asked; those of which the file tells are not run again."""
    known = {line["test"] for line in lines_of(file)}
    left = [test for test in forks.items if test not in known]
    waiting = [left[start : start + TOGETHER] for start in range(0, len(left), TOGETHER)]
    while waiting or forks.running:
        while waiting and len(forks.running) < jobs:
            tests = waiting.pop(0)
            forks.start(tests, partial(_look_here, forks, tests, file))
        ended = forks.wait()
        known = {line["test"] for line in lines_of(file)}
        unseen = [test for test in ended.about if test not in known]
        if unseen:  # the process has ended in the first of them
            add(file, Reached(test=unseen[0], seconds=LONGEST_S, functions=[], passed=False))
        if unseen[1:]:
            waiting.append(unseen[1:])
        seen = len(known & set(left))
        print(f"{seen} of {len(left)} tests looked at", file=sys.stderr, flush=True)
    found: list[Reached] = [line for line in lines_of(file) if line["test"] in forks.items]
    useless = [line["test"] for line in found if not line["passed"]]
    print(f"{len(useless)} tests are not asked: {', '.join(useless)}", file=sys.stderr, flush=True)
    return {line["test"]: line for line in found if line["passed"]}


def _look_here(forks: Forks, tests: Sequence[str], file: str, folder: Path) -> bool:
    calls, began_s = Calls(), used_s()
    all_passed = forks.run_here(tests, folder, lambda _: LONGEST_S)
    for test, passed in zip(tests, all_passed, strict=True):
        seconds = round(used_s() - began_s, 4)
        add(file, Reached(test=test, seconds=seconds, functions=calls.heard(), passed=passed))
        began_s = used_s()
    return True
