"""Mutation tests of modules that only decide: runs mutmut, prints a table, fails below 90 % killed.

`tox -e mutants` runs all of them; names of mutants, also patterns, choose: `tox -e mutants --
"refkubelet.pleg*"`, and `--sample 10 --seed 7` a tenth of the modules. Which modules (a list that
tests/purity.py makes), and which tests must kill them, stands in pyproject.toml. Without --sample,
modules of which every mutant was tried are kept in docs/mutants.json, which docs/verified.md shows.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from simclock import RealClock, Rng

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "docs" / "mutants.json"
WANTED: Final = 0.9
RESULT: Final = re.compile(r"^\s*(?P<name>\S+__mutmut_\d+): (?P<verdict>[a-z ]+?)\s*$", re.M)
KILLED: Final = ("killed", "timeout", "caught by type check")
UNDECIDED: Final = ("not checked", "skipped")

Verdicts = Mapping[str, Counter[str]]
"""Module -> how often each verdict was given."""


def by_module(results: str) -> Verdicts:
    """What `mutmut results --all true` says, counted.

    >>> by_module("    a.b.x_f__mutmut_1: killed\\n    a.b.xǁCǁg__mutmut_2: survived\\n")
    {'a.b': Counter({'killed': 1, 'survived': 1})}
    """
    counted: dict[str, Counter[str]] = {}
    for found in RESULT.finditer(results):
        if found["verdict"] not in UNDECIDED:
            module = found["name"].rpartition(".")[0]
            counted.setdefault(module, Counter())[found["verdict"]] += 1
    return counted


def share(verdicts: Counter[str]) -> float:
    """Of 1, how much was killed."""
    return sum(verdicts[word] for word in KILLED) / max(verdicts.total(), 1)


def unfinished(results: str) -> set[str]:
    """The modules of which only some mutants were tried: nothing is said against them."""
    return {
        found["name"].rpartition(".")[0]
        for found in RESULT.finditer(results)
        if found["verdict"] in UNDECIDED
    }


def lines(verdicts: Verdicts) -> Iterable[str]:
    """The table."""
    for module, counted in sorted(verdicts.items()):
        killed = sum(counted[word] for word in KILLED)
        yield f"{module:42} {killed:4} of {counted.total():4} killed  {share(counted):6.1%}"
    everything = sum(verdicts.values(), Counter())
    yield f"{'all':42} {'':17} {share(everything):6.1%}"


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


def main(words: Sequence[str]) -> int:
    """Exit code 0: at least 90 % of those in modules that were tried whole were killed."""
    parser = argparse.ArgumentParser(prog="unit_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants or patterns; default all")
    parser.add_argument("--sample", type=int, metavar="N", help="one of N modules")
    parser.add_argument("--seed", type=int, default=1, help="of --sample")
    options = parser.parse_args(words)
    names = options.names
    if options.sample:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
        names = drawn(settings["only_mutate"], options.sample, options.seed)
    done = subprocess.run(["mutmut", "run", *names], check=False)
    if done.returncode:
        return done.returncode
    told = subprocess.run(
        ["mutmut", "results", "--all", "true"], check=True, capture_output=True, text=True
    ).stdout
    verdicts = by_module(told)
    print("\n".join(lines(verdicts)))
    whole = verdicts.keys() - unfinished(told)
    if not options.sample:
        keep({module: verdicts[module] for module in whole}, KEPT, f"{RealClock().now():%Y-%m-%d}")
    for found in RESULT.finditer(told):
        if found["verdict"] not in (*KILLED, *UNDECIDED):
            print(f"  {found['name']}: {found['verdict']}")
    weak = sorted(module for module in whole if share(verdicts[module]) < WANTED)
    if weak:
        print(f"below {WANTED:.0%}: {', '.join(weak)}")
    everything = sum((verdicts[module] for module in whole), Counter[str]())
    return 0 if whole and share(everything) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
