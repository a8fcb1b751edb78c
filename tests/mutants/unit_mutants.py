"""Mutation tests of modules that only decide: prints a table, fails below 90 % noticed.

`tox -e mutants` tries all of them; names of mutants, also patterns, choose: `tox -e mutants --
"refkubelet.pleg*"`, and `--sample 10 --seed 7` a tenth of the modules. Which modules (a list that
tests/purity.py makes), and which tests must notice, stands in pyproject.toml. mutmut makes the
mutants and finds which tests run which function; unit_mutant_forks.py tries them.

All that is known lies in mutants/: a run that was cut off goes on where it was, as long as no file
has changed. `mutmut show NAME` shows a mutant. Modules of which every mutant was tried are kept in
docs/mutants.json, which docs/verified.md shows; with --sample they are not.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from simclock import Rng

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "docs" / "mutants.json"
WORK: Final = ROOT / "mutants"
"""Where mutmut puts the changed modules, the tests and what it knows."""
STATS: Final = WORK / "mutmut-stats.json"
STAMP: Final = WORK / "tree.json"
TOLD: Final = WORK / "told.jsonl"
PLAN: Final = WORK / "plan.json"
READ: Final = (
    "refkubelet",
    "simclock",
    "timewarp",
    "fakecri",
    "fakekubeapi",
    "conformance",
    "tests",
)
WANTED: Final = 0.9
KILLED: Final = ("killed", "timeout")
ANY_MUTANT: Final = "refkubelet.golang.fnv.x_fnv1a_32__mutmut_1"
"""mutmut has to try one."""

Verdicts = Mapping[str, Counter[str]]
"""Module -> how often each verdict was given."""


def module_of(mutant: str) -> str:
    """Where it is.

    >>> module_of("a.b.xǁCǁg__mutmut_2")
    'a.b'
    """
    return mutant.rpartition(".")[0]


def by_module(told: Mapping[str, str]) -> Verdicts:
    """Mutant -> verdict, counted.

    >>> by_module({"a.b.x_f__mutmut_1": "killed", "a.b.xǁCǁg__mutmut_2": "survived"})
    {'a.b': Counter({'killed': 1, 'survived': 1})}
    """
    counted: dict[str, Counter[str]] = {}
    for mutant, verdict in told.items():
        counted.setdefault(module_of(mutant), Counter())[verdict] += 1
    return counted


def share(verdicts: Counter[str]) -> float:
    """Of 1, how much was killed."""
    return sum(verdicts[word] for word in KILLED) / max(verdicts.total(), 1)


def unfinished(mutants: Iterable[str], told: Mapping[str, str]) -> set[str]:
    """The modules of which only some mutants were tried: nothing is said against them."""
    return {module_of(mutant) for mutant in mutants if mutant not in told}


def lines(verdicts: Verdicts) -> Iterable[str]:
    """The table."""
    for module, counted in sorted(verdicts.items()):
        killed = sum(counted[word] for word in KILLED)
        yield f"{module:52} {killed:4} of {counted.total():4} killed  {share(counted):6.1%}"
    everything = sum(verdicts.values(), Counter[str]())
    killed = sum(everything[word] for word in KILLED)
    yield f"{'all':52} {killed:4} of {everything.total():4} killed  {share(everything):6.1%}"


def keep(verdicts: Verdicts, file: Path, date: str) -> None:
    """Put these modules in the place of their last run."""
    record = json.loads(file.read_text()) if file.exists() else {}
    for module, counted in verdicts.items():
        killed = sum(counted[word] for word in KILLED)
        record[module] = {"killed": killed, "mutants": counted.total(), "date": date}
    file.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")


def drawn(modules: Sequence[str], parts: int, seed: int) -> list[str]:
    """One of so many parts of the modules (files), as patterns of mutants.

    >>> drawn(["refkubelet/pleg/compute.py"], 10, 1)
    ['refkubelet.pleg.compute.*']
    """
    count = max(1, len(modules) // parts)
    chosen = Rng(seed).stream("modules").sample(sorted(modules), count)
    return [file.removesuffix(".py").replace("/", ".") + ".*" for file in sorted(chosen)]


def chosen(mutants: Iterable[str], names: Sequence[str]) -> list[str]:
    """Those of the names or patterns; without any, all.

    >>> chosen(["a.x_f__mutmut_1", "b.x_f__mutmut_1"], ["b.*"])
    ['b.x_f__mutmut_1']
    """
    return [
        mutant for mutant in mutants if not names or any(fnmatch.fnmatch(mutant, n) for n in names)
    ]


def tree() -> dict[str, str]:
    """Path -> a sum of its content, for each file that a verdict may depend on."""
    files = [file for part in READ for file in sorted((ROOT / part).rglob("*"))]
    return {
        str(file.relative_to(ROOT)): hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        for file in [ROOT / "pyproject.toml", *files]
        if file.is_file() and "__pycache__" not in file.parts
    }


def without(stats: dict[str, Any], files: set[str]) -> dict[str, Any]:
    """What mutmut knows of tests, but nothing of tests in these files: it runs them anew.

    >>> without({"tests_by_mangled_function_name": {"a.x_f": ["t.py::a", "u.py::b"]},
    ...          "duration_by_test": {"t.py::a": 1, "u.py::b": 2}}, {"t.py"})
    {'tests_by_mangled_function_name': {'a.x_f': ['u.py::b']}, 'duration_by_test': {'u.py::b': 2}}
    """

    def stays(test: str) -> bool:
        return test.partition("::")[0] not in files

    return stats | {
        "tests_by_mangled_function_name": {
            function: [test for test in tests if stays(test)]
            for function, tests in stats["tests_by_mangled_function_name"].items()
        },
        "duration_by_test": {
            test: seconds for test, seconds in stats["duration_by_test"].items() if stays(test)
        },
    }


def forget(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """What changed files make untrue: all verdicts, and what mutmut knows of tests."""
    changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    TOLD.unlink(missing_ok=True)
    shutil.rmtree(WORK / "tests", ignore_errors=True)
    if STATS.exists() and before and all(Path(path).name.startswith("test_") for path in changed):
        STATS.write_text(json.dumps(without(json.loads(STATS.read_text()), changed)))
    else:
        STATS.unlink(missing_ok=True)


def prepare() -> None:
    """Make the mutants and find which tests run which function, if anything has changed since."""
    before = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    now = tree()
    if now == before and STATS.exists():
        return
    forget(before, now)
    STAMP.unlink(missing_ok=True)
    subprocess.run(["mutmut", "run", ANY_MUTANT], check=True, cwd=ROOT)
    STAMP.write_text(json.dumps(now))


def all_mutants(modules: Iterable[str]) -> list[str]:
    """What mutmut has made of these files."""
    metas = (WORK / f"{module}.meta" for module in modules)
    return [name for meta in metas for name in json.loads(meta.read_text())["exit_code_by_key"]]


def told_so_far() -> dict[str, str]:
    """Mutant -> verdict, of runs since the last change of a file."""
    if not TOLD.exists():
        return {}
    lines = TOLD.read_text().splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be cut
    return {record["mutant"]: record["verdict"] for record in records}


def attempt(mutants: Sequence[str], jobs: int, settings: Mapping[str, Any]) -> int:
    """Have them tried; pytest's exit code."""
    stats = json.loads(STATS.read_text())
    seconds = stats["duration_by_test"]
    tests = {
        function: sorted(names, key=lambda test: (seconds.get(test, 0.0), test))
        for function, names in stats["tests_by_mangled_function_name"].items()
        if function in {mutant.partition("__mutmut_")[0] for mutant in mutants}
    }
    PLAN.write_text(
        json.dumps({"mutants": mutants, "tests": tests, "seconds": seconds, "jobs": jobs})
    )
    files = sorted({test.partition("::")[0] for names in tests.values() for test in names})
    command = [
        *(sys.executable, "-m", "pytest", "--rootdir=.", "--tb=native", "-p", "unit_mutant_forks"),
        *("-p", "no:xdist", "-o", "timeout=30"),
        *(files or settings["pytest_add_cli_args_test_selection"]),
        *settings["pytest_add_cli_args"],
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(WORK), str(WORK / "tests" / "mutants")]),
        "MUTANTS_PLAN": str(PLAN),
        "MUTANTS_TOLD": str(TOLD),
        "PY_IGNORE_IMPORTMISMATCH": "1",
    }
    return subprocess.run(command, check=False, cwd=WORK, env=environment).returncode


def main(words: Sequence[str]) -> int:
    """Exit code 0: at least 90 % of those in modules that were tried whole were killed."""
    parser = argparse.ArgumentParser(prog="unit_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or patterns; default all")
    parser.add_argument("--sample", type=int, metavar="N", help="one of N modules")
    parser.add_argument("--seed", type=int, default=1, help="of --sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes at once")
    options = parser.parse_args(words)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    names = options.names
    if options.sample:
        names = drawn(settings["only_mutate"], options.sample, options.seed)
    prepare()
    everything = all_mutants(settings["only_mutate"])
    wanted = chosen(everything, names)
    if not wanted:
        parser.error(f"no mutant is called {' or '.join(names)}; see mutants/refkubelet/**/*.meta")
    told = told_so_far()
    left = [mutant for mutant in wanted if mutant not in told]
    print(f"{len(left)} mutants to try, {len(wanted) - len(left)} tried before", flush=True)
    failed = attempt(left, options.jobs, settings) if left else 0
    told = told_so_far()
    seen = {mutant: told[mutant] for mutant in wanted if mutant in told}
    verdicts = by_module(seen)
    whole = verdicts.keys() - unfinished(everything, told)
    if not options.sample and whole:
        date = datetime.fromtimestamp(TOLD.stat().st_mtime, UTC)
        keep({module: verdicts[module] for module in whole}, KEPT, f"{date:%Y-%m-%d}")
    return failed or report(seen, verdicts, whole)


def report(seen: Mapping[str, str], verdicts: Verdicts, whole: Iterable[str]) -> int:
    """Print the table and the survivors; the exit code."""
    print("\n".join(lines(verdicts)))
    for mutant, verdict in seen.items():
        if verdict not in KILLED:
            print(f"  {mutant}: {verdict}")
    weak = sorted(module for module in whole if share(verdicts[module]) < WANTED)
    if weak:
        print(f"below {WANTED:.0%}: {', '.join(weak)}")
    counted = sum((verdicts[module] for module in whole), Counter[str]())
    return 0 if whole and share(counted) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
