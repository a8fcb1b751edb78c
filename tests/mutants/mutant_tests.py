"""Asks our own tests about wrong kubelets: which tests that cite a broken rule fail?

`python tests/mutants/mutant_tests.py` takes each mutant of the catalogue and runs the tests that
name its rule. The tests that fail, and pass without it, go into results/suite-mutants.json beside
the cases that noticed it, for the pages of rules. Names, areas and globs choose mutants;
`--missing` takes those of which no answer is kept. The tests are collected once, and a fork for
each mutant exchanges the functions that it changes (mutant_plugin.py); a mutant that changes more
than functions wants a pytest of its own.

Of the wrong runtimes (`runtime.txt`) the contract tests are asked, on the fake that is mutated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mutant_plan import rule_of
from mutant_tables import RUNTIME, Mutant, read_all
from suite_mutants import CLOCK, KEPT, ROOT, Answer, recorded

MUTANT: Final = "REFKUBELET_MUTANT"
"""The name of the mutant to become; unset or "": none."""
PLAN: Final = "REFKUBELET_MUTANTS"
"""The file that says which mutants are tried, by which tests, in one pytest."""
FAILED: Final = "REFKUBELET_MUTANT_FAILED"
"""The file that the names of failed tests are written to, as lines of JSON."""
SLOW: Final = (
    *("tests/attacks", "tests/verified", "tests/project", "tests/examples", "tests/clients"),
)
"""About other things than one clause."""


def asked_of(mutant: Mutant, citing: Mapping[str, Sequence[str]]) -> list[str]:
    """The tests, as `file: function`, that are asked about a mutant. `citing`: rule -> the tests
    that name it."""
    from rules_in_tree import CONTRACT

    places = {place for rule in mutant.rules for place in citing.get(rule_of(rule), ())}
    if mutant.area == RUNTIME:
        return sorted(place for place in places if place.startswith(CONTRACT))
    return sorted(place for place in places if not place.startswith(SLOW))


def citing_tests() -> dict[str, list[str]]:
    """Rule -> `file: function` of the tests that name it."""
    from rules_in_tree import look

    return {rule: [str(place) for place in places] for rule, places in look().tests.items()}


def node_id(place: str) -> str:
    """What pytest calls a place.

    >>> node_id("tests/a/test_b.py: test_c")
    'tests/a/test_b.py::test_c'
    """
    return place.replace(": ", "::")


async def run_pytest(words: Sequence[str], variables: Mapping[str, str]) -> list[Any]:
    """The lines of JSON that the plug-in has written."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "failed.jsonl"
        options = ["-q", "-p", "mutant_plugin", "-p", "no:cacheprovider", "--timeout=120"]
        path = os.pathsep.join([str(ROOT / "tests" / "mutants"), str(ROOT)])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", *options, *words),
            cwd=ROOT,
            env={**os.environ, **variables, FAILED: str(told), "PYTHONPATH": path},
            stdout=asyncio.subprocess.DEVNULL,
        )
        await process.wait()
        text = told.read_text() if told.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


async def links(wanted: Mapping[str, Sequence[str]], jobs: int) -> dict[str, list[str]]:
    """Mutant -> those of its tests (`file: function`) that it makes fail."""
    found: dict[str, list[str]] = {}
    left = {name: [node_id(place) for place in places] for name, places in wanted.items()}
    files = sorted({test.partition("::")[0] for tests in left.values() for test in tests})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
        json.dump({"tests": left, "jobs": jobs}, plan)
        plan.flush()
        told = await run_pytest(files, {PLAN: plan.name})
    answers = {line["mutant"]: line["failed"] for line in told if line["failed"] is not None}
    turn = asyncio.Semaphore(jobs)

    async def alone(name: str) -> None:
        async with turn:
            answers[name] = await _failed_anew(name, left[name])

    others = [name for name, tests in left.items() if tests and name not in answers]
    print(f"{len(answers)} tried in forks, {len(others)} are imported anew", flush=True)
    await asyncio.gather(*(alone(name) for name in others))
    for name, places in wanted.items():
        failed = set(answers.get(name, ()))
        found[name] = [place for place in places if node_id(place) in failed]
        print(f"{name}: {len(found[name])} of {len(places)} tests", flush=True)
    return found


async def _failed_anew(name: str, tests: Sequence[str]) -> list[str]:
    """The tests that fail in a pytest that imports the mutant, and pass in one that does not."""
    failed = await run_pytest(tests, {MUTANT: name})
    if failed:
        without = await run_pytest([test for test in tests if test in failed], {MUTANT: ""})
        failed = [test for test in failed if test not in without]
    return failed


def kept_with(kept: Mapping[str, Any], found: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The kept answers of the suite with the tests beside them; a mutant that the suite was never
    asked about is left out."""
    return {
        name: {**answer, "tests": list(found[name])} if name in found else answer
        for name, answer in kept.items()
    }


def chosen(mutants: Sequence[Mutant], kept: Mapping[str, Any], missing: bool) -> list[Mutant]:
    """All of them, or those whose tests are not known."""
    return [m for m in mutants if not missing or "tests" not in kept.get(m.name, {})]


def main(words: Sequence[str]) -> int:
    """See above."""
    parser = argparse.ArgumentParser(prog="mutant_tests", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, areas or globs; default all")
    parser.add_argument("--missing", action="store_true", help="only those without an answer")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(words)
    mutants = chosen(read_all(options.names), json.loads(KEPT.read_text()), options.missing)
    citing = citing_tests()
    wanted = {mutant.name: asked_of(mutant, citing) for mutant in mutants}
    found = asyncio.run(links(wanted, options.jobs))
    runtimes = [Answer(mutant) for mutant in mutants if mutant.area == RUNTIME]
    kept = recorded(runtimes, json.loads(KEPT.read_text()), f"{CLOCK.now():%Y-%m-%d}")
    KEPT.write_text(json.dumps(kept_with(kept, found), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.path.append(str(ROOT / "tools" / "docs"))
    sys.exit(main(sys.argv[1:]))
