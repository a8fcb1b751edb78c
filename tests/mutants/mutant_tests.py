"""Asks our own tests about wrong kubelets: which tests that cite a broken rule fail?

`python tests/mutants/mutant_tests.py` takes each mutant of the catalogue and runs the tests that
name its rule, in a pytest that imports the mutant. The tests that fail, and pass without it, go
into docs/suite-mutants.json beside the cases that noticed it, for docs/rules.md. Names, areas and
globs choose mutants. It takes some twenty minutes: a pytest for each mutant.
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

from mutant_patches import Mutant, read_all
from mutant_plan import rule_of
from suite_mutants import KEPT, ROOT

MUTANT: Final = "REFKUBELET_MUTANT"
"""The name of the mutant to become; unset or "": none."""
FAILED: Final = "REFKUBELET_MUTANT_FAILED"
"""The file that the names of failed tests are written to, as JSON."""
SLOW: Final = ("tests/chaos", "tests/verified", "tests/project", "tests/examples", "tests/clients")
"""About other things than one clause."""


def citing_tests() -> dict[str, list[str]]:
    """Rule -> `file: function` of the tests that name it."""
    from rules_in_tree import look

    return {
        rule: [place for place in places if not place.startswith(SLOW)]
        for rule, places in look().tests.items()
    }


def node_id(place: str) -> str:
    """What pytest calls a place.

    >>> node_id("tests/a/test_b.py: test_c")
    'tests/a/test_b.py::test_c'
    """
    return place.replace(": ", "::")


async def failed_tests(mutant: str, tests: Sequence[str]) -> set[str]:
    """Those of the tests (node IDs) that fail on the mutant; "" is refkubelet as it is."""
    if not tests:
        return set()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "failed.json"
        words = ["-q", "-p", "mutant_plugin", "-p", "no:cacheprovider", "--timeout=60"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", *words, *tests),
            cwd=ROOT,
            env={**os.environ, MUTANT: mutant, FAILED: str(told), "PYTHONPATH": "tests/mutants"},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await process.wait()
        return set(json.loads(told.read_text())) if told.exists() else set()


async def links(mutants: Sequence[Mutant], jobs: int) -> dict[str, list[str]]:
    """Mutant -> `file: function` of the tests that it makes fail."""
    citing = citing_tests()
    wanted = {
        mutant.name: sorted({p for rule in mutant.rules for p in citing.get(rule_of(rule), [])})
        for mutant in mutants
    }
    places = sorted({place for of in wanted.values() for place in of})
    broken = await failed_tests("", [node_id(place) for place in places])
    turn = asyncio.Semaphore(jobs)

    async def one(name: str) -> tuple[str, list[str]]:
        async with turn:
            failed = await failed_tests(name, [node_id(place) for place in wanted[name]])
        print(f"{name}: {len(failed - broken)} of {len(wanted[name])} tests", flush=True)
        return name, [p for p in wanted[name] if node_id(p) in failed - broken]

    return dict(await asyncio.gather(*(one(name) for name in wanted)))


def kept_with(kept: Mapping[str, Any], found: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The kept answers of the suite with the tests beside them; a mutant that the suite was never
    asked about is left out."""
    return {
        name: {**answer, "tests": list(found[name])} if name in found else answer
        for name, answer in kept.items()
    }


def main(words: Sequence[str]) -> int:
    """See above."""
    parser = argparse.ArgumentParser(prog="mutant_tests", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, areas or globs; default all")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(words)
    found = asyncio.run(links(read_all(options.names), options.jobs))
    kept = json.loads(KEPT.read_text())
    KEPT.write_text(json.dumps(kept_with(kept, found), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.path.append(str(ROOT / "docs"))
    sys.exit(main(sys.argv[1:]))
