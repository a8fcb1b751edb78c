"""Mutation tests of modules that only decide: prints a table, fails below 90 % noticed.

`tox -e mutants` tries all of them; names of mutants, also patterns, choose: `tox -e mutants --
"refkubelet.pleg*"`. Which modules (a list that tests/purity.py makes), and which tests must notice,
stands in pyproject.toml. mutmut makes the mutants (unit_mutant_trees.py), unit_mutant_trials.py
tries them. About each mutant `--within-s` seconds of tests are asked; more tests can only notice
more. `--part 10` takes a tenth of the mutants of each module; `--sample 10 --seed 7` a tenth of the
modules, and only tests that import them.

All that is known lies in mutants/, where the mutants can be read, too: a run that was cut off goes
on where it was, as long as no file has changed. The mutants of each module are tried in a random
order (`--seed`), and of all modules equal parts, so what a run that was cut off says is true of a
part of each. What was told is kept in results/mutants.json, which docs/verified.md shows; with
--sample it is not.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from unit_mutant_forks import lines_of
from unit_mutant_trees import Work, mutants_of, prepare
from unit_mutant_trials import Plan

from simclock import Rng

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
KEPT: Final = ROOT / "results" / "mutants.json"
SETTINGS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
WANTED: Final = 0.9
KILLED: Final = ("killed", "timeout")

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


def keep(verdicts: Verdicts, sizes: Mapping[str, int], file: Path, date: str) -> None:
    """Put these modules in the place of their last run; a part does not replace a whole. `sizes`:
    how many mutants a module has."""
    record = json.loads(file.read_text()) if file.exists() else {}
    for module, counted in verdicts.items():
        killed = sum(counted[word] for word in KILLED)
        found = {"killed": killed, "tried": counted.total(), "mutants": sizes[module], "date": date}
        before = record.get(module, {"tried": 0, "mutants": 1})
        if found["tried"] == found["mutants"] or before["tried"] < before["mutants"]:
            record[module] = found
    file.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")


def drawn(modules: Sequence[str], parts: int, seed: int) -> list[str]:
    """One of so many parts of the modules.

    >>> drawn(["refkubelet/pleg/compute.py"], 10, 1)
    ['refkubelet/pleg/compute.py']
    """
    count = max(1, len(modules) // parts)
    return sorted(Rng(seed).stream("modules").sample(sorted(modules), count))


def chosen(mutants: Iterable[str], names: Sequence[str]) -> list[str]:
    """Those of the names or patterns; without any, all.

    >>> chosen(["a.x_f__mutmut_1", "b.x_f__mutmut_1"], ["b.*"])
    ['b.x_f__mutmut_1']
    """
    return [
        mutant for mutant in mutants if not names or any(fnmatch.fnmatch(mutant, n) for n in names)
    ]


def ordered(mutants: Sequence[str], seed: int) -> list[str]:
    """Shuffled within each module, and of all modules equal parts one after the other: what is
    told of a part of them is true of each module, too."""
    modules: dict[str, list[str]] = {}
    for mutant in mutants:
        modules.setdefault(module_of(mutant), []).append(mutant)
    places = {}
    for module, names in modules.items():
        shuffled = Rng(seed).stream(module).sample(names, len(names))
        places |= {name: place / len(names) for place, name in enumerate(shuffled)}
    return sorted(places, key=lambda name: (places[name], name))


def told_so_far(work: Work, within_s: float = 0.0) -> dict[str, str]:
    """Mutant -> verdict, of runs since the last change of a file; not of survivors that were asked
    about for a shorter time than this."""
    told = {}
    for line in lines_of(str(work.told)):
        if line["verdict"] in KILLED or line["within_s"] >= within_s:
            told[line["mutant"]] = line["verdict"]
    return told


def asked_about(modules: Iterable[str], root: Path = ROOT) -> list[str]:
    """The files of tests that import one of these modules (files); for a module that none imports,
    the folder of its room."""
    texts = {file: file.read_text() for file in (root / "tests").rglob("test_*.py")}
    found: set[str] = set()
    for module in modules:
        name = re.escape(module.removesuffix(".py").replace("/", "."))
        importing = [f for f, text in texts.items() if re.search(rf"\b{name}\b(?!\.)", text)]
        room = root / "tests" / Path(*Path(module).parts[:2])
        found |= {str(file.relative_to(root)) for file in importing or [room]}
    return sorted(found)


def attempt(
    work: Work, mutants: Sequence[str], folders: Sequence[str], options: argparse.Namespace
) -> int:
    """Have them tried by these tests; pytest's exit code."""
    plan: Plan = {
        "mutants": list(mutants),
        "jobs": options.jobs,
        "within_s": options.within_s,
        "reach": str(work.reach),
        "told": str(work.told),
    }
    work.plan.write_text(json.dumps(plan))
    command = [
        *(sys.executable, "-m", "pytest", "--rootdir=.", "--tb=native", "-p", "unit_mutant_trials"),
        *("-p", "no:xdist", "-o", "timeout=120"),
        *folders,
        *SETTINGS["pytest_add_cli_args"],
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, [work.folder, HERE, ROOT])),
        "MUTANTS_PLAN": str(work.plan),
    }
    return subprocess.run(command, check=False, cwd=work.folder, env=environment).returncode


def options_of(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="unit_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or patterns; default all")
    parser.add_argument("--sample", type=int, metavar="N", help="one of N modules")
    parser.add_argument("--part", type=int, default=1, metavar="N", help="one of N of each module")
    parser.add_argument("--seed", type=int, default=1, help="of --sample and of the order")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes at once")
    parser.add_argument(
        "--within-s", type=float, default=2.0, help="seconds of tests that are asked about a mutant"
    )
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Exit code 0: at least 90 % of those in modules that were tried whole were killed."""
    options = options_of(words)
    modules, work = SETTINGS["only_mutate"], Work(ROOT / "mutants")
    folders = SETTINGS["pytest_add_cli_args_test_selection"]
    if options.sample:
        modules, work = drawn(modules, options.sample, options.seed), Work(ROOT / "mutants/sample")
        folders = asked_about(modules)
    prepare(work, modules, options.jobs)
    everything = mutants_of(work, modules)
    wanted = ordered(chosen(everything, options.names), options.seed)
    wanted = wanted[: -(-len(wanted) // options.part)]
    if not wanted:
        print(f"no mutant is called {' or '.join(options.names)}; see {work.folder}/**/*.mutants")
        return 2
    told = told_so_far(work, options.within_s)
    left = [mutant for mutant in wanted if mutant not in told]
    print(f"{len(left)} mutants to try, {len(wanted) - len(left)} tried before", flush=True)
    failed = attempt(work, left, folders, options) if left else 0
    told = told_so_far(work)
    seen = {mutant: told[mutant] for mutant in wanted if mutant in told}
    verdicts = by_module(seen)
    whole = verdicts.keys() - unfinished(everything, told)
    if not options.sample and seen:
        date = datetime.fromtimestamp(work.told.stat().st_mtime, UTC)
        true = whole if options.names else verdicts  # of a pattern, a part says nothing of the rest
        sizes = Counter(module_of(mutant) for mutant in everything)
        keep({module: verdicts[module] for module in true}, sizes, KEPT, f"{date:%Y-%m-%d}")
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
